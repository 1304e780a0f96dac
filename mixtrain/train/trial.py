"""Run trial steps that are undone: the first batches of a dataset, and restoring what training writes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from mixtrain import backend
from mixtrain.train.feed import Feed
from mixtrain.train.networks import Networks
from mixtrain.typing import Batch


def first_batches(feed: Feed, count: int) -> list[Batch]:
    """Return the first batches of a dataset, which is repeated if it has fewer."""
    passes = (feed.batches() for _ in itertools.repeat(None))
    return list(itertools.islice(itertools.chain.from_iterable(passes), count))


@contextlib.contextmanager
def restoring_variables(networks: Networks) -> Iterator[None]:
    """Restore the values of all variables that training writes, at the end of the block."""
    values = [(variable, backend.to_numpy(variable).copy()) for variable in networks.step.variables()]
    try:
        yield
    finally:
        for variable, value in values:
            variable.assign(value)
