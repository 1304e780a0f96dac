"""Learning-rate schedulers: ``scheduler.step()`` sets the learning rates of an optimizer's groups."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.boundary import to_backend_tensors
from mixtrain.common.tensor import Tensor
from mixtrain.experimental.optim.optimizer import Optimizer
from mixtrain.ops.attributes import check_settings_of
from mixtrain.typing import TensorLike

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
    "StepLR",
]
_Rates = list[float]

_Lambda = Callable[[int], float]


def _value(rate: Any) -> float:
    return float(np.asarray(to_backend_tensors(rate)))


class _BaseScheduler:
    """Base of all schedulers: reads and assigns the learning rates of the groups."""

    optimizer: Optimizer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_settings_of(cls)

    @property
    def _last_lr(self) -> list[Tensor]:
        """The current learning rate of each group, a Parameter that custom schedulers multiply."""
        return list(self.optimizer.lrs)

    @property
    def _rates(self) -> _Rates:
        return [_value(rate) for rate in self.optimizer.lrs]

    def get_last_lr(self) -> list[Tensor]:
        """Return the current learning rate of each group as a Tensor."""
        return [Tensor(np.float32(rate)) for rate in self._rates]

    def _assign(self, rates: Sequence[float]) -> None:
        for parameter, rate in zip(self.optimizer.lrs, rates, strict=True):
            parameter.assign(np.float32(rate))


class LRScheduler(_BaseScheduler):
    """Base class of schedulers; a subclass defines `get_lr`.

    Args:
        optimizer: An optimizer of `mixtrain.experimental.optim`.
        last_epoch: The number of the last step of a resumed run, whose groups have an "initial_lr"; -1 for a new one.

    Example: ``lr_scheduler.StepLR(optimizer, step_size=30)``.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        where = type(self).__name__
        checks.instance(where, "optimizer", optimizer, Optimizer, "mixtrain.experimental.optim.SGD(params, lr=0.1)")
        checks.integer(where, "last_epoch", last_epoch, at_least=-1)
        for group, rate in zip(optimizer.param_groups, optimizer.lrs, strict=True):
            if last_epoch != -1 and "initial_lr" not in group:
                raise KeyError(f"{where}: a group of a resumed run must have its initial_lr. Write it beside its lr.")
            group.setdefault("initial_lr", Tensor(np.float32(_value(rate))))
        self.optimizer, self.last_epoch = optimizer, last_epoch
        self.base_lrs = [_value(group["initial_lr"]) for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """Return the next learning rate of each group; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: a scheduler must define get_lr(self).")

    def step(self, epoch: int | None = None) -> None:
        """Set the learning rates of the next step. `epoch`: the number of the step; None for the next."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        if epoch is not None and (rates := self._closed_form()) is not None:
            self._assign(rates)
            return
        self._assign([_value(rate) for rate in self.get_lr()])

    def _closed_form(self) -> _Rates | None:
        """Return the rates of this step as a function of the initial ones; None without a closed form."""
        return None


class _Factor(LRScheduler):
    """Schedulers that multiply the rates by a factor of the step."""

    def _factor(self, step: int) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        return [rate * self._factor(int(self.last_epoch)) for rate in self._rates]

    def _closed_form(self) -> _Rates | None:
        factor = math.prod(self._factor(step) for step in range(int(self.last_epoch) + 1))
        return [rate * factor for rate in self.base_lrs]


class StepLR(_Factor):
    """Multiply the rates by `gamma` every `step_size` steps; `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``StepLR(optimizer, 30, 0.1)``.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = checks.integer("StepLR", "step_size", step_size, at_least=1), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma if step and step % self.step_size == 0 else 1.0


class MultiStepLR(_Factor):
    """Multiply the rates by `gamma` at each of the `milestones`; `optimizer`, `last_epoch` as in `LRScheduler`.

    Example: ``MultiStepLR(optimizer, [30, 80])``.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma ** self.milestones.count(step)


class ExponentialLR(_Factor):
    """Multiply the rates by `gamma` every step; `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``ExponentialLR(optimizer, 0.9)``.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma if step else 1.0


class ConstantLR(_Factor):
    """Multiply the rates by `factor` during `total_iters` steps; `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``ConstantLR(optimizer, 0.5, 4)``.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.factor if step == 0 else 1 / self.factor if step == self.total_iters else 1.0


class LinearLR(_Factor):
    """Multiply the rates by a factor that goes from `start_factor` to `end_factor` in `total_iters` steps; `optimizer`
    and `last_epoch` as in `LRScheduler`.

    Example: ``LinearLR(optimizer, 0.5, total_iters=4)``.
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        if step == 0:
            return self.start_factor
        if step > self.total_iters:
            return 1.0
        change = self.end_factor - self.start_factor
        return 1.0 + change / (self.total_iters * self.start_factor + (step - 1) * change)


class PolynomialLR(_Factor):
    """Reduce the rates to 0 in `total_iters` steps, as a polynomial of degree `power`; `optimizer` and `last_epoch` as
    in `LRScheduler`.

    Example: ``PolynomialLR(optimizer, 10)``.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        if step == 0 or step > self.total_iters:
            return 1.0
        return float(((1 - step / self.total_iters) / (1 - (step - 1) / self.total_iters)) ** self.power)


class _Lambdas(LRScheduler):
    """Schedulers whose factors are functions of the step, one for all groups or one per group.

    Args:
        optimizer, last_epoch: As in `LRScheduler`.
        lr_lambda: A function of the step number, or a list of one per group.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: _Lambda | list[_Lambda], last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise checks.fail_value(
                type(self).__name__, f"lr_lambda must have {groups} functions, one a group", len(self.lr_lambdas),
                "lr_lambda=function",
            )
        super().__init__(optimizer, last_epoch)


class LambdaLR(_Lambdas):
    """Set the rates to the initial ones times ``lr_lambda(step)``; the arguments are those of `MultiplicativeLR`.

    Example: ``LambdaLR(optimizer, lambda step: 0.9 ** step)``.
    """

    def get_lr(self) -> list[float]:
        return [rate * _value(f(self.last_epoch)) for rate, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_Lambdas):
    """Multiply the rates by ``lr_lambda(step)``.

    Example: ``MultiplicativeLR(optimizer, lambda step: 0.9)``.
    """

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0:
            return self._rates
        return [rate * _value(f(self.last_epoch)) for rate, f in zip(self._rates, self.lr_lambdas, strict=True)]


class CosineAnnealingLR(LRScheduler):
    """Anneal the rates to `eta_min` in `T_max` steps by half a cosine, and raise them again; `optimizer` and
    `last_epoch` as in `LRScheduler`.

    Example: ``CosineAnnealingLR(optimizer, 10)``.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates of this step, computed from those of the last one."""
        step, angle = self.last_epoch, math.pi / self.T_max
        if step == 0:
            return self._rates
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:
            # After a minimum the ratio of two steps is undefined.
            scale = (1 - math.cos(angle)) / 2
            return [rate + (base - self.eta_min) * scale for base, rate in zip(self.base_lrs, self._rates, strict=True)]
        factor = (1 + math.cos(angle * step)) / (1 + math.cos(angle * (step - 1)))
        return [factor * (rate - self.eta_min) + self.eta_min for rate in self._rates]

    def _closed_form(self) -> _Rates | None:
        scale = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * scale for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneal the rates to `eta_min` by half a cosine and restart after `T_0` steps, then after `T_mult` times as many;
    `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``CosineAnnealingWarmRestarts(optimizer, 2)``.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self._fraction = 0.0
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Set the learning rates of the next step.

        Args: epoch: The number of the step, which may be fractional; None for the next.
        """
        if epoch is None:
            super().step()
            return
        self._fraction, whole = math.modf(checks.number(type(self).__name__, "epoch", epoch, at_least=0.0))
        self.last_epoch = int(whole)
        self._assign(self.get_lr())

    def get_lr(self) -> list[float]:
        elapsed, period = self.last_epoch + self._fraction, self.T_0
        while elapsed >= period:
            elapsed, period = elapsed - period, period * self.T_mult
        scale = (1 + math.cos(math.pi * elapsed / period)) / 2
        return [self.eta_min + (base - self.eta_min) * scale for base in self.base_lrs]


class CyclicLR(LRScheduler):
    """Cycle the rates between `base_lr` and `max_lr`.

    Args:
        optimizer, last_epoch: As in `LRScheduler`.
        base_lr, max_lr: Minimum and maximum rate, one or one per group.
        step_size_up, step_size_down: Steps of the increase and of the decrease; by default as many.
        mode: "triangular", "triangular2" (half the height each time) or "exp_range" (times `gamma` ** step).
        scale_fn: A function that replaces the mode, of the "cycle" or the "iterations" by `scale_mode`.

    Example: ``CyclicLR(optimizer, 0.01, 0.1)``.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        base_lrs, self.max_lrs = (
            [rate] * groups if isinstance(rate, (int, float)) else list(rate) for rate in (base_lr, max_lr)
        )
        if scale_fn is None:
            checks.one_of("CyclicLR", "mode", mode, ("triangular", "triangular2", "exp_range"))
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self._scale = scale_fn or {
            "triangular": lambda x: 1.0, "triangular2": lambda x: 1 / 2.0 ** (x - 1), "exp_range": lambda x: gamma**x,
        }[mode]
        self.scale_mode, self._total = scale_mode, step_size_up + (step_size_down or step_size_up)
        self._up = step_size_up / self._total
        new = zip(optimizer.lrs, optimizer.param_groups, base_lrs, strict=True) if last_epoch == -1 else ()
        for parameter, group, rate in new:
            parameter.assign(np.float32(rate))
            group["initial_lr"] = Tensor(np.float32(rate))
        super().__init__(optimizer, last_epoch)
        self.base_lrs = [_value(rate) for rate in base_lrs]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self._total)
        x = 1.0 + self.last_epoch / self._total - cycle
        height = x / self._up if x <= self._up else (x - 1) / (self._up - 1)
        scale = _value(self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch))
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


class SequentialLR(_BaseScheduler):
    """Run schedulers one after the other; each of the `milestones` starts the next.

    Args:
        optimizer: The optimizer of all schedulers.
        schedulers: The schedulers.
        milestones: Steps at which the next scheduler starts, one fewer than schedulers.
        last_epoch: As in `LRScheduler`.

    Raises: ValueError: A scheduler has another optimizer, or the number of milestones is wrong.
    Example: ``SequentialLR(optimizer, [first, second], [5])``.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        own = all(scheduler.optimizer is optimizer for scheduler in schedulers)
        if not own or len(milestones) != len(schedulers) - 1:
            raise checks.fail_value(
                "SequentialLR", "schedulers must be of this optimizer, with one milestone less",
                f"{len(schedulers)} schedulers, {len(milestones)} milestones", "milestones=[5] for two schedulers",
            )
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        self._schedulers, self.milestones = list(schedulers), list(milestones)
        self._assign([_value(group["initial_lr"]) for group in optimizer.param_groups])
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0].step()

    def step(self) -> None:
        """Step the current scheduler."""
        self.last_epoch += 1
        index = bisect.bisect_right(self.milestones, self.last_epoch)
        starts = index > 0 and self.milestones[index - 1] == self.last_epoch
        self._schedulers[index].step(*((0,) if starts else ()))


class ReduceLROnPlateau(_BaseScheduler):
    """Reduce the rates when a metric has not improved for some steps.

    Args:
        optimizer: An optimizer of `mixtrain.experimental.optim`.
        mode: Whether the smallest ("min") or the largest ("max") metric is best.
        factor: Factor of each reduction.
        patience: Number of steps without improvement before a reduction.
        threshold: Minimum improvement.
        threshold_mode: Whether `threshold` is relative ("rel") or absolute ("abs").
        cooldown: Number of steps after a reduction that are not counted.
        min_lr: Minimum rate, one or one per group.
        eps: Minimum reduction; smaller ones are not applied.

    Example: ``ReduceLROnPlateau(optimizer, patience=2)``.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | list[float] = 0, eps: float = 1e-8,
    ) -> None:
        where = "ReduceLROnPlateau"
        checks.instance(where, "optimizer", optimizer, Optimizer, "mixtrain.experimental.optim.SGD(params, lr=0.1)")
        self.mode = checks.one_of(where, "mode", mode, ("min", "max"))
        self.threshold_mode = checks.one_of(where, "threshold_mode", threshold_mode, ("rel", "abs"))
        if factor >= 1.0:
            raise checks.fail_value(where, "factor must be below 1", factor, "factor=0.1")
        self.optimizer, self.factor, self.patience, self.threshold = optimizer, factor, patience, threshold
        self.cooldown, self.eps, self.last_epoch = cooldown, eps, 0
        groups = len(optimizer.param_groups)
        least = min_lr if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        if len(least) != groups:
            raise checks.fail_value(where, f"min_lr must be one number, or {groups}", min_lr, "min_lr=1e-5")
        self.min_lrs = [checks.number(where, "min_lr", rate, example=1e-5) for rate in least]
        self.best = math.inf if mode == "min" else -math.inf
        self.wait = self.cooldown_counter = 0

    def step(self, metrics: TensorLike) -> None:
        """Record a metric, and reduce the rates if it is due. `metrics`: the metric."""
        current, self.last_epoch = _value(metrics), self.last_epoch + 1
        if self._better(current):
            self.best, self.wait = current, 0
        else:
            self.wait += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.wait = self.cooldown_counter - 1, 0
        if self.wait > self.patience:
            rates = self._rates
            reduced = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs, strict=True)]
            self._assign([new if old > new + self.eps else old for old, new in zip(rates, reduced, strict=True)])
            self.cooldown_counter, self.wait = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Whether steps are not counted because of a recent reduction."""
        return self.cooldown_counter > 0

    def _better(self, current: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        bound = self.best * (1 - sign * self.threshold) if self.threshold_mode == "rel" else (
            self.best - sign * self.threshold
        )
        return current < bound if self.mode == "min" else current > bound
