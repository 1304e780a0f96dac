"""Stages with several parents: zip joins their columns, concat their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mixtrain import checks
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import BuiltinSampler
from mixtrain.dataset.samplers import DistributedSampler
from mixtrain.dataset.stage import Row, Stage


class Zip(Stage):
    """The columns of all parents, row by row, until the shortest ends.

    All parents use the same pass_seed, so that sources of equal length that are shuffled globally stay aligned.
    """

    def __init__(self, parents: Sequence[Stage]) -> None:
        columns = tuple(name for parent in parents for name in parent.columns)
        for name in columns:
            if columns.count(name) > 1:
                raise checks.fail_value("zip", "the datasets must have different columns", name, ".rename(...) first")
        super().__init__(columns, *parents)

    @property
    def size(self) -> int | None:
        sizes = [parent.size for parent in self.parents if not parent.infinite or self.infinite]
        known = [size for size in sizes if size is not None]
        return min(known) if len(known) == len(sizes) else None

    @property
    def infinite(self) -> bool:
        return all(parent.infinite for parent in self.parents)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for rows in zip(*(parent.rows(pass_seed) for parent in self.parents), strict=False):
            yield tuple(value for row in rows for value in row)


class Concat(Stage):
    """The rows of all parents, one parent after the other."""

    def __init__(self, parents: Sequence[Stage]) -> None:
        super().__init__(parents[0].columns, *parents)
        for parent in parents:
            if parent.columns != self.columns:
                raise checks.fail_value(
                    "concat", f"the datasets must have the same columns, {checks.join_names(self.columns)}",
                    ", ".join(parent.columns), ".project(...) or .rename(...) first",
                )

    def with_sampler(self, sampler: BuiltinSampler) -> Stage:
        """Return the rows of one shard; the rows of all parents are assigned to the shards in turn."""
        if not isinstance(sampler, DistributedSampler) or sampler.shuffled or sampler.get_num_samples() is not None:
            raise checks.fail_value(
                "use_sampler", "on joined datasets the sampler must be a DistributedSampler without shuffle and "
                "num_samples", sampler, "DistributedSampler(num_shards, shard_id, shuffle=False)",
            )
        parts, start = [], 0
        for parent in self.parents:
            size = parent.size
            if parent.sampler is None or size is None:
                raise checks.fail_value(
                    "use_sampler", "each joined dataset must come from a source that is read by index", parent.columns,
                    "the sampler in the sources",
                )
            offset = start % sampler.num_shards  # The shard that gets the first row of this parent.
            parts.append(
                parent.with_sampler(DistributedSampler(sampler.num_shards, sampler.shard_id, False, offset=offset))
            )
            start += size
        return Concat(parts)

    @property
    def uniform(self) -> bool:
        return super().uniform and len({parent.batch_size for parent in self.parents}) == 1

    @property
    def size(self) -> int | None:
        known = [parent.size for parent in self.parents if parent.size is not None]
        return sum(known) if len(known) == len(self.parents) else None

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for index, parent in enumerate(self.parents):
            yield from parent.rows(pass_seed.fold_in(index))
