"""Run trial steps that are undone: the first batches of a dataset, and restoring what training writes."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.train.feed import Feed
from mixtrain.train.stepper import Stepper
from mixtrain.typing import Batch

# The exponent of the largest scale tried: scales are powers of two that float32 can represent.
MAX_EXPONENT: Final = 126


def first_batches(feed: Feed, count: int) -> list[Batch]:
    """Return the first batches of a dataset, which is repeated if it has fewer."""
    passes = (feed.batches() for _ in itertools.repeat(None))
    return list(itertools.islice(itertools.chain.from_iterable(passes), count))


@contextlib.contextmanager
def restoring(variables: Iterable[keras.Variable]) -> Iterator[None]:
    """Restore the values of variables at the end of the block."""
    values = [(variable, backend.to_numpy(variable).copy()) for variable in variables]
    try:
        yield
    finally:
        for variable, value in values:
            variable.assign(value)


def is_finite_at(stepper: Stepper, scale: keras.Variable, batch: Batch, loss_scale: float) -> bool:
    """Whether a step on a batch has a finite loss and finite gradients at a loss scale.

    The step is undone, and `scale`, the loss scale in use, is restored.
    """
    with restoring([scale]):
        scale.assign(np.float32(loss_scale))
        records = stepper.trial(batch)
    return not records.overflow[0] and bool(np.isfinite(records.loss[0]))


def largest_exponent(stepper: Stepper, scale: keras.Variable, batch: Batch, limit: int = MAX_EXPONENT) -> int | None:
    """Return the largest exponent of two, up to `limit`, at whose loss scale a step on a batch does not overflow.

    None if it overflows at each. The steps are undone, and `scale`, the loss scale in use, is restored.
    """

    def overflows(exponent: int) -> bool:
        scale.assign(np.float32(math.ldexp(1.0, exponent)))
        return bool(stepper.trial(batch).overflow[0])

    with restoring([scale]):
        if not overflows(limit):
            return limit
        # Binary search: `good` does not overflow, or is -1; `bad` does.
        good, bad = -1, limit
        while bad - good > 1:
            middle = (good + bad) // 2
            if overflows(middle):
                bad = middle
            else:
                good = middle
    return good if good >= 0 else None
