"""`MultitypeFuncGraph`: the definition that runs is the one for the arguments' types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import ops


def named(*types: Any) -> ops.MultitypeFuncGraph:
    """Return a function whose result tells which of the definitions ran."""
    graph = ops.MultitypeFuncGraph("which")
    for one in types:
        graph.register(*one)(lambda *args, one=one: one)
    return graph


X = mixtrain.Tensor([1.0, 2.0])
KINDS = (
    "Bool", "Int", "Float", "Parameter", "Tensor", "String", "Tuple", "List", "Dictionary", "None", "TypeType", "Slice",
    "RowTensor", "Ellipsis", "Function",
)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "Bool"), (3, "Int"), (3.5, "Float"), (X, "Tensor"), (np.ones(2), "Tensor"), ("a", "String"),
        ((1, 2), "Tuple"), ([1], "List"), ({}, "Dictionary"), (None, "None"), (mixtrain.float32, "TypeType"),
        (slice(2), "Slice"), (len, "Function"), (ops.ReLU(), "Function"), (..., "Ellipsis"), (np.float32(2), "Float"),
        (mixtrain.Parameter(1.0, name="p"), "Parameter"),
    ],
)
def test_each_value_finds_its_kind(value: Any, kind: str) -> None:
    assert named(*((item,) for item in KINDS))(value) == (kind,)


@pytest.mark.tensorflow
def test_the_rows_of_a_sparse_gradient_find_their_kind() -> None:
    tf = pytest.importorskip("tensorflow")
    rows = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([3, 2]))
    assert named(*((item,) for item in KINDS))(rows) == ("RowTensor",)


def test_the_first_definition_that_fits_runs_and_numbers_are_numbers_of_every_kind() -> None:
    graph = named(("Number", "Number"), ("Number", "Tensor"), ("Tensor", "Tensor"))
    assert graph(True, 2.5) == ("Number", "Number")
    assert graph(2, X) == ("Number", "Tensor")
    assert graph(X, mixtrain.Parameter(1.0, name="p")) == ("Tensor", "Tensor")


def test_formats_and_items_can_be_asked_for() -> None:
    graph = named(("Tensor[Float16]",), ("Tensor[Float32]",), ("Tuple[Tensor]",), ("Tuple",), ("Float32",), ("Int64",))
    assert graph(X) == ("Tensor[Float32]",)
    assert graph(ops.cast(X, mixtrain.float16)) == ("Tensor[Float16]",)
    assert (graph((X, X)), graph((X, 1))) == (("Tuple[Tensor]",), ("Tuple",))
    assert (graph(1.0), graph(1)) == (("Float32",), ("Int64",))


def test_register_returns_the_function() -> None:
    graph = ops.MultitypeFuncGraph("twice")

    @graph.register("Number")
    def twice(x: float) -> float:
        return 2 * x

    assert (twice(1), graph(2)) == (2, 4)


def test_one_definition_takes_a_number_for_a_scalar_tensor_and_the_reverse() -> None:
    assert named(("Tensor", "Tensor"))(0.5, X) == ("Tensor", "Tensor")
    assert named(("Number", "Tensor"))(mixtrain.Tensor(0.5), X) == ("Number", "Tensor")


@pytest.mark.parametrize("arguments", [("a", X), (X,), (X, X, X), (None, X)])
def test_no_match_names_the_types_and_what_is_registered(arguments: Any) -> None:
    graph = named(("Tensor", "Tensor"))
    with pytest.raises(TypeError, match=r"MultitypeFuncGraph which: .*registered: \(Tensor, Tensor\); got \(.*Write @"):
        graph(*arguments)


def test_two_definitions_are_strict() -> None:
    with pytest.raises(TypeError, match=r"\(Tensor, Tensor\); \(Number, Number\); got \(Number, Tensor\)"):
        named(("Tensor", "Tensor"), ("Number", "Number"))(1.0, X)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="Tensor"):
        ops.MultitypeFuncGraph("f").register("Tensr")
    with pytest.raises(TypeError, match="a type must be a name"):
        ops.MultitypeFuncGraph("f").register(3)
    with pytest.raises(TypeError, match="name must be a str"):
        ops.MultitypeFuncGraph(3)  # type: ignore[arg-type]
