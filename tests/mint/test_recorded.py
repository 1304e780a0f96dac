"""Every function and Cell of `mint` gives the values, dtypes, gradients and errors that were recorded.

recorded.json holds a call a line. The numbers are MindSpore 2.10's on a CPU; where it needs an Ascend, PyTorch 2.13's.
"""

from __future__ import annotations

import ast
import json
import pathlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, mint, nn, ops
from tests.backends import ON_TENSORFLOW, quick_every
from tests.mint.recorded_form import form
from tests.mint.recorded_inputs import INPUTS

pytestmark = pytest.mark.filterwarnings("ignore:Explicitly requested dtype")  # JAX has 32 bits of each.
RECORDED: Final[dict[str, dict[str, Any]]] = json.loads((pathlib.Path(__file__).parent / "recorded.json").read_text())
VALUES: Final = {call: record for call, record in RECORDED.items() if "out" in record}
ERRORS: Final = {
    "ValueError": ValueError, "TypeError": TypeError, "RuntimeError": (RuntimeError, ValueError),
    "any": (ValueError, TypeError, IndexError, RuntimeError),  # No kernel of the oracle came to look at it.
}
# Their results have shapes that values decide, or are Python's; or they create Cells.
_OF_VALUES: Final = (
    "bincount", "histc", "one_hot(lab)", "lambda", "unique", "nonzero", "where(b)", "masked_select", "item(",
    "m.equal(", "allclose", "N.Dropout", "interleave(x, k", "interleave(input=v",
)
JAX_DTYPES: Final = {} if ON_TENSORFLOW else {"int64": "int32", "float64": "float32"}


def fixed(cell: nn.Cell) -> nn.Cell:
    """Give the parameters of a Cell the values that were recorded with."""
    for number, parameter in enumerate(cell.trainable_params()):
        values = np.sin(np.arange(parameter.size) * 0.7 + number) * 0.5
        parameter.set_data(Tensor(values.reshape(parameter.shape).astype(np.float32)))
    return cell.set_train(False)


# Of the calls: `W` gives the parameters of a Cell fixed values; `T` also sets it to training.
NAMES: Final = {
    "m": mint, "F": mint.nn.functional, "N": mint.nn, "L": mint.linalg, "S": mint.special, "W": fixed,
    "T": lambda cell: fixed(cell).set_train(), "f16": mixtrain.float16, "f32": mixtrain.float32,
    "f64": mixtrain.float64, "i32": mixtrain.int32, "i64": mixtrain.int64,
}


def inputs_of(call: str) -> dict[str, Tensor]:
    """Return the inputs that a call names, as Tensors."""
    names = [node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)]
    return {name: Tensor(INPUTS[name]) for name in dict.fromkeys(names) if name in INPUTS}


def function_of(call: str, inputs: dict[str, Tensor]) -> Callable[..., Any]:
    """Return a call as a function of inputs by name; a Cell is created first, as scripts do."""
    tree = ast.parse(call, mode="eval").body
    names = {**NAMES, **inputs}
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Call):
        names["cell"] = eval(ast.unparse(tree.func), names)
        call = ast.unparse(ast.Call(ast.Name("cell"), tree.args, tree.keywords))
    return lambda **given: eval(call, {**names, **given})


def flat(result: Any) -> list[Any]:
    """Return the parts of a result, in order."""
    return [part for each in result for part in flat(each)] if isinstance(result, (tuple, list)) else [result]


def parts(call: str, result: Any) -> list[Any]:
    """Return the recorded form of a result."""
    result = str(list(result)) if call.endswith(".shape") else result
    return [form(part.asnumpy()) if isinstance(part, Tensor) else str(part) for part in flat(result)]


def check(found: list[Any], expected: list[Any], tolerance: float = 2e-5) -> None:
    """Compare recorded forms; sums are in another order than the oracle's."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, str):
            assert one in (other, JAX_DTYPES.get(other.lower(), other).capitalize())
            continue
        assert one[:2] == [JAX_DTYPES.get(other[0], other[0]), other[1]]
        tolerance = 5e-3 if other[0] == "float16" else tolerance
        np.testing.assert_allclose(np.array(one[2], float), np.array(other[2], float), tolerance, tolerance)


def weighted(result: Any) -> Any:
    """Return the sum of the float parts of a result, each element with a weight."""
    floats = [part for part in flat(result) if isinstance(part, Tensor) and part.is_floating_point()]
    return sum((part * Tensor(np.cos(np.arange(part.size)).reshape(part.shape).astype("f4"))).sum() for part in floats)


@quick_every(17)
@pytest.mark.parametrize("call", VALUES)
def test_values_are_those_recorded(call: str) -> None:
    check(parts(call, function_of(call, inputs_of(call))()), VALUES[call]["out"])


@quick_every(40)
@pytest.mark.parametrize("call", [
    call for call in VALUES if not call.endswith((".shape", ".dtype")) and inputs_of(call)
    and not any(word in call for word in _OF_VALUES)
])
def test_compiled_values_are_those_recorded(call: str) -> None:
    inputs = inputs_of(call)
    function = function_of(call, inputs)
    run = mixtrain.jit(lambda *tensors: function(**dict(zip(inputs, tensors, strict=True))))
    check(parts(call, run(*inputs.values())), VALUES[call]["out"])


@quick_every(17)
@pytest.mark.parametrize("call", [call for call, record in VALUES.items() if "grad" in record and "clone" not in call])
def test_gradients_are_those_recorded(call: str) -> None:
    inputs, expected = inputs_of(call), VALUES[call]["grad"]
    names, function = tuple(expected), function_of(call, inputs)

    def total(*values: Tensor) -> Tensor:
        return weighted(function(**dict(zip(names, values, strict=True))))

    found = ops.grad(total, tuple(range(len(names))))(*[inputs[name] for name in names])
    # JAX solves triangles in blocks, whose rounding the small numbers on this diagonal enlarge.
    tolerance = 5e-3 if "f16" in call else 5e-4 if "triangular_solve" in call else 2e-5
    check(parts("", found), list(expected.values()), tolerance)


@quick_every(4)
@pytest.mark.parametrize("call", [call for call, record in RECORDED.items() if "error" in record])
def test_errors_are_of_the_recorded_types(call: str) -> None:
    with pytest.raises(ERRORS[RECORDED[call]["error"]]):
        function_of(call, inputs_of(call))()
