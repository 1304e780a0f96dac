"""The samplers of MindSpore's names, each a rule for the order of a pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixtrain import checks
from mixtrain.dataset.draw import Draw
from mixtrain.dataset.sampler import BuiltinSampler


class SequentialSampler(BuiltinSampler):
    """The rows in their own order.

    Args:
        start_index: The first row, 0 by default.
        num_samples: The most rows that a pass reads.

    Example:
        >>> SequentialSampler(2).indices(Draw.start(), 5).tolist()
        [2, 3, 4]

    Source: MindSpore, `mindspore.dataset.SequentialSampler`.
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._start = checks.integer("SequentialSampler", "start_index", start_index or 0, at_least=0)

    def order(self, draw: Draw, size: int) -> np.ndarray:
        return np.arange(self._start, size)

    def length(self, size: int) -> int:
        return max(0, size - self._start)


class RandomSampler(BuiltinSampler):
    """The rows in random order, another in each epoch.

    Args:
        replacement: Whether each row is drawn from all, so that it may come twice.
        num_samples: The most rows that a pass reads.

    Example:
        >>> sorted(RandomSampler().indices(Draw.start(), 4).tolist())
        [0, 1, 2, 3]

    Source: MindSpore, `mindspore.dataset.RandomSampler`.
    """

    def __init__(self, replacement: bool = False, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._replacement = checks.boolean("RandomSampler", "replacement", replacement)

    def order(self, draw: Draw, size: int) -> np.ndarray:
        if self._replacement:
            return draw.generator().integers(size, size=self.length(size))
        return draw.generator().permutation(size)

    def length(self, size: int) -> int:
        return self.num_samples if self._replacement and self.num_samples is not None else size


class SubsetSampler(BuiltinSampler):
    """The rows of the given indices, in that order.

    Args:
        indices: One index, or several.
        num_samples: The most rows that a pass reads.

    Example:
        >>> SubsetSampler([3, 1]).indices(Draw.start(), 5).tolist()
        [3, 1]

    Source: MindSpore, `mindspore.dataset.SubsetSampler`.
    """

    def __init__(self, indices: Sequence[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._indices = np.atleast_1d(np.asarray(indices, dtype=np.int64))

    def order(self, draw: Draw, size: int) -> np.ndarray:
        return self._indices

    def length(self, size: int) -> int:
        return len(self._indices)


class SubsetRandomSampler(SubsetSampler):
    """The rows of the given indices, in random order, another in each epoch.

    Args:
        indices: One index, or several.
        num_samples: The most rows that a pass reads.

    Example:
        >>> sorted(SubsetRandomSampler([3, 1]).indices(Draw.start(), 5).tolist())
        [1, 3]

    Source: MindSpore, `mindspore.dataset.SubsetRandomSampler`.
    """

    def order(self, draw: Draw, size: int) -> np.ndarray:
        return draw.generator().permutation(self._indices)


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn at random, some more often than others.

    Args:
        weights: How often each row comes, in proportion.
        num_samples: How many rows a pass reads, as many as there are weights by default.
        replacement: Whether a row may come twice.

    Raises:
        ValueError: A weight is negative or not finite, or all are 0.

    Example:
        >>> WeightedRandomSampler([0, 1, 0], 4).indices(Draw.start(), 3).tolist()
        [1, 1, 1, 1]

    Source: MindSpore, `mindspore.dataset.WeightedRandomSampler`.
    """

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        self._replacement = checks.boolean("WeightedRandomSampler", "replacement", replacement)
        values = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        if not np.all(np.isfinite(values)) or np.any(values < 0) or not values.sum() > 0:
            raise checks.fail_value(
                "WeightedRandomSampler", "weights must be finite, not negative and not all 0", weights, "weights=[1, 2]"
            )
        self._chances = values / values.sum()

    def order(self, draw: Draw, size: int) -> np.ndarray:
        return draw.generator().choice(
            len(self._chances), size=self.length(size), replace=self._replacement, p=self._chances
        )

    def length(self, size: int) -> int:
        return len(self._chances) if self.num_samples is None else self.num_samples


class DistributedSampler(BuiltinSampler):
    """Every `num_shards`-th row, from `shard_id` on; short shards are filled from the beginning.

    Args:
        num_shards: Into how many shards the rows are divided.
        shard_id: Which one to read, from 0.
        shuffle: Whether to divide the rows in random order, another in each epoch and the same on every shard.
        num_samples: The most rows of the shard that a pass reads.

    Raises:
        ValueError: `shard_id` is not below `num_shards`.

    Example:
        >>> DistributedSampler(4, 3, shuffle=False).indices(Draw.start(), 6).tolist()
        [3, 1]

    Source: MindSpore, `mindspore.dataset.DistributedSampler`.
    """

    def __init__(self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        where = "DistributedSampler"
        self._shards = checks.integer(where, "num_shards", num_shards, at_least=1)
        self._shard = checks.integer(where, "shard_id", shard_id, at_least=0)
        if self._shard >= self._shards:
            raise checks.fail_value(
                where, f"shard_id must be less than num_shards={num_shards}", shard_id, "shard_id=0"
            )
        self._shuffle = checks.boolean(where, "shuffle", shuffle)

    def order(self, draw: Draw, size: int) -> np.ndarray:
        every = draw.common().generator().permutation(size) if self._shuffle else np.arange(size)
        return every[(self._shard + self._shards * np.arange(self.length(size))) % max(size, 1)]

    def length(self, size: int) -> int:
        return -(-size // self._shards)
