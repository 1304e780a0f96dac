"""Split the rows of a stage into parts that have none in common and stay the same in every epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.order import Pick
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.samplers import (
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
)
from mixtrain.dataset.stage import Stage


def split_stage(stage: Stage, size: int, sizes: Sequence[Any], randomize: bool) -> Iterator[Stage]:
    """Yield one stage per part.

    A source that is read by index is split by index, and each part is shuffled in each epoch if the source is. Any
    other stage is split by the position of the rows in one fixed pass.

    Raises: ValueError: The sizes do not add up, or the source is sharded.
    """
    counts = _read_sizes(sizes, size)
    fixed = PassSeed.start().at_epoch(0)
    order = fixed.fold_in(1).generator().permutation(size) if randomize else np.arange(size)
    parts = np.split(order, np.cumsum(counts)[:-1])
    sampler = stage.sampler
    if sampler is None:
        yield from (Pick(stage, part.tolist(), fixed) for part in parts)
        return
    if isinstance(sampler, DistributedSampler):
        raise checks.fail_value(
            "split", "the dataset must not be sharded before", "num_shards", "split first, then a DistributedSampler"
        )
    length = stage.with_sampler(SequentialSampler()).size or 0
    shuffled = isinstance(sampler, RandomSampler) and size == length
    rows = np.arange(size) if shuffled else sampler.indices(fixed, length, stage.labels)
    sampler_class = SubsetRandomSampler if shuffled else SubsetSampler
    yield from (stage.with_sampler(sampler_class(rows[part])) for part in parts)  # type: ignore[arg-type]


def _read_sizes(sizes: Sequence[Any], total: int) -> list[int]:
    checks.instance("split", "sizes", sizes, (list, tuple), "sizes=[0.8, 0.2]")
    if sizes and all(isinstance(size, int) for size in sizes):
        if min(sizes) < 1 or sum(sizes) != total:
            raise checks.fail_value(
                "split", f"sizes must be positive and add up to {total} rows", sizes, "sizes=[0.8, 0.2]"
            )
        return list(sizes)
    shares = [checks.number("split", "sizes", size, above=0.0, at_most=1.0, example=0.5) for size in sizes]
    if abs(sum(shares) - 1.0) > 1e-6:
        raise checks.fail_value("split", "shares must add up to 1", sizes, "sizes=[0.8, 0.2]")
    counts = [round(share * total) for share in shares]
    if min(counts) < 1:
        raise checks.fail_value(
            "split", f"every share of {total} rows must be at least one row", sizes, "larger shares"
        )
    surplus = sum(counts) - total  # Because of rounding; negative if rows are left over.
    index = next(index for index, count in enumerate(counts) if count > surplus)
    counts[index] -= surplus
    return counts
