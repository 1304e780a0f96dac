"""Schedulers: ``scheduler.step()`` after an epoch gives the groups of an optimizer their next learning rates."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.boundary import settled
from mixtrain.common.tensor import Tensor
from mixtrain.experimental.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
    "StepLR",
]
_Rates = list[float]


def _value(rate: Any) -> float:
    return float(np.asarray(settled(rate)))


class _Stepped:
    """What all schedulers share: they read and assign the rates of the groups."""

    optimizer: Optimizer

    @property
    def _last_lr(self) -> list[Any]:
        """The present learning rate of each group, as the Parameters that schedulers of scripts multiply."""
        return list(self.optimizer.lrs)

    def get_last_lr(self) -> list[Any]:
        """Return the present learning rate of each group, as Tensors."""
        return [Tensor(np.float32(_value(rate))) for rate in self.optimizer.lrs]

    def _assign(self, rates: Sequence[float]) -> None:
        for held, rate in zip(self.optimizer.lrs, rates, strict=True):
            held.assign(np.float32(rate))


class LRScheduler(_Stepped):
    """The base of schedulers; a subclass defines `get_lr`.

    Args:
        optimizer: An optimizer of `mixtrain.experimental.optim`.
        last_epoch: The number of the last step, for a run that goes on; -1 for a new one.

    Raises:
        TypeError: `optimizer` is another one.

    Example: ``lr_scheduler.StepLR(optimizer, step_size=30)``.
    Source: MindSpore, `mindspore.experimental.optim.lr_scheduler.LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        where = type(self).__name__
        checks.instance(where, "optimizer", optimizer, Optimizer, "mixtrain.experimental.optim.SGD(params, lr=0.1)")
        for group, rate in zip(optimizer.param_groups, optimizer.lrs, strict=True):
            group.setdefault("initial_lr", Tensor(np.float32(_value(rate))))
        self.optimizer, self.last_epoch = optimizer, last_epoch
        self.base_lrs = [_value(group["initial_lr"]) for group in optimizer.param_groups]
        self.step()

    @property
    def _rates(self) -> _Rates:
        return [_value(rate) for rate in self.optimizer.lrs]

    def get_lr(self) -> list[Any]:
        """Return the next learning rate of each group; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}: a scheduler must define get_lr(self).")

    def step(self, epoch: int | None = None) -> None:
        """Give the groups their next learning rates.

        Args:
            epoch: The number to go on from; None for the next.
        """
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        if epoch is not None and (closed := self._closed()) is not None:
            self._assign(closed)
            return
        self._assign([_value(rate) for rate in self.get_lr()])

    def _closed(self) -> _Rates | None:
        """Return the rates of this step from the first ones, where there is a formula for them."""
        return None


class _Factor(LRScheduler):
    """Schedulers that multiply the rates by the factor of the step."""

    def _factor(self, step: int) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """Return the rates times the factor of this step."""
        return [rate * self._factor(int(self.last_epoch)) for rate in self._rates]

    def _closed(self) -> _Rates | None:
        factor = math.prod(self._factor(step) for step in range(int(self.last_epoch) + 1))
        return [rate * factor for rate in self.base_lrs]


class StepLR(_Factor):
    """Every `step_size` steps the rates are multiplied by `gamma`; `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``StepLR(optimizer, 30, 0.1)``. Source: MindSpore, `lr_scheduler.StepLR`.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = checks.integer("StepLR", "step_size", step_size, at_least=1), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma if step and step % self.step_size == 0 else 1.0


class MultiStepLR(_Factor):
    """At each of the `milestones` the rates are multiplied by `gamma`; `optimizer`, `last_epoch` as in `LRScheduler`.

    Example: ``MultiStepLR(optimizer, [30, 80])``. Source: MindSpore, `lr_scheduler.MultiStepLR`.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma ** self.milestones.count(step)


class ExponentialLR(_Factor):
    """Every step the rates are multiplied by `gamma`; `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``ExponentialLR(optimizer, 0.9)``. Source: MindSpore, `lr_scheduler.ExponentialLR`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma if step else 1.0


class ConstantLR(_Factor):
    """The rates times `factor` for `total_iters` steps; `optimizer` and `last_epoch` as in `LRScheduler`.

    Example: ``ConstantLR(optimizer, 0.5, 4)``. Source: MindSpore, `lr_scheduler.ConstantLR`.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.factor if step == 0 else 1 / self.factor if step == self.total_iters else 1.0


class LinearLR(_Factor):
    """The rates times a factor from `start_factor` to `end_factor` in `total_iters` steps.

    Args:
        optimizer: As in `LRScheduler`.
        start_factor: The first factor.
        end_factor: The last one.
        total_iters: In how many steps.
        last_epoch: As in `LRScheduler`.

    Example: ``LinearLR(optimizer, 0.5, total_iters=4)``. Source: MindSpore, `lr_scheduler.LinearLR`.
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
    """The rates fall to 0 in `total_iters` steps, as a polynomial of degree `power`.

    Args:
        optimizer: As in `LRScheduler`.
        total_iters: In how many steps.
        power: The degree.
        last_epoch: As in `LRScheduler`.

    Example: ``PolynomialLR(optimizer, 10)``. Source: MindSpore, `lr_scheduler.PolynomialLR`.
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        if step == 0 or step > self.total_iters:
            return 1.0
        return float(((1 - step / self.total_iters) / (1 - (step - 1) / self.total_iters)) ** self.power)


class _Lambdas(LRScheduler):
    """Schedulers whose factors are functions of the step, one or one a group.

    Args:
        optimizer: As in `LRScheduler`.
        lr_lambda: A function of the step's number, or a list of one a group.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[Any], Any]] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        )
        if len(self.lr_lambdas) != groups:
            raise checks.fail_value(
                type(self).__name__, f"lr_lambda must have {groups} functions, one a group", len(self.lr_lambdas),
                "lr_lambda=function",
            )
        super().__init__(optimizer, last_epoch)


class LambdaLR(_Lambdas):
    """The first rates times ``lr_lambda(step)``; the arguments are those of `MultiplicativeLR`.

    Example: ``LambdaLR(optimizer, lambda step: 0.9 ** step)``. Source: MindSpore, `lr_scheduler.LambdaLR`.
    """

    def get_lr(self) -> list[Any]:
        """Return the first rates times the functions' values."""
        return [rate * _value(f(self.last_epoch)) for rate, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_Lambdas):
    """The present rates times ``lr_lambda(step)``.

    Example: ``MultiplicativeLR(optimizer, lambda step: 0.9)``. Source: MindSpore, `lr_scheduler.MultiplicativeLR`.
    """

    def get_lr(self) -> list[Any]:
        """Return the rates times the functions' values."""
        if self.last_epoch <= 0:
            return self._rates
        return [rate * _value(f(self.last_epoch)) for rate, f in zip(self._rates, self.lr_lambdas, strict=True)]


class CosineAnnealingLR(LRScheduler):
    """The rates fall to `eta_min` in `T_max` steps, as half a cosine does, and rise again.

    Args:
        optimizer: As in `LRScheduler`.
        T_max: Half a period.
        eta_min: The least rate.
        last_epoch: As in `LRScheduler`.

    Example: ``CosineAnnealingLR(optimizer, 10)``. Source: MindSpore, `lr_scheduler.CosineAnnealingLR`.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates of this step, from those of the last one."""
        step, turn = self.last_epoch, math.pi / self.T_max
        if step == 0:
            return self._rates
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:
            share = (1 - math.cos(turn)) / 2
            return [
                rate + (base - self.eta_min) * share for base, rate in zip(self.base_lrs, self._rates, strict=True)
            ]
        factor = (1 + math.cos(turn * step)) / (1 + math.cos(turn * (step - 1)))
        return [factor * (rate - self.eta_min) + self.eta_min for rate in self._rates]

    def _closed(self) -> _Rates | None:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rates fall as half a cosine does and start again, after `T_0` steps, then `T_mult` times as many.

    Args:
        optimizer: As in `LRScheduler`.
        T_0: The steps of the first fall.
        T_mult: How many times longer each next one is.
        eta_min: The least rate.
        last_epoch: As in `LRScheduler`.

    Example: ``CosineAnnealingWarmRestarts(optimizer, 2)``.
    Source: MindSpore, `lr_scheduler.CosineAnnealingWarmRestarts`.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self._part = 0.0
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Give the groups their next learning rates.

        Args:
            epoch: The number to go on from, in parts of an epoch too; None for the next.
        """
        if epoch is None:
            super().step()
            return
        self._part, whole = math.modf(checks.number(type(self).__name__, "epoch", epoch, at_least=0.0))
        self.last_epoch = int(whole)
        self._assign(self.get_lr())

    def get_lr(self) -> list[Any]:
        """Return the rates of this step."""
        past, length = self.last_epoch + self._part, self.T_0
        while past >= length:
            past, length = past - length, length * self.T_mult
        share = (1 + math.cos(math.pi * past / length)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CyclicLR(LRScheduler):
    """The rates go up and down between `base_lr` and `max_lr`.

    Args:
        optimizer: As in `LRScheduler`.
        base_lr: The least rate, one or one a group.
        max_lr: The greatest rate, one or one a group.
        step_size_up: Steps on the way up.
        step_size_down: Steps on the way down; as many without it.
        mode: "triangular", "triangular2" (half as high each time) or "exp_range" (times gamma ** step).
        gamma: For "exp_range".
        scale_fn: A function in place of the mode.
        scale_mode: Whether `scale_fn` is of the "cycle" or of the "iterations".
        last_epoch: As in `LRScheduler`.

    Example: ``CyclicLR(optimizer, 0.01, 0.1)``. Source: MindSpore, `lr_scheduler.CyclicLR`.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[Any], Any] | None = None, scale_mode: str = "cycle", last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        lows, highs = ([one] * groups if isinstance(one, (int, float)) else list(one) for one in (base_lr, max_lr))
        self.max_lrs: list[float] = highs
        if scale_fn is None:
            checks.one_of("CyclicLR", "mode", mode, ("triangular", "triangular2", "exp_range"))
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self._scale = scale_fn or {
            "triangular": lambda x: 1.0, "triangular2": lambda x: 1 / 2.0 ** (x - 1), "exp_range": lambda x: gamma**x,
        }[mode]
        self.scale_mode, self._total = scale_mode, step_size_up + (step_size_down or step_size_up)
        self._up = step_size_up / self._total
        for held, group, low in zip(optimizer.lrs, optimizer.param_groups, lows, strict=True):
            held.assign(np.float32(low))
            group["initial_lr"] = Tensor(np.float32(low))
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rates of this step."""
        cycle = math.floor(1 + self.last_epoch / self._total)
        x = 1.0 + self.last_epoch / self._total - cycle
        height = x / self._up if x <= self._up else (x - 1) / (self._up - 1)
        scale = _value(self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch))
        return [
            low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]


class SequentialLR(_Stepped):
    """One scheduler after the other: the next begins at each of the `milestones`.

    Args:
        optimizer: That of all of them.
        schedulers: The schedulers.
        milestones: One number less.
        last_epoch: As in `LRScheduler`.

    Raises:
        ValueError: A scheduler is of another optimizer, or there are not as many milestones.

    Example: ``SequentialLR(optimizer, [first, second], [5])``. Source: MindSpore, `lr_scheduler.SequentialLR`.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if any(one.optimizer is not optimizer for one in schedulers) or len(milestones) != len(schedulers) - 1:
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
        """Step the scheduler whose turn it is."""
        self.last_epoch += 1
        turn = bisect.bisect_right(self.milestones, self.last_epoch)
        begins = turn > 0 and self.milestones[turn - 1] == self.last_epoch
        self._schedulers[turn].step(*((0,) if begins else ()))


class ReduceLROnPlateau(_Stepped):
    """The rates are reduced when a metric has not become better for some steps.

    Args:
        optimizer: An optimizer of `mixtrain.experimental.optim`.
        mode: Whether the least ("min") or the greatest ("max") metric is best.
        factor: What the rates are multiplied by.
        patience: How many steps without a better metric are tolerated.
        threshold: How much better it must be.
        threshold_mode: Whether `threshold` is a share ("rel") or a difference ("abs").
        cooldown: Steps after a reduction in which none are counted.
        min_lr: The least rate, one or one a group.
        eps: Smaller reductions are left out.

    Example: ``ReduceLROnPlateau(optimizer, patience=2)``. Source: MindSpore, `lr_scheduler.ReduceLROnPlateau`.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:
        where = "ReduceLROnPlateau"
        checks.instance(where, "optimizer", optimizer, Optimizer, "mixtrain.experimental.optim.SGD(params, lr=0.1)")
        self.mode = checks.one_of(where, "mode", mode, ("min", "max"))
        self.threshold_mode = checks.one_of(where, "threshold_mode", threshold_mode, ("rel", "abs"))
        if factor >= 1.0:
            raise checks.fail_value(where, "factor must be below 1", factor, "factor=0.1")
        self.optimizer, self.factor, self.patience, self.threshold = optimizer, factor, patience, threshold
        self.cooldown, self.eps, self.last_epoch = cooldown, eps, 0
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * len(optimizer.param_groups)
        self.best = math.inf if mode == "min" else -math.inf
        self.wait = self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Look at a metric, and reduce the rates if it is time.

        Args:
            metrics: The metric.
        """
        current, self.last_epoch = _value(metrics), self.last_epoch + 1
        if self._better(current):
            self.best, self.wait = current, 0
        else:
            self.wait += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.wait = self.cooldown_counter - 1, 0
        if self.wait > self.patience:
            old = [_value(rate) for rate in self.optimizer.lrs]
            new = [max(rate * self.factor, least) for rate, least in zip(old, self.min_lrs, strict=True)]
            self._assign([b if a > b + self.eps else a for a, b in zip(old, new, strict=True)])
            self.cooldown_counter, self.wait = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Whether the last reduction is so recent that none are counted."""
        return self.cooldown_counter > 0

    def _better(self, current: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        bound = self.best * (1 - sign * self.threshold) if self.threshold_mode == "rel" else (
            self.best - sign * self.threshold
        )
        return current < bound if self.mode == "min" else current > bound
