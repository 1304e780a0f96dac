"""From a stage to the backend's stream, each pass of which is the next epoch of one run."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from mixtrain import backend
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage


def open_pipeline(stage: Stage, *, initial_epoch: int = 0) -> backend.Pipeline:
    """Return the rows of a stage as a stream.

    The first row is read here, to learn dtypes and ranks; the first pass begins with it, so that no row is made twice.

    Args:
        stage: Makes the rows.
        initial_epoch: Which epoch the first pass is; under one seed it has the order that this epoch always has.

    Raises:
        ValueError: There is no row.
    """
    pass_seed = PassSeed.start()
    epochs = itertools.count(initial_epoch)
    opened = stage.rows(pass_seed.at_epoch(next(epochs)))
    example = next(opened, None)
    if example is None:
        raise ValueError(
            "dataset: expected at least one row in an epoch; got none. Write a smaller skip or batch_size, "
            "or drop_remainder=False."
        )
    waiting = [itertools.chain([example], opened)]

    def begin_pass() -> Iterator[Row]:
        return waiting.pop() if waiting else stage.rows(pass_seed.at_epoch(next(epochs)))

    size = math.inf if stage.infinite else stage.size
    pipeline = backend.pipeline_from_rows(begin_pass, example, size=size, columns=stage.columns)
    return dataclasses.replace(pipeline, even=stage.even)
