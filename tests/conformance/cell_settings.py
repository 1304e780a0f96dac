"""What MindSpore's cells, optimizers, schedules, metrics and transforms take as settings: a recipe.

It records of each value whether it is refused, and how. Where MindSpore is installed, this writes the file that
`tests/nn/test_settings.py` compares with::

    python -m tests.conformance.cell_settings tests/data/cell_settings.json
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.conformance import primitive_settings
from tests.conformance.primitive_settings import outcome

GIVEN: Final = (*primitive_settings.GIVEN, "1", "1.0", "0.0")
# What a setting without a default may be; the first that all of a class's take are its own.
POSSIBLE: Final = ("1", "2", "3", "1.0", "(1, 1)", "'valid'", "True", "float32", "0.5", "[1, 1]", "parameters()",
                   "network()", "Tensor(1.0)", "(1, 1, 1)", "4", "[0.1, 0.2]", "100")
MODULES: Final = (
    "nn", "train", "amp", "nn.probability.distribution", "nn.probability.bijector", "dataset.vision",
    "dataset.transforms", "dataset.text", "experimental.optim", "common.initializer",
)
# These write files, or handle signals.
LEFT_OUT: Final = frozenset({"BackupAndRestore", "OnRequestExit", "SummaryCollector", "SummaryRecord"})
_SGD: Final = "package.experimental.optim.SGD(parameters(), 0.1)"
_MOMENTUM: Final = "package.nn.Momentum(parameters(), 0.1, 0.9)"
_DECAY: Final = "0.1, decay_rate=0.9, total_step=10, step_per_epoch=2, decay_epoch=2"
# Classes and functions whose settings depend on each other: what they are given, and the settings, by default all.
BASES: Final[dict[str, tuple[str, str]]] = {
    **{f"nn.{name}": (f"params=parameters(){more}", f"params learning_rate weight_decay {settings}")
       for name, more, settings in (
        ("Adam", "", "beta1 beta2 eps use_locking use_nesterov loss_scale use_amsgrad"),
        ("Momentum", ", learning_rate=0.1, momentum=0.9", "momentum loss_scale use_nesterov"),
        ("SGD", "", "momentum dampening nesterov loss_scale"),
        ("RMSProp", "", "decay momentum epsilon use_locking centered loss_scale"),
        ("Adagrad", "", "accum update_slots loss_scale"),
        ("FTRL", "", "initial_accum lr_power l1 l2 use_locking loss_scale"),
        ("LazyAdam", "", "beta1 beta2 eps use_locking use_nesterov loss_scale"),
        ("ProximalAdagrad", "", "accum l1 l2 use_locking loss_scale"), ("AdaMax", "", "beta1 beta2 eps loss_scale"),
        ("AdaFactor", "", "eps clip_threshold decay_rate beta1 scale_parameter relative_step warmup_init compression"),
        ("Lamb", ", learning_rate=0.1", "beta1 beta2 eps"), ("Rprop", "", "etas step_sizes"),
        ("Adadelta", "", "rho epsilon loss_scale"), ("ASGD", "", "lambd alpha t0"),
    )},
    "nn.LARS": (f"optimizer={_MOMENTUM}", "optimizer epsilon coefficient use_clip lars_filter"),
    "mint.optim.AdamW": ("params=parameters()", ""), "mint.optim.Adam": ("params=parameters()", ""),
    "mint.optim.SGD": ("params=parameters(), lr=0.1", ""),
    **{f"experimental.optim.lr_scheduler.{name}": (f"optimizer={_SGD}{more}", "") for name, more in (
        ("StepLR", ", step_size=2"), ("MultiStepLR", ", milestones=[2, 4]"), ("LinearLR", ""), ("ConstantLR", ""),
        ("ExponentialLR", ", gamma=0.5"), ("PolynomialLR", ""), ("CosineAnnealingLR", ", T_max=2"),
        ("CosineAnnealingWarmRestarts", ", T_0=2"), ("CyclicLR", ", base_lr=0.1, max_lr=0.2"),
        ("ReduceLROnPlateau", ""),
    )},
    "nn.CosineDecayLR": ("min_lr=0.01, max_lr=0.1, decay_steps=10", ""),
    "nn.PolynomialDecayLR": ("learning_rate=0.1, end_learning_rate=0.01, decay_steps=10, power=0.5", ""),
    "nn.cosine_decay_lr": ("min_lr=0.01, max_lr=0.1, total_step=10, step_per_epoch=2, decay_epoch=2", ""),
    **{f"nn.{name}": (f"learning_rate={_DECAY}", "")
       for name in ("exponential_decay_lr", "natural_exp_decay_lr", "inverse_decay_lr")},
    "nn.piecewise_constant_lr": ("milestone=[2, 5], learning_rates=[0.1, 0.05]", ""),
    "nn.warmup_lr": ("learning_rate=0.1, total_step=10, step_per_epoch=2, warmup_epoch=2", ""),
    **{f"nn.{name}": ("input_size=2, hidden_size=2", "num_layers has_bias batch_first dropout bidirectional dtype")
       for name in ("GRU", "LSTM", "RNN")},
    "nn.WithLossCell": ("backbone=network(), loss_fn=package.nn.MSELoss()", ""),
    "nn.WithEvalCell": ("network=network(), loss_fn=package.nn.MSELoss()", ""),
    "nn.DynamicLossScaleUpdateCell": ("loss_scale_value=16.0, scale_factor=2, scale_window=3", ""),
    "amp.DynamicLossScaler": ("scale_value=16.0, scale_factor=2, scale_window=3", ""),
    "nn.Unfold": ("ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1]", ""),
    "nn.MaxPool2dExt": ("kernel_size=2, stride=2", ""),
    "dataset.SubsetSampler": ("indices=[0, 1]", ""), "dataset.DistributedSampler": ("num_shards=2, shard_id=0", ""),
    "dataset.RandomSampler": ("", ""), "dataset.PKSampler": ("num_val=2", ""),
}


@functools.cache
def names(package: str) -> dict[str, Any]:
    """Return what texts of values may name, of a package's types."""
    module = importlib.import_module(package)
    for name in (*MODULES, "mint", "dataset"):
        importlib.import_module(f"{package}.{name}")

    def parameters() -> list[Any]:
        return [module.Parameter(module.Tensor(np.ones((2, 2), np.float32)), name="w")]

    return {"package": module, "Tensor": module.Tensor, "float32": module.float32, "parameters": parameters,
            "network": lambda: module.nn.Dense(2, 2)}


def made(path: str, package: str) -> Callable[..., Any]:
    """Return a class or function of a package."""
    return functools.reduce(getattr, path.split("."), names(package)["package"])


def outcomes(path: str, base: str, settings: list[str], package: str) -> dict[str, str]:
    """Return the outcomes of all values for each setting of a class, the others as in `base`."""
    def of(setting: str, text: str) -> str:
        own = eval(f"dict({base})", names(package))  # noqa: S307
        return outcome(made(path, package), own | {setting: eval(text, names(package))})  # noqa: S307

    return {setting: "".join(of(setting, text) for text in GIVEN) for setting in settings}


def is_made(path: str, base: str, package: str) -> bool:
    """Whether a class can be made of what `base` says."""
    return outcome(made(path, package), eval(f"dict({base})", names(package))) == "."  # noqa: S307


def _base(path: str, required: list[str]) -> str | None:
    for texts in itertools.islice(itertools.product(POSSIBLE, repeat=len(required)), 3000):
        base = ", ".join(f"{name}={text}" for name, text in zip(required, texts, strict=True))
        if is_made(path, base, "mindspore"):
            return base
    return None


def record() -> dict[str, Any]:
    """Return of each class of MindSpore what it is made of, and all outcomes."""
    package, result, paths = names("mindspore")["package"], {}, list(BASES)
    seen = {made(path, "mindspore") for path in BASES}
    for module in MODULES:
        where = functools.reduce(getattr, module.split("."), package)
        for name in sorted(getattr(where, "__all__", dir(where))):
            kind = getattr(where, name, None)
            if inspect.isclass(kind) and kind not in seen and name not in LEFT_OUT and not name.startswith("_"):
                paths.append(f"{module}.{name}")
                seen.add(kind)
    for path in paths:
        try:
            parameters = inspect.signature(made(path, "mindspore")).parameters.values()
        except ValueError:
            continue
        named = [item for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
        required = [item.name for item in named if item.default is item.empty]
        base, settings = BASES.get(path) or (_base(path, required) if len(required) < 5 else None, "")
        own = settings.split() or [item.name for item in named]
        if base is not None and own:
            result[path] = {"base": base, "outcomes": outcomes(path, base, own, "mindspore")}
    return result


if __name__ == "__main__":
    rows = (f"{json.dumps(path)}: {json.dumps(facts)}" for path, facts in record().items())
    pathlib.Path(sys.argv[1]).write_text("{\n" + ",\n".join(rows) + "\n}\n")
