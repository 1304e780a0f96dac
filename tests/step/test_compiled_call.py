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


class ReadsValues(nn.Cell):
    """Keeps the columns from the largest on, which it reads, or refuses by a tensor's value."""

    def __init__(self, check: bool = False) -> None:
        super().__init__()
        self.dense, self.check = nn.Dense(4, 4, weight_init="ones", bias_init="zeros"), check

    def construct(self, x: Any) -> Any:
        y = self.dense(x)
        if not self.check:
            return y[:, int(y.mean(0).argmax().asnumpy()) :]
        if all(row.sum() > -1 for row in y):
            return y
        raise ValueError("negative")


@pytest.mark.filterwarnings("ignore:step")
@pytest.mark.parametrize("way", ["cell", "model", "predict"])
@pytest.mark.parametrize("check", [False, True], ids=["reads", "decides"])
def test_a_step_that_reads_values_runs_uncompiled_as_in_pynative_mode(way: str, check: bool) -> None:
    net = ReadsValues(check)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    optimizer = nn.SGD(net.trainable_params(), 0.001)
    if way == "predict":
        assert mixtrain.Model(net).predict(mixtrain.Tensor(x)).asnumpy().tolist() == [[6.0] * 4, [22.0] * 4]
        return
    if way == "cell":
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
        losses = [float(step(mixtrain.Tensor(x), mixtrain.Tensor(x))) for _ in range(2)]
    else:
        history = mixtrain.Model(net, nn.MSELoss(), optimizer).train(2, [(x, x)], verbose=0)
        losses = [float(loss) for loss in history["loss"]]
    # Recorded from MindSpore 2.10.
    assert losses == pytest.approx([147.5, 137.44166564941406 if check else 138.59068298339844], rel=1e-5)


def test_a_step_that_reads_values_warns_once_and_says_what_to_write() -> None:
    net = ReadsValues()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.001))
    with pytest.warns(UserWarning, match="step: the network reads a Tensor's values, so it runs uncompiled") as seen:
        for _ in range(2):
            step(mixtrain.Tensor(np.ones((2, 4))), mixtrain.Tensor(np.ones((2, 4))))
    assert len([warning for warning in seen if "uncompiled" in str(warning.message)]) == 1
