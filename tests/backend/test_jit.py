"""Functions that users write as compiled calls: their branches, their formats, and Python called while they run."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend
from tests.backends import on_jax_only_some


def tensor(value: float) -> Any:
    return backend.to_tensor(np.float32(value))


def absolute(x: Any) -> Any:
    if x < 0:
        x = -x
    return x


@pytest.mark.tensorflow
def test_a_function_whose_source_can_be_read_may_branch_on_tensors() -> None:
    compiled = backend.compile_once(backend.with_branches(absolute))
    assert [float(compiled(tensor(v))) for v in (-2.0, 3.0)] == [2.0, 3.0]


def test_what_has_no_source_stays_itself() -> None:
    scope: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", scope)
    for function in (scope["twice"], len, functools.partial(absolute), mixtrain.nn.ReLU()):
        assert backend.with_branches(function) is function


@pytest.mark.tensorflow
def test_a_branch_that_is_not_rewritten_is_refused_with_its_name() -> None:
    with pytest.raises(TypeError, match="absolute: .*expected a Python value to decide an if or while .* ops.select"):
        backend.compile_once(absolute)(tensor(2.0))


def test_methods_keep_their_object() -> None:
    class Scale:
        factor = 3.0

        def apply(self, x: Any) -> Any:
            return x * self.factor if self.factor > 0 else x

    assert float(backend.compile_once(backend.with_branches(Scale().apply))(tensor(2.0))) == 6.0


@pytest.mark.parametrize(("jit", "traces"), on_jax_only_some([(None, 1), (False, 1), (True, 1)]))
def test_a_function_is_compiled_at_its_first_call_only(jit: bool | None, traces: int) -> None:
    seen = []
    compiled = backend.compile_once(lambda x: seen.append(1) or x + 1, jit=jit)
    assert [float(compiled(tensor(v))) for v in (1.0, 2.0)] == [2.0, 3.0]
    assert len(seen) == traces


def test_python_is_called_with_values_bfloat16_as_float32() -> None:
    seen: list[Any] = []

    def run(x: Any) -> Any:
        backend.call_python(lambda *arrays: seen.append([(a.dtype.name, a.tolist()) for a in arrays]), [x])
        return x

    half = backend.to_tensor(np.array([1.5], np.float32), "bfloat16")
    run(half)
    backend.to_numpy(backend.compile_once(run)(half))
    assert seen == [[("float32", [1.5])]] * 2


@pytest.mark.tensorflow
def test_sparse_gradients_are_told_apart_and_made_dense() -> None:
    tf = pytest.importorskip("tensorflow")
    sparse = tf.IndexedSlices(tf.ones((2, 1)), tf.constant([1, 1]), tf.constant([3, 1]))
    assert backend.is_sparse(sparse) and not backend.is_sparse(tf.ones(2))
    with np.errstate(all="raise"):
        assert backend.densified(sparse).numpy().tolist() == [[0.0], [2.0], [0.0]]
    assert backend.densified(sparse.values) is sparse.values


def test_variables_can_be_made_while_a_function_is_compiled() -> None:
    made: list[keras.Variable] = []

    def run(x: Any) -> Any:
        if not made:
            with backend.eager_scope():
                made.append(keras.Variable(np.float32(1.0)))
        made[0].assign_add(x)
        return backend.snapshot(made[0])

    compiled = backend.compile_once(run)
    assert [float(compiled(tensor(2.0))) for _ in range(2)] == [3.0, 5.0]
    assert len(made) == 1
