"""Lists with the learning rate of each step, which is constant within an epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mixtrain import checks


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """Return rates that are constant between milestones.

    Args:
        milestone: Increasing steps at which each rate ends; the last is the length of the result.
        learning_rates: One rate for each milestone.

    Returns: One rate per step.

    Example:
        >>> piecewise_constant_lr([2, 3], [0.5, 0.25])
        [0.5, 0.5, 0.25]
    """
    where = "piecewise_constant_lr"
    checks.instance(where, "milestone", milestone, (tuple, list), "milestone=[2, 5]")
    checks.instance(where, "learning_rates", learning_rates, (tuple, list), "learning_rates=[0.1, 0.05]")
    if len(milestone) != len(learning_rates):
        raise checks.fail_value(
            where, "there must be one learning rate for each milestone",
            f"{len(milestone)} milestones and {len(learning_rates)} rates",
            "milestone=[2, 5], learning_rates=[0.1, 0.05]",
        )
    rates: list[float] = []
    for index, (end, rate) in enumerate(zip(milestone, learning_rates, strict=True)):
        checks.integer(where, f"milestone[{index}]", end, at_least=max(1, len(rates)))
        checks.number(where, f"learning_rates[{index}]", rate, example=0.1)
        rates += [rate] * (end - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return rates ``learning_rate * decay_rate ** (epoch / decay_epoch)``.

    Args:
        learning_rate: Initial rate, above 0.
        decay_rate: Factor that `decay_epoch` epochs multiply the rate by, above 0.
        total_step, step_per_epoch: Number of steps, which is the length of the result, and of those in an epoch.
        decay_epoch: Number of epochs per factor of `decay_rate`.
        is_stair: Whether the exponent is rounded down.

    Returns: One rate per step.

    Example:
        >>> exponential_decay_lr(0.5, 0.5, total_step=4, step_per_epoch=2, decay_epoch=1)
        [0.5, 0.5, 0.25, 0.25]
    """
    _check_decay("exponential_decay_lr", learning_rate, decay_rate, is_stair)

    def rate(epoch: int) -> float:
        periods = epoch // decay_epoch if is_stair else epoch / decay_epoch
        return float(learning_rate * decay_rate**periods)

    return _rate_per_step("exponential_decay_lr", rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def natural_exp_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return rates ``learning_rate * e ** (-decay_rate * epoch)``.

    Args:
        learning_rate, total_step, step_per_epoch: As in `exponential_decay_lr`.
        decay_rate: Decay per epoch, above 0.
        decay_epoch: With `is_stair`, the number of epochs with the same rate; otherwise it has no effect.
        is_stair: Whether the epoch is rounded down to a multiple of `decay_epoch`.

    Returns: One rate per step.

    Example:
        >>> [round(rate, 4) for rate in natural_exp_decay_lr(0.5, 1.0, 3, 1, 1)]
        [0.5, 0.1839, 0.0677]
    """
    _check_decay("natural_exp_decay_lr", learning_rate, decay_rate, is_stair)

    def rate(epoch: int) -> float:
        if is_stair:
            epoch = epoch // decay_epoch * decay_epoch
        return float(learning_rate * math.e ** (-decay_rate * epoch))

    return _rate_per_step("natural_exp_decay_lr", rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def inverse_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return rates ``learning_rate / (1 + decay_rate * epoch / decay_epoch)``.

    Args:
        learning_rate, total_step, step_per_epoch: As in `exponential_decay_lr`.
        decay_rate: Amount that `decay_epoch` epochs add to the denominator, above 0.
        decay_epoch: Number of epochs per `decay_rate`.
        is_stair: Whether ``epoch / decay_epoch`` is rounded down.

    Returns: One rate per step.

    Example:
        >>> inverse_decay_lr(0.5, 1.0, total_step=4, step_per_epoch=2, decay_epoch=1)
        [0.5, 0.5, 0.25, 0.25]
    """
    _check_decay("inverse_decay_lr", learning_rate, decay_rate, is_stair)

    def rate(epoch: int) -> float:
        decay = decay_rate * (epoch // decay_epoch) if is_stair else decay_rate * epoch / decay_epoch
        return float(learning_rate / (1 + decay))

    return _rate_per_step("inverse_decay_lr", rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """Return rates that decay from `max_lr` to `min_lr` along half a cosine wave, then stay constant.

    Args:
        total_step, step_per_epoch: As in `exponential_decay_lr`.
        min_lr, max_lr: Final rate, at least 0, and initial rate, above it.
        decay_epoch: Number of epochs until `min_lr` is reached.

    Returns: One rate per step.

    Example:
        >>> [round(rate, 4) for rate in cosine_decay_lr(0.0, 0.5, total_step=4, step_per_epoch=1, decay_epoch=2)]
        [0.5, 0.25, 0.0, 0.0]
    """
    where = "cosine_decay_lr"
    checks.number(where, "min_lr", min_lr, at_least=0.0)
    checks.number(where, "max_lr", max_lr, above=float(min_lr), example=0.1)

    def rate(epoch: int) -> float:
        return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch))

    return _rate_per_step(where, rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def polynomial_decay_lr(
    learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    power: float, update_decay_epoch: bool = False,
) -> list[float]:
    """Return rates ``(learning_rate - end_learning_rate) * (1 - epoch / decay_epoch) ** power + end_learning_rate``.

    Args:
        learning_rate, total_step, step_per_epoch: As in `exponential_decay_lr`.
        end_learning_rate: Final rate, at least 0.
        decay_epoch: Number of epochs until the final rate is reached, which then stays constant.
        power: Exponent, above 0.
        update_decay_epoch: Whether `decay_epoch` is extended to its next multiple when it is reached, so that the rate
            rises again.

    Returns: One rate per step.

    Example:
        >>> polynomial_decay_lr(0.5, 0.25, total_step=4, step_per_epoch=1, decay_epoch=2, power=1.0)
        [0.5, 0.375, 0.25, 0.25]
    """
    where = "polynomial_decay_lr"
    checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
    checks.number(where, "end_learning_rate", end_learning_rate, at_least=0.0)
    checks.number(where, "power", power, above=0.0, example=1.0)
    checks.boolean(where, "update_decay_epoch", update_decay_epoch)

    def rate(epoch: int) -> float:
        last = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        remaining = 1 - min(epoch, last) / last
        return float((learning_rate - end_learning_rate) * remaining**power + end_learning_rate)

    return _rate_per_step(where, rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """Return rates that rise linearly from 0 to `learning_rate` in `warmup_epoch` epochs, then stay constant.

    Args: total_step, step_per_epoch: As in `exponential_decay_lr`.
    Returns: One rate per step.

    Example:
        >>> warmup_lr(0.5, total_step=4, step_per_epoch=1, warmup_epoch=2)
        [0.0, 0.25, 0.5, 0.5]
    """
    checks.number("warmup_lr", "learning_rate", learning_rate, at_least=0.0, example=0.1)
    return _rate_per_step(
        "warmup_lr", lambda epoch: learning_rate * min(epoch, warmup_epoch) / warmup_epoch, total_step, step_per_epoch,
        warmup_epoch=warmup_epoch,
    )


def _check_decay(where: str, learning_rate: float, decay_rate: float, is_stair: bool) -> None:
    checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
    checks.number(where, "decay_rate", decay_rate, above=0.0, example=0.9)
    checks.boolean(where, "is_stair", is_stair)


def _rate_per_step(
    where: str, rate: Callable[[int], float], total_step: int, step_per_epoch: int, **epochs: int
) -> list[float]:
    """Evaluate `rate` at the epoch of each step, after checking that all counts are at least 1."""
    for name, value in (("total_step", total_step), ("step_per_epoch", step_per_epoch), *epochs.items()):
        checks.integer(where, name, value, at_least=1)
    return [rate(step // step_per_epoch) for step in range(total_step)]
