"""Building the cells of tests.nn.cases.py with the reference's parameters, and calling them."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import keras
import numpy as np

from mixtrain import backend, nn
from mixtrain.common.tensor import Tensor
from tests.nn.cases import Case

INTS = ("ids", "lengths")


@functools.cache
def _arrays() -> dict[str, np.ndarray]:
    """Return the reference's arrays, which lie one after the other in their file."""
    packed, arrays, start = np.load(pathlib.Path(__file__).parents[1] / "data" / "nn_reference.npz"), {}, 0
    values = packed["values"]
    for line in str(packed["index"]).split("\n"):
        key, _, sizes = line.partition(" ")
        shape = tuple(int(size) for size in sizes.split(",") if size)
        count = int(np.prod(shape))
        arrays[key] = values[start : start + count].reshape(shape)
        start += count
    return arrays


def case(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of one case, by name."""
    found = {key.partition("/")[2]: value for key, value in _arrays().items() if key.partition("/")[0] == name}
    assert found, name
    return found


def flat(value: Any) -> list[Any]:
    """Return the leaves of nested tuples."""
    return [leaf for one in value for leaf in flat(one)] if isinstance(value, (tuple, list)) else [value]


def build(name: str, spec: Case) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the cell with the reference's parameters, its inputs, and the reference's numbers."""
    known = case(name)
    cell = getattr(nn, spec.name)(*spec.args, **spec.kwargs)
    parameters = list(cell.get_parameters())
    assert [f"p{number}" for number in range(len(parameters))] == [key for key in known if key.startswith("p")]
    for number, parameter in enumerate(parameters):
        assert tuple(parameter.shape) == known[f"p{number}"].shape
        parameter.set_data(known[f"p{number}"])
    inputs = []
    for number, one in enumerate(spec.inputs):
        if one is None:
            inputs.append(None)
        elif isinstance(one, list):
            inputs.append(tuple(Tensor(known[f"x{number}_{place}"]) for place in range(len(one))))
        else:
            array = known[f"x{number}"]
            inputs.append(Tensor(array.astype(np.int32) if one[0] in INTS else array))
    return cell.set_train(spec.training), tuple(inputs), known


def worst(values: Any, known: dict[str, Any], prefix: str) -> float:
    """Return the largest difference between outputs and the reference's arrays prefix0, prefix1, ..."""
    outputs = flat(values)
    count = sum(key.startswith(prefix) and key[len(prefix) :].isdigit() for key in known)
    assert len(outputs) == count
    differences = []
    for number, value in enumerate(outputs):
        array = backend.to_numpy(value).astype(np.float32)
        assert array.shape == known[f"{prefix}{number}"].shape
        differences.append(np.abs(array - known[f"{prefix}{number}"]).max())
    return float(max(differences))


def gradients(cell: Any, inputs: tuple[Any, ...], floats: bool) -> tuple[Any, list[Any]]:
    """Return the gradients of the sum of the squares of all outputs: by the first input, and by the parameters."""
    def total(*first: Any) -> tuple[Any, None]:
        outputs = cell(*(first or inputs[:1]), *inputs[1:])
        return sum(keras.ops.sum(keras.ops.square(one)) for one in flat(outputs)), None

    _, _, found = backend.value_and_gradient(total, cell.trainable_params(), inputs[:1] if floats else ())
    dense = [keras.ops.convert_to_tensor(one) for one in found]
    return (dense[-1], dense[:-1]) if floats else (None, dense)
