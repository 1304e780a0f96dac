"""Reference numbers of learning rates and optimizers, written by MindSpore 2.10 on a CPU.

Run it where MindSpore is installed: ``python make_optim_reference.py [target.npz]``. Keys are ``case/name``:

- ``list_<function>/<case>``: what the functions of `nn.dynamic_lr` give, float64.
- ``schedule_<class>_<case>``: ``y``, the rates of steps 0 to 11, float32.
- ``optim``: ``start_<p>``, ``grad_<p>`` (five steps), ``lr_list``; p is fc.weight (2, 3) and bn.gamma (3,).
- ``optim_<case>/<p>``: the values after each of the five steps, where gradients are not multiplied by the loss scale.
- ``slots_<rule>``: ``names``, the names of everything that the optimizer holds.

Lamb and LARS have no kernel on a CPU; their formulas are checked against NumPy instead.
"""

import pathlib
import sys

import mindspore as ms
import mindspore.nn as nn
import numpy as np
from mindspore import Parameter, Tensor

SEED = 20261121
STEPS = 5
store = {}

LISTS = {
    "piecewise_constant_lr": {"plain": ([2, 5, 10], [0.1, 0.05, 0.01])},
    "exponential_decay_lr": {"plain": (0.1, 0.9, 12, 2, 3), "stair": (0.1, 0.9, 12, 2, 3, True)},
    "natural_exp_decay_lr": {"plain": (0.1, 0.9, 12, 2, 3), "stair": (0.1, 0.9, 12, 2, 2, True)},
    "inverse_decay_lr": {"plain": (0.1, 0.5, 12, 2, 3), "stair": (0.1, 0.5, 12, 2, 3, True)},
    "cosine_decay_lr": {"plain": (0.01, 0.1, 12, 2, 4)},
    "polynomial_decay_lr": {
        "plain": (0.1, 0.01, 12, 2, 3, 0.5), "square": (0.1, 0.01, 12, 1, 5, 2.0),
        "again": (0.1, 0.01, 12, 2, 2, 0.5, True),
    },
    "warmup_lr": {"plain": (0.1, 12, 2, 3)},
}
SCHEDULES = {
    "ExponentialDecayLR": {"plain": (0.1, 0.9, 4), "stair": (0.1, 0.9, 4, True)},
    "NaturalExpDecayLR": {"plain": (0.1, 0.9, 4), "stair": (0.1, 0.9, 4, True)},
    "InverseDecayLR": {"plain": (0.1, 0.9, 4), "stair": (0.1, 0.9, 4, True)},
    "CosineDecayLR": {"plain": (0.01, 0.1, 8)},
    "PolynomialDecayLR": {
        "plain": (0.1, 0.01, 8, 0.5), "square": (0.1, 0.01, 8, 2.0), "again": (0.1, 0.01, 4, 0.5, True)
    },
    "WarmUpLR": {"plain": (0.2, 5)},
}


def put(case, **arrays):
    """Keep arrays under case/name."""
    for name, value in arrays.items():
        array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
        store[f"{case}/{name}"] = array


def rates():
    """Every function and schedule."""
    for name, cases in LISTS.items():
        for case, arguments in cases.items():
            put(f"list_{name}", **{case: np.array(getattr(nn, name)(*arguments))})
    for name, cases in SCHEDULES.items():
        for case, arguments in cases.items():
            schedule = getattr(nn, name)(*arguments)
            steps = [schedule(Tensor(step, ms.int32)).asnumpy() for step in range(12)]
            put(f"schedule_{name}_{case}", y=np.array(steps, np.float32))


class Warm(nn.learning_rate_schedule.LearningRateSchedule):
    """Warm-up followed by a decay, as the model zoo writes it."""

    def __init__(self):
        super().__init__()
        self.warmup_lr = nn.WarmUpLR(0.2, 3)
        self.decay_lr = nn.PolynomialDecayLR(0.2, 0.02, 6, 1.0)
        self.warmup_steps = Tensor(np.array([3]).astype(np.float32))
        self.greater = ms.ops.Greater()
        self.one = Tensor(np.array([1.0]).astype(np.float32))
        self.cast = ms.ops.Cast()

    def construct(self, global_step):
        """Return the rate of the step."""
        decay_lr = self.decay_lr(global_step)
        is_warmup = self.cast(self.greater(self.warmup_steps, global_step), ms.float32)
        warmup_lr = self.warmup_lr(global_step)
        return (self.one - is_warmup) * decay_lr + is_warmup * warmup_lr


class Falling(nn.Cell):
    """A weight decay that falls with the step."""

    def construct(self, global_step):
        """Return the decay of the step."""
        return 0.1 * ms.ops.pow(0.5, ms.ops.cast(global_step, ms.float32))


def optimizers(rng):
    """Five steps on fc.weight and bn.gamma."""
    start = {"fc.weight": rng.standard_normal((2, 3)), "bn.gamma": rng.standard_normal(3)}
    start = {name: value.astype(np.float32) for name, value in start.items()}
    grads = {name: rng.standard_normal((STEPS, *value.shape)).astype(np.float32) for name, value in start.items()}
    lrs = [0.1, 0.05, 0.2, 0.01, 0.03]
    put("optim", **{f"start_{name}": value for name, value in start.items()})
    put("optim", **{f"grad_{name}": value for name, value in grads.items()}, lr_list=lrs)

    def groups(params, **more):
        return [{"params": [params[1]], "lr": 0.5, "weight_decay": 0.02}, {"params": [params[0]], **more},
                {"order_params": params}]

    cases = {}
    full = {"centered": True, "momentum": 0.9, "decay": 0.8}
    rules = {"rmsprop": (nn.RMSProp, {}), "rmsprop_full": (nn.RMSProp, full), "adagrad": (nn.Adagrad, {})}
    for name, (cls, base) in rules.items():
        cases[name] = (cls, None, base)
        cases[f"{name}_decay"] = (cls, None, {**base, "weight_decay": 0.1})
        cases[f"{name}_lrlist"] = (cls, None, {**base, "learning_rate": lrs})
        cases[f"{name}_scale8"] = (cls, None, {**base, "weight_decay": 0.1, "loss_scale": 8.0})
        cases[f"{name}_groups"] = (cls, groups, {**base, "weight_decay": 0.1})
    cases["rmsprop_momentum"] = (nn.RMSProp, None, {"momentum": 0.9, "epsilon": 0.1})
    cases["adagrad_still"] = (nn.Adagrad, None, {"accum": 0.5, "update_slots": False})
    ftrl = nn.FTRL
    cases["ftrl"] = (ftrl, None, {})
    cases["ftrl_decay"] = (ftrl, None, {"weight_decay": 0.1})
    cases["ftrl_scale8"] = (ftrl, None, {"weight_decay": 0.1, "loss_scale": 8.0})
    cases["ftrl_l2"] = (ftrl, None, {"l2": 0.2, "initial_accum": 0.5, "lr_power": -0.4})
    cases["ftrl_l1"] = (ftrl, None, {"l1": 0.05})
    cases["momentum_mixed"] = (nn.Momentum, lambda params: groups(params, lr=lrs), {"momentum": 0.9})
    cases["momentum_schedule"] = (nn.Momentum, None, {"momentum": 0.9, "learning_rate": Warm()})
    cases["momentum_falling"] = (nn.Momentum, None, {"momentum": 0.9, "weight_decay": Falling(), "loss_scale": 8.0})
    cases["adam_fallinggroup"] = (
        nn.Adam, lambda params: [{"params": params[:1], "weight_decay": Falling(), "lr": nn.WarmUpLR(0.2, 3)},
                                 {"params": params[1:], "lr": lrs}], {})
    cases["adamw_falling"] = (nn.AdamWeightDecay, None, {"weight_decay": Falling()})
    for name, cls, options in (
        ("asgd", nn.ASGD, {"t0": 2.0, "lambd": 0.1}), ("asgd_lrlist", nn.ASGD, {"learning_rate": lrs}),
        ("adamax", nn.AdaMax, {}),
        ("adamoffload", nn.AdamOffload, {}), ("proximal", nn.ProximalAdagrad, {"l1": 0.1, "l2": 0.2}),
        ("rprop", nn.Rprop, {}), ("adadelta", nn.Adadelta, {"epsilon": 1e-3}), ("adafactor", nn.AdaFactor, {
            "learning_rate": None, "weight_decay": 0.1}),
        ("adafactor_warm", nn.AdaFactor, {"learning_rate": None, "warmup_init": True, "beta1": 0.0}),
        ("adafactor_rate", nn.AdaFactor, {"relative_step": False, "scale_parameter": False, "clip_threshold": 0.5}),
    ):
        cases[name] = (cls, None, options)
        if name.partition("_")[0] not in ("adafactor", "proximal") and "_" not in name:
            cases[f"{name}_groups"] = (cls, groups, {**options, "weight_decay": 0.1})
    for name, (cls, group, options) in cases.items():
        params = [Parameter(Tensor(value), name=key) for key, value in start.items()]
        options = {"learning_rate": 0.1, **options}
        optimizer = cls(group(params) if group else params, **options)
        rows = {key: [] for key in start}
        for step in range(STEPS):
            optimizer(tuple(Tensor(grads[p.name][step]) for p in params))
            for p in params:
                rows[p.name].append(p.asnumpy().copy())
        put(f"optim_{name}", **rows)
    slots = {"rmsprop": (nn.RMSProp, {"centered": True}), "adagrad": (nn.Adagrad, {}), "ftrl": (nn.FTRL, {}),
             "lamb": (nn.Lamb, {}), "adam": (nn.Adam, {"use_amsgrad": True}), "adamw": (nn.AdamWeightDecay, {}),
             "momentum": (nn.Momentum, {"momentum": 0.9}), "sgd": (nn.SGD, {"momentum": 0.9}), "asgd": (nn.ASGD, {}),
             "adamax": (nn.AdaMax, {}), "proximal": (nn.ProximalAdagrad, {}), "rprop": (nn.Rprop, {}),
             "adadelta": (nn.Adadelta, {}), "adafactor": (nn.AdaFactor, {"relative_step": False})}
    for name, (cls, options) in slots.items():
        params = [Parameter(Tensor(value), name=key) for key, value in start.items()]
        optimizer = cls(params, learning_rate=0.1, **options)
        put(f"slots_{name}", names=[key for key, _ in optimizer.parameters_and_names()])


def main():
    ms.set_seed(SEED)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    rates()
    optimizers(np.random.default_rng(SEED))
    beside = pathlib.Path(__file__).with_name("optim_reference.npz")
    target = sys.argv[1] if len(sys.argv) > 1 else beside
    np.savez_compressed(target, **store)
    print(len(store), "arrays in", target)


if __name__ == "__main__":
    main()
