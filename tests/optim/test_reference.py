"""Every update rule gives the reference's numbers over five steps, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.optim import SGD, Adam, AdamWeightDecay, Momentum
from tests.backends import ON_TENSORFLOW, quick_every
from tests.nn.reference import case, cases

NAMES = ("fc.weight", "bn.gamma")
RULES = {"momentum": Momentum, "sgd": SGD, "adam": Adam, "adamw": AdamWeightDecay}
PLAIN = backend.JitChoice(False, "test")
XLA = backend.JitChoice(True, "test")
# The reference's CPU kernel of Momentum ignores use_nesterov; test_momentum.py has the documented rule.
REFERENCE_CASES = [name for name in cases("optim_") if name != "optim_momentum_nesterov"]


def make(name: str, parameters: list[Parameter]) -> Any:
    """Return the optimizer of a case."""
    rule, *changes = name.removeprefix("optim_").split("_")
    options: dict[str, Any] = {"learning_rate": 0.1}
    if rule == "momentum":
        options["momentum"] = 0.9
    params: Any = parameters
    for change in changes:
        if change == "m":
            options["momentum"] = 0.9
        elif change == "decay":
            options["weight_decay"] = 0.1
        elif change == "lrlist":
            options["learning_rate"] = case("optim")["lr_list"].tolist()
        elif change == "scale8":
            options |= {"weight_decay": 0.1, "loss_scale": 8.0}
        elif change == "groups":
            options["weight_decay"] = 0.1
            params = [
                {"params": [parameters[1]], "lr": 0.5, "weight_decay": 0.02},
                {"params": [parameters[0]]},
                {"order_params": parameters},
            ]
        elif change == "nesterov":
            options["use_nesterov" if rule == "adam" else "nesterov"] = True
        elif change == "damp":
            options["dampening"] = 0.3
        elif change == "eps":
            options["eps"] = 0.1
        elif change == "amsgrad":
            options |= {"use_amsgrad": True, "beta2": 0.5}
        else:
            raise AssertionError(change)
    return RULES[rule](params, **options)


def errors(name: str, compiled: Callable[[Any], Any]) -> float:
    """Run a case; return the greatest difference from the reference."""
    reference = case("optim")
    parameters = [Parameter(reference[f"start_{key}"], key) for key in NAMES]
    step = compiled(make(name, parameters))
    worst = 0.0
    for row in range(5):
        step(tuple(Tensor(reference[f"grad_{key}"][row]) for key in NAMES))
        for parameter in parameters:
            worst = max(worst, float(np.abs(parameter.asnumpy() - case(name)[parameter.name][row]).max()))
    return worst


@quick_every(10)
@pytest.mark.parametrize("name", REFERENCE_CASES)
def test_eager_steps_give_the_reference_numbers(name: str) -> None:
    assert errors(name, lambda optimizer: optimizer) < 1e-6


@quick_every(13)
@pytest.mark.parametrize("name", REFERENCE_CASES)
def test_compiled_steps_give_the_reference_numbers(name: str) -> None:
    # JAX compiles by XLA alone, whose square root on CPU is a little rougher.
    limit = 1e-6 if ON_TENSORFLOW else 4e-6
    assert errors(name, lambda optimizer: backend.compile_function(optimizer, choice=PLAIN)) < limit


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["optim_momentum_decay", "optim_sgd_m_damp", "optim_adam_groups", "optim_adamw_lrlist"]
)
def test_xla_steps_give_the_reference_numbers(name: str) -> None:
    # XLA's square root on CPU is a little rougher.
    assert errors(name, lambda optimizer: backend.compile_function(optimizer, choice=XLA)) < 1e-5


@quick_every(2)
@pytest.mark.parametrize("name", ["optim_momentum", "optim_sgd_m_damp", "optim_adam_amsgrad", "optim_adamw_groups"])
def test_steps_inside_a_branch_give_the_reference_numbers(name: str) -> None:
    def branching(optimizer: Any) -> Any:
        def step(gradients: Any) -> Any:
            finite = backend.all_finite(gradients)
            writes = [*optimizer.parameters, *optimizer.state_variables()]
            backend.cond(finite, lambda: optimizer(gradients), lambda: None, writes=writes)
            return finite

        return backend.compile_function(step, choice=PLAIN)

    assert errors(name, branching) < 1e-6


@quick_every(2)
@pytest.mark.parametrize("rule", ["momentum", "sgd_m_damp", "adam_amsgrad", "adamw"])
def test_a_branch_not_taken_leaves_parameters_and_state(rule: str) -> None:
    reference = case("optim")
    parameters = [Parameter(reference[f"start_{key}"], key) for key in NAMES]
    optimizer = make(f"optim_{rule}", parameters)
    everything = [*parameters, *optimizer.state_variables()]
    before = [np.array(variable.numpy()) for variable in everything]

    def step(gradients: Any) -> Any:
        backend.cond(backend.all_finite(gradients), lambda: optimizer(gradients), lambda: None, writes=everything)
        return ()

    infinite = tuple(Tensor(np.full(parameter.shape, np.inf, np.float32)) for parameter in parameters)
    backend.compile_function(step, choice=PLAIN)(infinite)
    for variable, value in zip(everything, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
