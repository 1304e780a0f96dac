"""The functions of the operator table on JAX: the formats in what is traced from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import pytest

from mixtrain import amp, backend, boundary
from tests.backends import ON_TENSORFLOW
from tests.compat.pytorch.autocast_values import KNOWN, modules, names_for

if ON_TENSORFLOW:
    pytest.skip("about what JAX traces", allow_module_level=True)
jax = pytest.importorskip("jax")

LEFT_OUT = (
    "K.segment_sum(", "K.segment_prod(",  # Keras on JAX must be told how many segments there are.
    "K.max_pool(", "K.average_pool(",  # It fails there for a number as the size.
)
FLOATS = ("float16", "bfloat16", "float32")
HALF = "bfloat16"


def traced(kind: str) -> Iterator[tuple[str, set[str], set[str]]]:
    """Trace the functions of a class, of the largest every third.

    Gives each with the formats of its float results, and of what it multiplies.
    """
    from mixtrain.backend.jax.state import StateScope

    names = names_for("float32" if kind == "half" else HALF)
    weight = names.pop("w")
    for expression in KNOWN[kind][:: 3 if kind == "float32" else 1]:
        if " << " in expression or expression.startswith(LEFT_OUT):
            continue

        def run(values: dict[str, Any], expression: str = expression) -> Any:
            with StateScope(), amp.autocast(HALF):
                given = boundary.to_backend_tensors(values) if expression.startswith("K.") else values
                outputs = keras.tree.flatten(eval(expression, modules() | given | {"w": weight}))
            outputs = boundary.to_backend_tensors(outputs)
            return [value for value in outputs if backend.is_tensor(value)]

        program = jax.make_jaxpr(run)(names)
        results = {str(value.dtype) for value in program.out_avals} & set(FLOATS)
        yield expression, results, set(multiplied_in(program.jaxpr))


def multiplied_in(program: Any) -> Iterator[str]:
    """Give the formats of the factors of all matrix products and convolutions."""
    for equation in program.eqns:
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            yield from (str(value.aval.dtype) for value in equation.invars)
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "jaxpr")):
            if hasattr(inner, "jaxpr") or hasattr(inner, "eqns"):
                yield from multiplied_in(getattr(inner, "jaxpr", inner))


def test_products_are_traced_in_half() -> None:
    wrong = [row for row in traced("half") if row[1] != {HALF} or not row[2] <= {HALF}]
    assert wrong == []


@pytest.mark.slow
def test_what_leaves_the_range_of_half_is_traced_in_float32() -> None:
    wrong = [row for row in traced("float32") if row[1] != {"float32"} and "K.eig(" not in row[0]]
    assert wrong == []


def test_what_brings_tensors_together_is_traced_in_the_widest_format() -> None:
    assert [row for row in traced("promote") if row[1] != {"float32"}] == []


def test_everything_else_is_traced_in_what_it_is_given() -> None:
    assert [row for row in traced("inputs") if row[1] != {HALF}] == []
