"""The checks that layers of scripts import from `_checkparam` accept and refuse what MindSpore's do."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain
from mixtrain import _checkparam as validator, nn
from mixtrain._checkparam import INC_BOTH, INC_NEITHER, Rel, Validator, check_value_type, twice

ACCEPTED: dict[str, tuple[Any, ...]] = {
    "check_value_type": ("rate", 0.5, [float, int], "Layer"), "check_bool": (True, "flag", "Layer"),
    "check_positive_int": (1, "size", "Layer"), "check_non_negative_int": (0, "size", "Layer"),
    "check_positive_float": (0.1, "rate"), "check_non_negative_float": (0.0, "rate"),
    "check_int_range": (3, 0, 3, INC_BOTH, "size", "Layer"), "check_float_range": (0.5, 0.0, 1.0, INC_NEITHER, "rate"),
    "check_subclass": ("cell", nn.ReLU, nn.Cell, "Layer"), "check_string": ("same", ["same", "valid"], "mode"),
    "check_type_name": ("x", mixtrain.float32, [mixtrain.float16, mixtrain.float32], "Layer"),
    "check_int": (3, 1, Rel.GE, "size", "Layer"), "check": ("rank", 2, "rank of y", 2, Rel.EQ, "Layer"),
    "check_isinstance": ("cell", nn.ReLU(), nn.Cell), "check_is_int": (3,), "check_is_float": (3.0,),
}
REFUSED: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("check_value_type", ("rate", True, [int], "Layer"), TypeError, "Layer: rate must be of type int; got bool True"),
    ("check_bool", (1, "flag", "Layer"), TypeError, "Layer: flag must be of type bool"),
    ("check_positive_int", (0, "size", "Layer"), ValueError, "Layer: size must be > the bound, 0; got 0"),
    ("check_positive_int", (1.0, "size", "Layer"), TypeError, "Layer: size must be an int"),
    ("check_positive_float", (1, "rate", "Layer"), TypeError, "Layer: rate must be a float"),
    ("check_int_range", (4, 0, 3, INC_BOTH, "size", "Layer"), ValueError, r"Layer: size must be in \[0, 3\]; got 4"),
    ("check_float_range", (1.0, 0.0, 1.0, INC_NEITHER, "rate"), ValueError, r"rate must be in \(0.0, 1.0\); got 1.0"),
    ("check_subclass", ("cell", int, nn.Cell, "Layer"), TypeError, "Layer: cell must be a subclass of"),
    ("check_string", ("full", ["same", "valid"], "mode"), ValueError, "mode must be one of"),
    ("check_int", (0, 1, Rel.GE, "size", "Layer"), ValueError, "size must be >= the bound, 1; got 0"),
]


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_valid_argument_is_accepted(name: str) -> None:
    arguments = ACCEPTED[name]
    value = getattr(validator, name)(*arguments)
    assert value is None or value in arguments
    assert getattr(Validator, name) is getattr(validator, name)


@pytest.mark.parametrize(("name", "arguments", "error", "message"), REFUSED)
def test_an_invalid_argument_is_refused_with_its_name(
    name: str, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(validator, name)(*arguments)


def test_twice_makes_a_pair_and_keeps_one() -> None:
    assert (twice(3), twice((1, 2)), check_value_type("x", 1, int)) == ((3, 3), (1, 2), 1)


def test_a_decorated_function_takes_what_it_says_and_none() -> None:
    @validator.args_type_check(str, rate=(int, float))
    def describe(name: str, rate: float | None = None) -> str:
        return f"{name} {rate}"

    assert (describe("x", rate=0.5), describe("x")) == ("x 0.5", "x None")
    with pytest.raises(TypeError, match=r"describe: rate must be of type .*; got str 'fast'"):
        describe("x", "fast")
    validator.check_types_same_and_valid({"x": mixtrain.float32, "y": mixtrain.float32}, [mixtrain.float32], "Layer")
    with pytest.raises(TypeError, match="Layer: y must be Float32, as x is"):
        validator.check_types_same_and_valid(
            {"x": mixtrain.float32, "y": mixtrain.float16}, [mixtrain.float32, mixtrain.float16], "Layer"
        )
