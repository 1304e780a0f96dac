"""Record what MindSpore's primitives of its modules compute: run with MindSpore 2.10, which writes the JSON beside it.

    python tests/data/make_module_primitives_reference.py
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor
from mindspore.ops import operations

MODULES = ("sparse_ops", "array_ops", "math_ops", "nn_ops", "linalg_ops", "spectral_ops", "_sequence_ops")
X = [[1.5, -2.0], [0.5, 4.0], [-1.0, 3.0], [2.0, 0.25]]
IDS, CHOSEN, PLACES = [0, 0, 2, 2], [0, 3, 1, 1], [[0, 1], [2, 0]]
# Name: settings, inputs. An array of floats is float32, of ints int32; "i64" marks those of int64.
CALLS: dict[str, tuple[list[Any], list[Any]]] = {
    **{f"Segment{how}": ([], [X, IDS]) for how in ("Max", "Mean", "Min", "Prod", "Sum")},
    **{f"SparseSegment{how}": ([], [X, CHOSEN, [0, 0, 1, 1]]) for how in ("SqrtN", "Sum")},
    **{f"SparseSegment{how}WithNumSegments": ([], [X, CHOSEN, IDS, [4]]) for how in ("Mean", "SqrtN", "Sum")},
    "SparseAddmm": (
        [], [{"i64": PLACES}, [2.0, 3.0], {"i64": [3, 2]}, X[:2], [[1.0, 2.0]] * 3, [0.5], [2.0]]
    ),
    **{
        f"SparseDenseCwise{how}": ([], [{"i64": PLACES}, [2.0, 3.0], {"i64": [3, 2]}, [[4.0, 5.0]]])
        for how in ("Add", "Mul")
    },
    "SparseReorder": ([], [{"i64": PLACES[::-1]}, [2.0, 3.0], {"i64": [3, 2]}]),
    "SparseSoftmaxCrossEntropyWithLogitsV2": ([], [X, [0, 1, 1, 0]]),
    "BartlettWindow": ([True], [{"i64": 5}]),
    "AddV2": ([], [X, X]),
}


def given(value: Any) -> Tensor:
    if isinstance(value, dict):
        return Tensor(np.array(value["i64"], np.int64))
    array = np.array(value)
    return Tensor(array.astype(np.float32 if array.dtype.kind == "f" else np.int32))


def main() -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    recorded = []
    for name, (settings, inputs) in CALLS.items():
        module = next(module for module in MODULES if hasattr(getattr(operations, module, None), name))
        try:
            result = getattr(getattr(operations, module), name)(*settings)(*map(given, inputs))
            results = result if isinstance(result, tuple) else (result,)
            values = [(each.asnumpy().tolist(), str(each.asnumpy().dtype)) for each in results]
        except Exception as error:
            print(name, type(error).__name__, str(error)[:200])
            continue
        recorded.append({"name": name, "module": module, "settings": settings, "inputs": inputs, "expected": values})
    path = pathlib.Path(__file__).with_name("module_primitives_reference.json")
    path.write_text("[\n" + ",\n".join(map(json.dumps, recorded)) + "\n]\n")


if __name__ == "__main__":
    main()
