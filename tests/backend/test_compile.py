"""Compiling: the choice of XLA, loops of many steps, traces counted, eager mode."""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, data_backend
from mixtrain.backend import DeviceInfo, JitChoice
from tests.backends import ON_TENSORFLOW, on_jax_only_some, quick_every

CPU = DeviceInfo("CPU", "CPU", fast_bfloat16=False)
PLAIN, XLA = JitChoice(False, "a test"), JitChoice(True, "a test")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("kind", "dtypes", "jit"),
    [
        ("CPU", {"float32"}, False),
        ("CPU", {"bfloat16", "float32"}, False),
        ("CPU", {"float16", "float32"}, True),
        ("CPU", {"float16", "bfloat16"}, True),
        ("GPU", {"float16"}, False),
        ("TPU", {"float32"}, True),
    ],
)
def test_the_choice_follows_device_and_dtype_and_says_why(kind: Any, dtypes: set[str], jit: bool) -> None:
    choice = backend.choose_jit({mixtrain.dtype.as_dtype(d) for d in dtypes}, DeviceInfo(kind, kind, False))
    assert choice.jit is jit
    assert len(choice.reason) > 10


@pytest.mark.tensorflow
@pytest.mark.parametrize(("level", "jit"), [("O0", False), ("O1", True), ("O2", True)])
def test_jit_level_overrides_the_choice(level: str, jit: bool) -> None:
    mixtrain.set_context(jit_level=level)
    for dtype in (mixtrain.float16, mixtrain.float32):
        choice = backend.choose_jit({dtype}, CPU)
        assert choice.jit is jit and level in choice.reason


def test_a_compiled_function_is_traced_once_for_each_signature() -> None:
    compiled = backend.compile_function(lambda x: x * 2, choice=PLAIN)
    for _ in range(3):
        compiled(backend.to_tensor(np.ones(2, np.float32)))
    assert backend.trace_count(compiled) == 1
    compiled(backend.to_tensor(np.ones(3, np.float32)))
    assert backend.trace_count(compiled) == 2


def test_a_function_that_is_called_directly_gives_the_same_and_is_traced_as_often() -> None:
    call = backend.called_directly(backend.compile_function(lambda x: (x * 2, x + 1), choice=PLAIN))
    for value in (1.0, 2.0, 3.0):
        double, more = call(backend.to_tensor(np.float32([value])))
        assert np.asarray(double).tolist() == [2 * value] and np.asarray(more).tolist() == [value + 1]
    assert backend.trace_count(call) == 1


def test_pynative_mode_leaves_a_function_as_it_is() -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)

    def function(x: Any) -> Any:
        return x

    assert backend.compile_function(function, choice=PLAIN) is function
    assert backend.called_directly(function) is function
    assert backend.trace_count(function) == 0


@quick_every(3)
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
@pytest.mark.parametrize("choice", on_jax_only_some([PLAIN, XLA]), ids=lambda choice: "xla" if choice.jit else "plain")
def test_a_loop_runs_every_step_in_order_and_returns_each_result(choice: JitChoice, mode: int) -> None:
    mixtrain.set_context(mode=mode)
    total = keras.Variable(np.float32(0), trainable=False)

    def step(x: Any) -> tuple[Any, Any]:
        total.assign(total + keras.ops.sum(x))
        return backend.to_tensor(total), keras.ops.sum(x) > 2

    data = np.arange(6, dtype=np.float32).reshape(6, 1)
    iterator = data_backend.pipeline_from_arrays([data]).graph_iterator()
    sums, large = backend.CompiledSteps(step, choice=choice).run_stream(iterator, 4)
    assert backend.to_numpy(sums).tolist() == [0, 1, 3, 6]
    assert backend.to_numpy(large).tolist() == [False, False, False, True]
    more, _ = backend.CompiledSteps(step, choice=choice).run_stream(iterator, 2)
    assert backend.to_numpy(more).tolist() == [10, 15]


def test_a_loop_past_the_end_of_its_data_raises_the_end_of_stream() -> None:
    iterator = data_backend.pipeline_from_arrays([np.zeros((2, 1), np.float32)]).graph_iterator()
    loop = backend.CompiledSteps(lambda x: (keras.ops.sum(x),), choice=PLAIN).run_stream
    with pytest.raises(data_backend.EndOfStream):
        loop(iterator, 3)


@pytest.mark.parametrize("choice", on_jax_only_some([PLAIN, XLA]), ids=lambda choice: "xla" if choice.jit else "plain")
@pytest.mark.parametrize("predicate", [True, False])
def test_a_branch_writes_only_on_its_own_side(choice: JitChoice, predicate: bool) -> None:
    yes, no = (keras.Variable(np.float32(0), trainable=False) for _ in range(2))

    def function(flag: Any) -> Any:
        backend.cond(flag, lambda: yes.assign(1.0), lambda: no.assign(1.0), writes=[yes, no])
        return flag

    backend.compile_function(function, choice=choice)(backend.to_tensor(predicate))
    assert (float(backend.to_numpy(yes)), float(backend.to_numpy(no))) == ((1, 0) if predicate else (0, 1))


def test_gradients_of_variables_of_tensors_and_of_nothing() -> None:
    weight, unused = keras.Variable(np.float32(3)), keras.Variable(np.float32(1))
    value, auxiliary, gradients = backend.value_and_gradient(lambda: (weight * weight, "seen"), [weight, unused])
    assert (float(value), auxiliary, float(gradients[0]), gradients[1]) == (9, "seen", 6, None)


def test_gradients_of_tensors_come_after_those_of_variables_and_numbers_that_are_no_floats_have_none() -> None:
    weight, x = keras.Variable(np.float32(3)), backend.to_tensor(np.float32(5))

    def loss(x: Any, count: Any) -> Any:
        return weight * x * keras.ops.cast(count, "float32"), None

    _, _, gradients = backend.value_and_gradient(loss, [weight], [x, backend.to_tensor(np.int32(2))])
    assert [None if gradient is None else float(gradient) for gradient in gradients] == [10, 6, None]


def test_a_gradient_inside_a_gradient_goes_through_what_the_loss_writes() -> None:
    weight, seen = keras.Variable(np.float32(3)), keras.Variable(np.float32(0), trainable=False)

    def cube() -> Any:
        seen.assign_add(1.0)
        return weight * weight * weight, None

    def first() -> Any:
        (gradient,) = backend.value_and_gradient(cube, [weight])[2]
        return gradient, gradient

    _, gradient, (second,) = backend.value_and_gradient(first, [weight])
    assert (float(gradient), float(second)) == (27, 18)
    assert float(backend.to_numpy(seen)) == 1


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_one_value_that_is_not_finite_is_found_anywhere(bad: float, dtype: str) -> None:
    good = backend.to_tensor(np.ones((3, 4), np.float32), dtype)
    for place in itertools.product(range(3), range(4)):
        array = np.ones((3, 4), np.float32)
        array[place] = bad
        assert not bool(backend.all_finite([good, None, backend.to_tensor(array, dtype)]))
    assert bool(backend.all_finite([good, None]))
    assert bool(backend.all_finite([]))


def test_gradients_of_an_embedding_are_handled_sparse_or_dense() -> None:
    table = keras.Variable(np.ones((5, 2), np.float32))

    def loss() -> tuple[Any, Any]:
        return keras.ops.sum(keras.ops.take(table, [1, 3], axis=0)), None

    gradient = backend.value_and_gradient(loss, [table])[2][0]
    assert backend.is_sparse(gradient) is ON_TENSORFLOW
    halved = backend.map_values(lambda values: values / 2, gradient)
    np.testing.assert_array_equal(backend.to_numpy(keras.ops.convert_to_tensor(halved)).sum(axis=1), [0, 1, 0, 1, 0])
    assert bool(backend.all_finite([gradient]))
    broken = backend.map_values(lambda values: values * np.float32(np.inf), gradient)
    assert not bool(backend.all_finite([broken]))


def norm_of(gradients: list[Any]) -> float:
    return float(backend.check_gradients(gradients, [])[2])


def test_rows_of_an_embedding_that_come_twice_are_added_before_they_are_squared() -> None:
    gradients = []
    for sparse in (True, False):
        table = keras.Variable(np.ones((5, 2), np.float32))

        def loss(table: Any = table, sparse: bool = sparse) -> tuple[Any, Any]:
            rows = keras.ops.take(table, [1, 3, 1, 1], axis=0) if sparse else keras.ops.matmul(
                keras.ops.one_hot([1, 3, 1, 1], 5), table
            )
            return keras.ops.sum(rows * np.float32([[1.0], [2.0], [3.0], [-1.0]])), None

        gradients.append(backend.value_and_gradient(loss, [table])[2])
    sparse, dense = (norm_of([None, *values]) for values in gradients)
    assert sparse == dense == pytest.approx(np.sqrt(2 * (3.0**2 + 2.0**2)))


def test_the_norm_of_many_gradients_is_that_of_one_vector() -> None:
    arrays = [np.full(shape, 0.5, np.float32) for shape in ((3, 4), (5,), (), (2**14,))]
    norm = norm_of([None, *map(backend.to_tensor, arrays)])
    assert norm == pytest.approx(np.sqrt(0.25 * (12 + 5 + 1 + 2**14)), rel=1e-6)
    assert np.isnan(norm_of([backend.to_tensor(np.float32([1.0, np.nan]))]))
    assert norm_of([backend.to_tensor(np.float32([1.0, 1e30]))]) == np.inf


@pytest.mark.parametrize("values, finite", [
    ([1.0, -2.0], True), ([1.0, 1e30], True), ([1.0, np.inf], False), ([-np.inf, np.inf], False),
    ([np.nan, 0.0], False),
])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_finite_although_the_norm_is_too_large(
    values: list[float], finite: bool, compiled: bool
) -> None:
    def look(gradient: Any) -> tuple[Any, Any]:
        gradients = [backend.to_tensor(np.ones((2, 2), np.float32)), None, gradient]
        return backend.check_gradients(gradients, [])[1:]

    run = backend.compile_function(look, choice=PLAIN) if compiled else look
    all_finite, norm = run(backend.to_tensor(np.float32(values)))
    assert bool(all_finite) is finite
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.sqrt(np.float32(4) + np.square(np.float32(values)).sum())
    np.testing.assert_allclose(float(norm), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 5, 32, 40])
@pytest.mark.parametrize("until", [False, True])
def test_a_group_of_any_length_has_the_results_of_its_steps_one_by_one(count: int, until: bool) -> None:
    total = keras.Variable(np.zeros(3, np.float32))

    def step(x: Any) -> tuple[Any, Any]:
        total.assign(total * 0.5 + x)
        return keras.ops.sum(total), keras.ops.sum(x) > 1e6

    batches = [(backend.to_tensor(np.full(3, 0.1 * number, np.float32)),) for number in range(count)]
    steps = backend.CompiledSteps(step, choice=PLAIN)
    singly = [float(steps.run(*batch)[0]) for batch in batches]
    end = backend.to_numpy(total)
    total.assign(np.zeros(3, np.float32))
    (sums, large), undo = steps.run_batches(batches, (lambda found: found[1]) if until else None)
    assert backend.to_numpy(sums).tolist() == singly and backend.to_numpy(large).tolist() == [False] * count
    assert np.array_equal(backend.to_numpy(total), end)
    undo()
    assert not backend.to_numpy(total).any()
