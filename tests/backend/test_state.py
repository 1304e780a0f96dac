"""State of functions on JAX: which variables a function uses, what is donated, and what others keep."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
if keras.backend.backend() == "jax":
    from mixtrain.backend.jax.state import Stateful, StateScope, current, outside_scopes, put
    from mixtrain.backend.jax.tensor import stored


def variable(value: float, **options: Any) -> keras.Variable:
    return keras.Variable(np.full(3, value, np.float32), **options)


def values(held: keras.Variable) -> list[float]:
    return backend.to_numpy(held).tolist()


ONES = np.ones(3, np.float32)


def test_a_first_trace_finds_what_is_read_and_what_is_written() -> None:
    factor, total, other = variable(2), variable(0), variable(9)
    seen = []

    def add(x: Any) -> Any:
        seen.append(len(seen))
        total.assign_add(x * factor.value)
        return total.value - 1.0

    compiled = Stateful(add)
    assert backend.to_numpy(compiled(ONES)).tolist() == [1.0] * 3
    assert compiled.read == [factor] and compiled.written == [total]
    assert (len(seen), compiled.traces) == (2, 1)
    factor.assign([10.0, 10.0, 10.0])
    assert backend.to_numpy(compiled(ONES)).tolist() == [11.0] * 3
    assert (values(total), values(other), len(seen)) == ([12.0] * 3, [9.0] * 3, 2)
    backend.to_numpy(compiled(np.float32(1.0)))
    assert compiled.traces == 2 and backend.trace_count(compiled) == 2


def test_a_variable_that_is_used_on_one_path_only_is_found_when_that_path_is_traced() -> None:
    total, late = variable(0), variable(5)
    mode = {"late": False}

    def add(x: Any) -> Any:
        total.assign_add(late.value if mode["late"] else x)
        return x

    compiled = Stateful(add)
    compiled(ONES)
    mode["late"] = True
    compiled(np.ones((1, 3), np.float32))
    assert compiled.read == [late] and values(total) == [6.0] * 3


def test_a_variable_without_a_change_is_not_handed_over() -> None:
    held = variable(1)
    compiled = Stateful(lambda x: held.value + x)
    before = stored(held)
    compiled(ONES)
    compiled(ONES)
    assert stored(held) is before and not before.is_deleted()


def test_the_memory_of_a_written_variable_is_given_away_but_not_what_others_hold() -> None:
    total, shown = variable(0), variable(7)

    def step(x: Any) -> Any:
        total.assign_add(x)
        shown.assign(shown.value * 2.0)
        return x

    compiled = Stateful(step)
    compiled(ONES)
    kept = shown.value  # Somebody reads it, and keeps it.
    snapshot = backend.snapshot(total)
    given = id(stored(total))
    compiled(ONES)
    assert backend.to_numpy(kept).tolist() == [14.0] * 3 and backend.to_numpy(snapshot).tolist() == [1.0] * 3
    assert (values(total), values(shown)) == ([2.0] * 3, [28.0] * 3)
    assert id(stored(total)) != given or stored(total) is not kept


def test_an_array_that_two_variables_hold_is_handed_over_once() -> None:
    one = variable(1)
    other = variable(0)
    put(other, stored(one))

    def step(x: Any) -> Any:
        one.assign_add(x)
        other.assign(other.value - x)
        return x

    compiled = Stateful(step)
    for _ in range(2):
        compiled(ONES)
    assert (values(one), values(other)) == ([3.0] * 3, [-1.0] * 3)


def test_a_failed_call_leaves_variables_as_they_were() -> None:
    held = variable(1)

    def fails(x: Any) -> Any:
        held.assign(held.value + x)
        raise KeyError("it fails")

    with pytest.raises(KeyError, match="it fails"):
        Stateful(fails)(ONES)
    assert values(held) == [1.0] * 3 and backend.traces() == ()


def test_values_before_a_call_are_returned_without_running_it() -> None:
    held = variable(1)
    compiled = Stateful(lambda x: held.assign(held.value + x))
    ((written, value),) = compiled.values_before(ONES)
    assert written is held and value is stored(held)
    compiled(ONES)
    assert backend.to_numpy(value).tolist() == [1.0] * 3 and values(held) == [2.0] * 3


def test_in_a_scope_variables_have_the_values_they_were_given_and_keep_their_own() -> None:
    held, other = variable(1), variable(2)
    with StateScope([held], [ONES * 5]) as scope:
        assert backend.to_numpy(held).tolist() == [5.0] * 3 and backend.to_numpy(other).tolist() == [2.0] * 3
        other.assign(ONES * 8)
        with StateScope() as inner:
            assert backend.to_numpy(other).tolist() == [8.0] * 3
            other.assign(ONES * 9)
        assert backend.to_numpy(other).tolist() == [8.0] * 3
    assert list(scope.written.values()) == [other] and list(scope.read.values()) == [other]
    assert list(inner.read.values()) == [other]
    assert (values(held), values(other)) == ([1.0] * 3, [2.0] * 3)


def test_outside_of_all_scopes_variables_have_their_own_values_and_computing_gives_numbers() -> None:
    held = variable(1)
    seen = []

    def run(x: Any) -> Any:
        held.assign(x)
        with outside_scopes():
            assert backend.traces() == () and not backend.is_symbolic(current(held) * 2.0)
            seen.append((float(keras.ops.sum(held)), keras.Variable(ONES)))
        assert len(backend.traces()) == 1 and backend.is_symbolic(current(held))
        return x

    Stateful(run)(ONES * 4)
    assert {total for total, _ in seen} == {3.0} and values(held) == [4.0] * 3
    assert values(seen[0][1]) == [1.0] * 3


def test_scopes_are_open_again_after_an_error_outside_of_them() -> None:
    held = variable(1)
    with StateScope([held], [ONES * 5]):
        with pytest.raises(KeyError), outside_scopes():
            raise KeyError("inside")
        assert backend.to_numpy(held).tolist() == [5.0] * 3
    assert values(held) == [1.0] * 3


def test_a_compiled_function_inside_another_takes_and_leaves_the_values_there() -> None:
    total, factor = variable(1), variable(3)

    def inner(x: Any) -> Any:
        total.assign(total.value * factor.value)
        return total.value + x

    within = Stateful(inner)

    def outer(x: Any) -> Any:
        total.assign_add(x)
        first = within(x)
        return first, within(x)

    compiled = Stateful(outer)
    first, second = compiled(ONES)
    assert (backend.to_numpy(first).tolist(), backend.to_numpy(second).tolist()) == ([7.0] * 3, [19.0] * 3)
    assert values(total) == [18.0] * 3
    compiled(ONES)
    assert values(total) == [171.0] * 3
    assert backend.to_numpy(within(ONES)).tolist() == [514.0] * 3


def test_gradients_go_through_a_compiled_function() -> None:
    weight, seen = variable(2), variable(0, trainable=False)

    def square(x: Any) -> Any:
        seen.assign_add(x)
        return keras.ops.sum(weight.value * weight.value * x)

    compiled = Stateful(square)
    for number in (1, 2):
        _, _, (gradient, of_x) = backend.value_and_gradient(
            lambda x: (compiled(x), None), [weight], [backend.to_tensor(ONES)]
        )
        assert backend.to_numpy(gradient).tolist() == [4.0] * 3 and backend.to_numpy(of_x).tolist() == [4.0] * 3
        assert values(seen) == [number] * 3
    assert values(weight) == [2.0] * 3


def test_both_sides_of_a_branch_are_computed_and_chosen_number_by_number() -> None:
    yes, both, sides = variable(0), variable(1), []

    def function(flag: Any) -> Any:
        def on_true() -> None:
            sides.append("true")
            yes.assign(ONES * 5)
            both.assign(both.value + 1.0)

        def on_false() -> None:
            sides.append("false")
            both.assign(both.value * np.float32(np.nan))

        backend.cond(flag, on_true, on_false)
        return flag

    compiled = Stateful(function)
    compiled(np.array(True))
    assert (values(yes), values(both)) == ([5.0] * 3, [2.0] * 3)
    yes.assign(ONES)
    compiled(np.array(False))
    assert values(yes) == [1.0] * 3 and np.isnan(values(both)).all()
    assert sides[-2:] == ["true", "false"] and compiled.traces == 1


def test_a_branch_that_python_can_decide_runs_one_side() -> None:
    held, sides = variable(0), []
    backend.cond(backend.to_tensor(True), lambda: held.assign(ONES), lambda: sides.append("false"), writes=[held])
    assert values(held) == [1.0] * 3 and sides == []
