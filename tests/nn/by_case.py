"""Build the cells of tests/nn/cases.py with the reference's parameters, and compare their outputs."""

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
    """Return the reference's arrays, which are concatenated in their file."""
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
    arrays = {key.partition("/")[2]: value for key, value in _arrays().items() if key.partition("/")[0] == name}
    assert arrays, name
    return arrays


def flat(value: Any) -> list[Any]:
    """Return the leaves of nested tuples."""
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (tuple, list)) else [value]


def build(name: str, spec: Case) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the cell with the reference's parameters, its inputs, and the reference's arrays."""
    reference = case(name)
    cell = getattr(nn, spec.name)(*spec.args, **spec.kwargs)
    parameters = list(cell.get_parameters())
    assert [f"p{number}" for number in range(len(parameters))] == [key for key in reference if key.startswith("p")]
    for number, parameter in enumerate(parameters):
        assert tuple(parameter.shape) == reference[f"p{number}"].shape
        parameter.set_data(reference[f"p{number}"])
    inputs = []
    for number, item in enumerate(spec.inputs):
        if item is None:
            inputs.append(None)
        elif isinstance(item, list):
            inputs.append(tuple(Tensor(reference[f"x{number}_{index}"]) for index in range(len(item))))
        else:
            array = reference[f"x{number}"]
            inputs.append(Tensor(array.astype(np.int32) if item[0] in INTS else array))
    return cell.set_train(spec.training), tuple(inputs), reference


def max_difference(values: Any, reference: dict[str, Any], prefix: str) -> float:
    """Return the maximum difference between outputs and the reference's arrays prefix0, prefix1, ..."""
    outputs = flat(values)
    count = sum(key.startswith(prefix) and key[len(prefix) :].isdigit() for key in reference)
    assert len(outputs) == count
    differences = []
    for number, value in enumerate(outputs):
        array = backend.to_numpy(value).astype(np.float32)
        assert array.shape == reference[f"{prefix}{number}"].shape
        differences.append(np.abs(array - reference[f"{prefix}{number}"]).max())
    return float(max(differences))


def gradients(cell: Any, inputs: tuple[Any, ...], floats: bool) -> tuple[Any, list[Any]]:
    """Return the gradients of the sum of squared outputs with respect to the first input and to the parameters."""
    def total(*first: Any) -> tuple[Any, None]:
        outputs = cell(*(first or inputs[:1]), *inputs[1:])
        return sum(keras.ops.sum(keras.ops.square(output)) for output in flat(outputs)), None

    _, _, results = backend.value_and_gradient(total, cell.trainable_params(), inputs[:1] if floats else ())
    dense = [keras.ops.convert_to_tensor(gradient) for gradient in results]
    return (dense[-1], dense[:-1]) if floats else (None, dense)
