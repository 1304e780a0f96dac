"""`thor`: placeholder for MindSpore's second-order optimizer, which is not supported."""

from __future__ import annotations

from typing import Any, NoReturn


def thor(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: THOR needs statistics that only its own layers collect.

    Args:
        *args: Arguments of MindSpore's `thor`.
        **kwargs: Keyword arguments of MindSpore's `thor`.

    Raises: NotImplementedError: Always; the message names alternatives.
    """
    raise NotImplementedError(
        "thor: the second-order optimizer THOR is not offered. "
        "Write nn.Momentum(network.trainable_params(), learning_rate, 0.9), or nn.Lamb or nn.LARS for large batches."
    )
