"""Operations of a program on JAX that are done in another way."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
if keras.backend.backend() == "jax":
    import jax
    import jax.numpy as jnp

    from mixtrain.backend.jax.rewrite import rewritten

X = np.array([1.0, 2.0, -3.0], np.float32)


def doubled(primitive: Any, parameters: dict[str, Any], x: Any) -> Any:
    return 2 * x


def test_operations_are_found_in_compiled_functions_and_in_gradients() -> None:
    def function(x: Any) -> Any:
        return {"value": jax.jit(jnp.sin)(x), "gradient": jax.grad(lambda x: jax.nn.relu(jnp.sin(x)).sum())(x)}

    results = rewritten(function, {"sin": doubled})(X)
    np.testing.assert_array_equal(results["value"], 2 * X)
    np.testing.assert_allclose(results["gradient"], np.where(X > 0, np.cos(X), 0), rtol=1e-6)


def test_a_rewrite_that_returns_none_and_operations_without_one_leave_the_program_as_it_is() -> None:
    def function(x: Any) -> Any:
        values, places = jax.lax.top_k(jnp.sin(x), 2)
        return values, places, jax.lax.scan(lambda carry, row: (carry + row, carry), 0.0, x)

    results = rewritten(function, {"sin": lambda primitive, parameters, x: None})(X)
    for seen, expected in zip(jax.tree.leaves(results), jax.tree.leaves(function(X)), strict=True):
        np.testing.assert_array_equal(seen, expected)
