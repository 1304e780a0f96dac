"""What steps that are tried and undone need: their batches, and everything that they write put back."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

from mixtrain import backend
from mixtrain.common.referenced_layers import referenced_variables
from mixtrain.seed import stream_states
from mixtrain.step.train_cell import TrainOneStepCell, TrainOneStepWithLossScaleCell
from mixtrain.train.feed import Feed
from mixtrain.train.networks import Networks
from mixtrain.train.stepper import Batch


def first_batches(feed: Feed, count: int) -> list[Batch]:
    """Return the first batches of a dataset, read pass after pass where one has fewer."""
    passes = (feed.batches() for _ in itertools.repeat(None))
    return list(itertools.islice(itertools.chain.from_iterable(passes), count))


@contextlib.contextmanager
def all_put_back(networks: Networks) -> Iterator[None]:
    """Give everything that training writes its value back at the end of the block.

    Args:
        networks: What is trained.
    """
    train = networks.train_network
    variables = [*referenced_variables([train]), *stream_states()]
    if isinstance(train, TrainOneStepCell):
        variables += [*train.weights, *train.driver.state_variables(), train.driver.counter]
    if isinstance(train, TrainOneStepWithLossScaleCell):
        variables += train.state.variables()
    values = [(one, backend.to_numpy(one).copy()) for one in {id(one): one for one in variables}.values()]
    try:
        yield
    finally:
        for variable, value in values:
            variable.assign(value)
