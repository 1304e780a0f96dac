"""Learning rates of every step as a list: they stay within an epoch and change from epoch to epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mixtrain import checks


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """Return rates that stay until each milestone.

    Args:
        milestone: Steps at which the next rate begins, rising; the last is the length of the list.
        learning_rates: One rate for each milestone.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument is not a list, or holds something else.
        ValueError: Their lengths differ, or the milestones fall.

    Example:
        >>> piecewise_constant_lr([2, 3], [0.5, 0.25])
        [0.5, 0.5, 0.25]

    Source: MindSpore, `mindspore.nn.piecewise_constant_lr`.
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
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return rates ``learning_rate * decay_rate ** (epoch / decay_epoch)``.

    Args:
        learning_rate: The first rate, above 0.
        decay_rate: Factor of `decay_epoch` epochs, above 0.
        total_step: Number of steps.
        step_per_epoch: Steps of an epoch.
        decay_epoch: Epochs of a decay.
        is_stair: Whether the exponent is rounded down.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> exponential_decay_lr(0.5, 0.5, total_step=4, step_per_epoch=2, decay_epoch=1)
        [0.5, 0.5, 0.25, 0.25]

    Source: MindSpore, `mindspore.nn.exponential_decay_lr`.
    """
    _check_decay("exponential_decay_lr", learning_rate, decay_rate, is_stair)

    def rate(epoch: int) -> float:
        share = epoch // decay_epoch if is_stair else epoch / decay_epoch
        return float(learning_rate * decay_rate**share)

    return _by_epoch("exponential_decay_lr", rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return rates ``learning_rate * e ** (-decay_rate * epoch)``.

    Args:
        learning_rate: The first rate, above 0.
        decay_rate: Decay of an epoch, above 0.
        total_step: Number of steps.
        step_per_epoch: Steps of an epoch.
        decay_epoch: Epochs that share a rate with `is_stair`; otherwise without effect.
        is_stair: Whether the epoch is rounded down to a multiple of `decay_epoch`.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> [round(rate, 4) for rate in natural_exp_decay_lr(0.5, 1.0, 3, 1, 1)]
        [0.5, 0.1839, 0.0677]

    Source: MindSpore, `mindspore.nn.natural_exp_decay_lr`.
    """
    _check_decay("natural_exp_decay_lr", learning_rate, decay_rate, is_stair)

    def rate(epoch: int) -> float:
        reached = epoch // decay_epoch * decay_epoch if is_stair else epoch
        return float(learning_rate * math.e ** (-decay_rate * reached))

    return _by_epoch("natural_exp_decay_lr", rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return rates ``learning_rate / (1 + decay_rate * epoch / decay_epoch)``.

    Args:
        learning_rate: The first rate, above 0.
        decay_rate: What `decay_epoch` epochs add to the denominator, above 0.
        total_step: Number of steps.
        step_per_epoch: Steps of an epoch.
        decay_epoch: Epochs of a decay.
        is_stair: Whether ``epoch / decay_epoch`` is rounded down.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> inverse_decay_lr(0.5, 1.0, total_step=4, step_per_epoch=2, decay_epoch=1)
        [0.5, 0.5, 0.25, 0.25]

    Source: MindSpore, `mindspore.nn.inverse_decay_lr`.
    """
    _check_decay("inverse_decay_lr", learning_rate, decay_rate, is_stair)

    def rate(epoch: int) -> float:
        grown = decay_rate * (epoch // decay_epoch) if is_stair else decay_rate * epoch / decay_epoch
        return float(learning_rate / (1 + grown))

    return _by_epoch("inverse_decay_lr", rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """Return rates that fall from `max_lr` to `min_lr` along half a cosine wave, and stay there.

    Args:
        min_lr: The last rate, at least 0.
        max_lr: The first rate, above `min_lr`.
        total_step: Number of steps.
        step_per_epoch: Steps of an epoch.
        decay_epoch: Epochs until `min_lr` is reached.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> [round(rate, 4) for rate in cosine_decay_lr(0.0, 0.5, total_step=4, step_per_epoch=1, decay_epoch=2)]
        [0.5, 0.25, 0.0, 0.0]

    Source: MindSpore, `mindspore.nn.cosine_decay_lr`.
    """
    where = "cosine_decay_lr"
    checks.number(where, "min_lr", min_lr, at_least=0.0)
    checks.number(where, "max_lr", max_lr, above=float(min_lr), example=0.1)

    def rate(epoch: int) -> float:
        reached = min(epoch, decay_epoch)
        return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * reached / decay_epoch))

    return _by_epoch(where, rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """Return rates ``(learning_rate - end_learning_rate) * (1 - epoch / decay_epoch) ** power + end_learning_rate``.

    Args:
        learning_rate: The first rate, above 0.
        end_learning_rate: The last rate, at least 0.
        total_step: Number of steps.
        step_per_epoch: Steps of an epoch.
        decay_epoch: Epochs until the last rate is reached; it stays from then on.
        power: Exponent, above 0.
        update_decay_epoch: Whether, instead of staying, `decay_epoch` becomes its next multiple, so that the rate
            rises again.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> polynomial_decay_lr(0.5, 0.25, total_step=4, step_per_epoch=1, decay_epoch=2, power=1.0)
        [0.5, 0.375, 0.25, 0.25]

    Source: MindSpore, `mindspore.nn.polynomial_decay_lr`.
    """
    where = "polynomial_decay_lr"
    checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
    checks.number(where, "end_learning_rate", end_learning_rate, at_least=0.0)
    checks.number(where, "power", power, above=0.0, example=1.0)
    checks.boolean(where, "update_decay_epoch", update_decay_epoch)

    def rate(epoch: int) -> float:
        last = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        left = 1 - min(epoch, last) / last
        return float((learning_rate - end_learning_rate) * left**power + end_learning_rate)

    return _by_epoch(where, rate, total_step, step_per_epoch, decay_epoch=decay_epoch)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """Return rates that rise from 0 to `learning_rate` and stay there.

    Args:
        learning_rate: The last rate, at least 0.
        total_step: Number of steps.
        step_per_epoch: Steps of an epoch.
        warmup_epoch: Epochs until `learning_rate` is reached.

    Returns:
        One rate a step.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> warmup_lr(0.5, total_step=4, step_per_epoch=1, warmup_epoch=2)
        [0.0, 0.25, 0.5, 0.5]

    Source: MindSpore, `mindspore.nn.warmup_lr`.
    """
    checks.number("warmup_lr", "learning_rate", learning_rate, at_least=0.0, example=0.1)
    return _by_epoch(
        "warmup_lr", lambda epoch: learning_rate * min(epoch, warmup_epoch) / warmup_epoch, total_step, step_per_epoch,
        warmup_epoch=warmup_epoch,
    )


def _check_decay(where: str, learning_rate: float, decay_rate: float, is_stair: bool) -> None:
    checks.number(where, "learning_rate", learning_rate, above=0.0, example=0.1)
    checks.number(where, "decay_rate", decay_rate, above=0.0, example=0.9)
    checks.boolean(where, "is_stair", is_stair)


def _by_epoch(
    where: str, rate: Callable[[int], float], total_step: int, step_per_epoch: int, **epochs: int
) -> list[float]:
    """Return the rate of each step's epoch."""
    for name, value in (("total_step", total_step), ("step_per_epoch", step_per_epoch), *epochs.items()):
        checks.integer(where, name, value, at_least=1)
    return [rate(step // step_per_epoch) for step in range(total_step)]
