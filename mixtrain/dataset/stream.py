"""Turn a stage into the backend's pipeline, each pass over which is the next epoch of one run."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from mixtrain import data_backend
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage


def open_pipeline(stage: Stage, *, initial_epoch: int = 0) -> data_backend.Pipeline:
    """Return the rows of a stage as a pipeline, from `initial_epoch` on; with a seed, an epoch always has the same
    order.

    The first row is read here to find dtypes and ranks; the first pass starts with it, and computes no row twice.
    """
    pass_seed = PassSeed.start()
    epochs = itertools.count(initial_epoch)
    rows = stage.rows(pass_seed.at_epoch(next(epochs)))
    example = next(rows, None)
    if example is None:
        raise ValueError(
            "dataset: expected at least one row in an epoch; got none. Write a smaller skip or batch_size, "
            "or drop_remainder=False."
        )
    opened = [itertools.chain([example], rows)]

    def start_pass() -> Iterator[Row]:
        return opened.pop() if opened else stage.rows(pass_seed.at_epoch(next(epochs)))

    size = math.inf if stage.infinite else stage.size
    pipeline = data_backend.pipeline_from_rows(start_pass, example, size=size, columns=stage.columns)
    return dataclasses.replace(pipeline, uniform=stage.uniform)
