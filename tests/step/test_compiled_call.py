"""A function of a cell's is compiled once, and anew when the precision of a layer, the mode or `jit_level` changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain import backend
from mixtrain.precision.apply import apply_plan
from mixtrain.precision.planner import plan_precision
from mixtrain.step.compiled_call import CompiledCall

X = mixtrain.Tensor(np.ones((2, 3), np.float32))


def _call(net: Any) -> tuple[CompiledCall, list[str]]:
    """Return a network's compiled call, and the formats of the choices that were asked for."""
    asked: list[str] = []

    def choice() -> backend.JitChoice:
        asked.append(str(net(X).dtype))
        return backend.JitChoice(False, "a test")

    return CompiledCall(net, net, choice=choice), asked


def test_calls_of_one_form_are_traced_once_and_the_choice_is_asked_for_once() -> None:
    net = nn.Dense(3, 1)
    call, asked = _call(net)
    result = [backend.to_numpy(call(X)) for _ in range(3)]
    assert (call.traces(), len(asked)) == (1, 1)
    assert all((item == result[0]).all() for item in result)
    assert np.abs(result[0] - net(X).asnumpy()).max() < 1e-6


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.to_float(mixtrain.float16),
        lambda net: mixtrain.set_context(jit_level="O0"),
        lambda net: mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE),
    ],
    ids=["precision", "jit_level", "mode"],
)
def test_what_it_was_compiled_for_may_change_and_it_is_compiled_anew_once(change: Any) -> None:
    net = nn.Dense(3, 1)
    call, asked = _call(net)
    call(X)
    before = call.compiled()
    change(net)
    call(X)
    after = call.compiled()
    assert after is not before and call.compiled() is after
    assert len(asked) == 2


def test_a_failure_to_choose_leaves_the_next_call_to_choose_again() -> None:
    answers: list[Any] = [ValueError("no"), backend.JitChoice(False, "a test")]

    def choice() -> backend.JitChoice:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    call = CompiledCall(lambda x: x + 1.0, nn.Identity(), choice=choice)
    with pytest.raises(ValueError, match="no"):
        call(X)
    assert (backend.to_numpy(call(X)) == 2).all()


def test_another_way_to_compile_may_be_given() -> None:
    given = []

    def compile_function(function: Any, *, choice: backend.JitChoice) -> Any:
        given.append(choice.reason)
        return function

    call = CompiledCall(
        lambda x: x * 3.0, nn.Identity(), choice=lambda: backend.JitChoice(False, "a test"),
        compile_function=compile_function,
    )
    assert (backend.to_numpy(call(X)) == 3).all() and given == ["a test"]


def test_plans_of_other_networks_cause_no_trace() -> None:
    ours, theirs = nn.Dense(3, 1), nn.Dense(3, 1)
    call, asked = _call(ours)
    call(X)
    before = call.compiled()
    applied = apply_plan(theirs, plan_precision(theirs, "O2"))
    call(X)
    applied.undo()
    call(X)
    assert call.compiled() is before and len(asked) == 1
    apply_plan(ours, plan_precision(ours, "O2"))
    call(X)
    assert call.compiled() is not before and len(asked) == 2
