"""`thor`: MindSpore's second-order optimizer, which is not offered."""

from __future__ import annotations

from typing import Any, NoReturn


def thor(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: THOR needs statistics that its own layers gather.

    Args:
        *args: Whatever MindSpore's takes.
        **kwargs: Whatever MindSpore's takes.

    Raises:
        NotImplementedError: Always; it says what to use instead.

    Source: MindSpore, `mindspore.nn.thor`.
    """
    raise NotImplementedError(
        "thor: the second-order optimizer THOR is not offered. "
        "Write nn.Momentum(network.trainable_params(), learning_rate, 0.9), or nn.Lamb or nn.LARS for large batches."
    )
