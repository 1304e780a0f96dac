"""Build the sampler of a source from its arguments: sampler, shuffle and shards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

import numpy as np

from mixtrain import checks
from mixtrain.dataset.sampler import BuiltinSampler, IterSampler
from mixtrain.dataset.samplers import DistributedSampler, RandomSampler, SequentialSampler, SubsetSampler
from mixtrain.dataset.shuffle_mode import Shuffle, read_shuffle


class _Indices(Protocol):
    """A user's sampler without `__iter__`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> int: ...


# A sampler, one index, or indices.
SamplerLike: TypeAlias = BuiltinSampler | Iterable[int] | _Indices | int


def choose_sampler(
    where: str, *, sampler: SamplerLike | None, shuffle: bool | Shuffle | None, num_samples: int | None,
    num_shards: int | None, shard_id: int | None,
) -> BuiltinSampler:
    """Return the sampler for the arguments of a source. Raises: ValueError: The arguments contradict each other."""
    shuffled = read_shuffle(where, shuffle) is Shuffle.GLOBAL
    check_shards(where, num_shards, shard_id)
    if num_samples is not None:
        num_samples = checks.integer(where, "num_samples", num_samples, at_least=0) or None
    if sampler is not None:
        return _read_sampler(where, sampler, None if shuffle is None else shuffled, num_samples, num_shards)
    if num_shards is not None and shard_id is not None:
        return DistributedSampler(num_shards, shard_id, shuffled, num_samples)
    if shuffled:
        return RandomSampler(replacement=num_samples is not None, num_samples=num_samples)
    return SequentialSampler(num_samples=num_samples)


def check_shards(where: str, num_shards: int | None, shard_id: int | None) -> None:
    """Raise if only one of `num_shards` and `shard_id` is passed, or if they are invalid."""
    if (num_shards is None) != (shard_id is None):
        raise checks.fail_value(
            where, "num_shards and shard_id go together", (num_shards, shard_id), "num_shards=2, shard_id=0"
        )
    if num_shards is not None and shard_id is not None:
        DistributedSampler(num_shards, shard_id)


def check_workers(where: str, num_parallel_workers: int | None) -> None:
    """Raise if a number of workers is not a positive int."""
    if num_parallel_workers is not None:
        checks.integer(where, "num_parallel_workers", num_parallel_workers, at_least=1, example=8)


def _read_sampler(
    where: str, sampler: Any, shuffle: bool | None, num_samples: int | None, num_shards: int | None
) -> BuiltinSampler:
    if shuffle or num_shards is not None:
        raise checks.fail_value(
            where, "a sampler decides order and shard by itself", f"shuffle={shuffle}, num_shards={num_shards}",
            "sampler=... without shuffle, num_shards and shard_id",
        )
    if isinstance(sampler, BuiltinSampler):
        if shuffle is not None or num_samples is not None:
            raise checks.fail_value(
                where, "a sampler object takes no shuffle or num_samples beside it",
                f"shuffle={shuffle}, num_samples={num_samples}", "num_samples in the sampler",
            )
        return sampler
    if isinstance(sampler, (int, list, tuple, np.ndarray)) and not isinstance(sampler, bool):
        return SubsetSampler(sampler, num_samples)  # type: ignore[arg-type]
    is_sequence = hasattr(sampler, "__getitem__") and hasattr(sampler, "__len__")
    if is_sequence and not isinstance(sampler, (str, Iterable)):
        sampler = [sampler[index] for index in range(len(sampler))]
    if isinstance(sampler, Iterable) and not isinstance(sampler, str):
        return IterSampler(sampler, num_samples)
    raise checks.fail_type(where, "sampler must be a sampler or an iterable of indices", sampler, "sampler=[0, 2, 4]")
