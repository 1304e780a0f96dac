"""More rules, schedules, lists in groups and falling decays give the reference's numbers; slots have its names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain.nn as nn
from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from tests.backends import quick_every
from tests.nn.reference import case, cases

FILE = "optim_reference"
NAMES = ("fc.weight", "bn.gamma")
PLAIN = backend.JitChoice(False, "test")
XLA = backend.JitChoice(True, "test")


class Warm(nn.LearningRateSchedule):
    """Warm-up followed by a decay, as the model zoo writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.warmup_lr = nn.WarmUpLR(0.2, 3)
        self.decay_lr = nn.PolynomialDecayLR(0.2, 0.02, 6, 1.0)
        self.warmup_steps = Tensor(np.array([3], np.float32))
        self.one = Tensor(np.array([1.0], np.float32))

    def construct(self, global_step: Any) -> Any:
        decay_lr = self.decay_lr(global_step)
        is_warmup = keras.ops.cast(keras.ops.greater(self.warmup_steps, global_step), "float32")
        return (self.one - is_warmup) * decay_lr + is_warmup * self.warmup_lr(global_step)


class Falling(nn.Cell):
    def construct(self, global_step: Any) -> Any:
        return 0.1 * keras.ops.power(0.5, keras.ops.cast(global_step, "float32"))


def rates() -> list[float]:
    return list(case("optim", FILE)["lr_list"].tolist())


def groups(parameters: list[Parameter], **more: Any) -> list[dict[str, Any]]:
    return [
        {"params": [parameters[1]], "lr": 0.5, "weight_decay": 0.02},
        {"params": [parameters[0]], **more},
        {"order_params": parameters},
    ]


CHANGES: dict[str, Callable[[], dict[str, Any]]] = {
    "full": lambda: {"centered": True, "momentum": 0.9, "decay": 0.8},
    "decay": lambda: {"weight_decay": 0.1},
    "lrlist": lambda: {"learning_rate": rates()},
    "scale8": lambda: {"weight_decay": 0.1, "loss_scale": 8.0},
    "groups": lambda: {"weight_decay": 0.1, "params": groups},
    "momentum": lambda: {"momentum": 0.9, "epsilon": 0.1},
    "still": lambda: {"accum": 0.5, "update_slots": False},
    "l2": lambda: {"l2": 0.2, "initial_accum": 0.5, "lr_power": -0.4},
    "l1": lambda: {"l1": 0.05},
    "mixed": lambda: {"params": lambda parameters: groups(parameters, lr=rates())},
    "schedule": lambda: {"learning_rate": Warm()},
    "falling": lambda: {"weight_decay": Falling()},
    "warm": lambda: {"warmup_init": True},
    "rate": lambda: {"relative_step": False, "scale_parameter": False, "clip_threshold": 0.5},
    "fallinggroup": lambda: {
        "params": lambda parameters: [
            {"params": parameters[:1], "weight_decay": Falling(), "lr": nn.WarmUpLR(0.2, 3)},
            {"params": parameters[1:], "lr": rates()},
        ]
    },
}
# Where the reference's CPU kernel does not do what the reference documents; test_ftrl.py and test_ada_grad.py have the
# documented rules.
WRONG = {
    "optim_adagrad_still": "it sums up squared gradients in spite of update_slots=False",
    "optim_ftrl_l1": "it takes l1 where sign(z) * l1 is meant",
}
RULES: dict[str, tuple[Any, dict[str, Any]]] = {
    "rmsprop": (nn.RMSProp, {}),
    "adagrad": (nn.Adagrad, {}),
    "ftrl": (nn.FTRL, {}),
    "momentum": (nn.Momentum, {"momentum": 0.9}),
    "adam": (nn.Adam, {}),
    "adamw": (nn.AdamWeightDecay, {}),
    "asgd": (nn.ASGD, {}),
    "adamax": (nn.AdaMax, {}),
    "adamoffload": (nn.AdamOffload, {}),
    "proximal": (nn.ProximalAdagrad, {"l1": 0.1, "l2": 0.2}),
    "rprop": (nn.Rprop, {}),
    "adadelta": (nn.Adadelta, {"epsilon": 1e-3}),
    "adafactor": (nn.AdaFactor, {"learning_rate": None, "weight_decay": 0.1}),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "optim_asgd": {"t0": 2.0, "lambd": 0.1},
    "optim_asgd_groups": {"t0": 2.0, "lambd": 0.1},
    "optim_momentum_falling": {"loss_scale": 8.0},
    "optim_adafactor_warm": {"beta1": 0.0, "weight_decay": 0.0},
    "optim_adafactor_rate": {"learning_rate": 0.1, "weight_decay": 0.0},
}


def make(name: str, parameters: list[Parameter]) -> Any:
    """Return the optimizer of a case."""
    rule, *changes = name.removeprefix("optim_").split("_")
    kind, base = RULES[rule]
    options: dict[str, Any] = {"learning_rate": 0.1, **base, **OPTIONS.get(name, {})}
    for change in changes:
        options |= CHANGES[change]()
    group = options.pop("params", lambda parameters: parameters)
    return kind(group(parameters), **options)


def errors(name: str, compiled: Callable[[Any], Any]) -> float:
    """Run a case; return the greatest difference from the reference."""
    reference, expected = case("optim", FILE), case(name, FILE)
    parameters = [Parameter(reference[f"start_{key}"], key) for key in NAMES]
    optimizer = make(name, parameters)
    step = compiled(optimizer)
    worst = 0.0
    for row in range(5):
        step(tuple(Tensor(reference[f"grad_{parameter.name}"][row]) for parameter in optimizer.parameters))
        for parameter in parameters:
            worst = max(worst, float(np.abs(parameter.asnumpy() - expected[parameter.name][row]).max()))
    return worst


@quick_every(18)
@pytest.mark.parametrize("name", [name for name in cases("optim_", FILE) if name not in WRONG])
def test_eager_steps_give_the_reference_numbers(name: str) -> None:
    assert errors(name, lambda optimizer: optimizer) < 2e-6


@pytest.mark.parametrize("name", WRONG)
def test_documented_rules_are_kept_where_the_reference_parts_from_them(name: str) -> None:
    assert errors(name, lambda optimizer: optimizer) > 1e-3


@quick_every(5)
@pytest.mark.parametrize(
    "name",
    ["optim_rmsprop_full_groups", "optim_adagrad_scale8", "optim_ftrl_l2", "optim_adam_fallinggroup",
     "optim_momentum_schedule", "optim_momentum_mixed", "optim_asgd_lrlist", "optim_rprop", "optim_adafactor_warm"],
)
def test_compiled_steps_give_the_reference_numbers(name: str) -> None:
    assert errors(name, lambda optimizer: backend.compile_function(optimizer, choice=PLAIN)) < 2e-6


@quick_every(3)
@pytest.mark.parametrize("name", ["optim_rmsprop_full_groups", "optim_ftrl_l2", "optim_adam_fallinggroup"])
def test_xla_steps_give_the_reference_numbers(name: str) -> None:
    # XLA's square root on CPU is a little rougher.
    assert errors(name, lambda optimizer: backend.compile_function(optimizer, choice=XLA)) < 1e-5


SLOTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "slots_rmsprop": (nn.RMSProp, {"centered": True}),
    "slots_adagrad": (nn.Adagrad, {}),
    "slots_ftrl": (nn.FTRL, {}),
    "slots_lamb": (nn.Lamb, {}),
    "slots_adam": (nn.Adam, {"use_amsgrad": True}),
    "slots_adamw": (nn.AdamWeightDecay, {}),
    "slots_momentum": (nn.Momentum, {"momentum": 0.9}),
    "slots_sgd": (nn.SGD, {"momentum": 0.9}),
    "slots_asgd": (nn.ASGD, {}),
    "slots_adamax": (nn.AdaMax, {}),
    "slots_proximal": (nn.ProximalAdagrad, {}),
    "slots_rprop": (nn.Rprop, {}),
    "slots_adadelta": (nn.Adadelta, {}),
    "slots_adafactor": (nn.AdaFactor, {"relative_step": False}),
}
# The reference keeps AdaFactor's steps and the second slot of SGD as Parameters; here the step count serves.
NOT_KEPT = {"step", "stat.fc.weight", "stat.bn.gamma"}


@quick_every(2)
@pytest.mark.parametrize("name", SLOTS)
def test_what_an_optimizer_holds_has_the_references_names(name: str) -> None:
    kind, options = SLOTS[name]
    reference = case("optim", FILE)
    optimizer = kind([Parameter(reference[f"start_{key}"], key) for key in NAMES], learning_rate=0.1, **options)
    names = [key for key, _ in optimizer.parameters_and_names()]
    assert sorted(names) == sorted(set(case(name, FILE)["names"].tolist()) - NOT_KEPT)
    assert [parameter.name for _, parameter in optimizer.parameters_and_names()] == names
