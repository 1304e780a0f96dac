"""Record results, gradients and errors of tests/scipy/cases.py from MindSpore 2.10: run it with MindSpore on a CPU.

    python tests/data/make_scipy_reference.py
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
from typing import Any

import mindspore
import mindspore.scipy.ops
import numpy as np

HERE = pathlib.Path(__file__).parent


def _recorded(result: Any) -> list[Any]:
    """Return the dtype, the shape and the numbers of each tensor; a bool as it is."""
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in _recorded(one)]
    if isinstance(result, bool):
        return [result]
    array = result.asnumpy()
    numbers = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
    return [[str(array.dtype), list(array.shape), [float(f"{number:.9g}") for number in numbers.ravel()]]]


def main() -> None:
    """Write scipy_reference.json."""
    spec = importlib.util.spec_from_file_location("cases", HERE.parent / "scipy" / "cases.py")
    assert spec is not None and spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    names = cases.names(mindspore.scipy, lambda array, kind: mindspore.Tensor(array))
    recorded: dict[str, dict[str, Any]] = {"calls": {}, "errors": {}, "gradients": {}}
    for call in cases.CALLS:
        recorded["calls"][call] = _recorded(eval(call, dict(names)))
    for call in cases.ERRORS:
        try:
            mindspore.ops.shape(eval(call, dict(names)))
            mindspore.runtime.synchronize()
        except Exception as error:
            recorded["errors"][call] = type(error).__name__
    for call in cases.GRADIENTS:
        function, *inputs = eval(call, dict(names))
        positions = tuple(range(len(inputs)))
        found = mindspore.grad(lambda *x, function=function: cases.weighted(function(*x)), positions)(*inputs)
        recorded["gradients"][call] = _recorded(found)
    (HERE / "scipy_reference.json").write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    main()
