"""MindSpore's samplers: sequential, random, by index, weighted, distributed and by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixtrain import checks
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import BuiltinSampler
from mixtrain.dataset.shuffle_mode import Shuffle, read_shuffle


class SequentialSampler(BuiltinSampler):
    """The rows in the order of the source, from `start_index` on, at most `num_samples`.

    Example:
        >>> SequentialSampler(2).indices(PassSeed.start(), 5).tolist()
        [2, 3, 4]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._start = checks.integer("SequentialSampler", "start_index", start_index or 0, at_least=0)

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        if self._start >= size:
            raise checks.fail_value(
                "SequentialSampler", f"start_index must be less than the {size} rows", self._start, "start_index=0"
            )
        return np.arange(self._start, size)

    def length(self, size: int) -> int:
        return max(0, size - self._start)


class RandomSampler(BuiltinSampler):
    """The rows in random order, a new one in each epoch.

    Args:
        replacement: Whether rows are sampled with replacement, so that a row may be repeated.
        num_samples: Maximum number of rows in a pass, at most the number of rows of the source.
        shuffle: `Shuffle.GLOBAL`; the other modes are for MindRecord files.

    Example:
        >>> sorted(RandomSampler().indices(PassSeed.start(), 4).tolist())
        [0, 1, 2, 3]
    """

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None, shuffle: Shuffle = Shuffle.GLOBAL
    ) -> None:
        super().__init__(num_samples)
        self._replacement = checks.boolean("RandomSampler", "replacement", replacement)
        if read_shuffle("RandomSampler", shuffle) is not Shuffle.GLOBAL:
            raise checks.fail_value("RandomSampler", "shuffle must mix", str(shuffle), "a SequentialSampler")

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        if self._replacement:
            return pass_seed.generator().integers(size, size=size)
        return pass_seed.generator().permutation(size)


class SubsetSampler(BuiltinSampler):
    """The rows with the given `indices`, one or several, in that order, at most `num_samples`.

    Example:
        >>> SubsetSampler([3, 1]).indices(PassSeed.start(), 5).tolist()
        [3, 1]
    """

    def __init__(self, indices: Sequence[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        numbers = np.atleast_1d(np.asarray(indices))
        if numbers.size and numbers.dtype.kind not in "iu":
            raise checks.fail_type(type(self).__name__, "indices must be ints", indices, "indices=[0, 1]")
        self._indices = numbers.astype(np.int64)

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        return self._indices

    def length(self, size: int) -> int:
        return len(self._indices)

    def get_num_samples(self) -> int | None:
        limit = super().get_num_samples()
        return len(self._indices) if limit is None else min(len(self._indices), limit)


class SubsetRandomSampler(SubsetSampler):
    """The rows with the given indices, in random order, a new one in each epoch.

    Args: indices, num_samples: As in `SubsetSampler`.

    Example:
        >>> sorted(SubsetRandomSampler([3, 1]).indices(PassSeed.start(), 5).tolist())
        [1, 3]
    """

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        return pass_seed.generator().permutation(self._indices)


class WeightedRandomSampler(BuiltinSampler):
    """Rows sampled at random with given weights.

    Args:
        weights: The weight of each row; they need not sum to 1.
        num_samples: Number of rows in a pass, at most and by default the number of rows of the source.
        replacement: Whether a row may be repeated.

    Raises: ValueError: A weight is negative or not finite, or all are 0.

    Example:
        >>> WeightedRandomSampler([0, 1, 0], 2).indices(PassSeed.start(), 3).tolist()
        [1, 1]
    """

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        self._replacement = checks.boolean("WeightedRandomSampler", "replacement", replacement)
        values = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        if not np.all(np.isfinite(values)) or np.any(values < 0) or not values.sum() > 0:
            raise checks.fail_value(
                "WeightedRandomSampler", "weights must be finite, not negative and not all 0", weights, "weights=[1, 2]"
            )
        self._probabilities = values / values.sum()

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        return pass_seed.generator().choice(
            len(self._probabilities), size=self.length(size), replace=self._replacement, p=self._probabilities
        )

    def length(self, size: int) -> int:
        count = size if self.num_samples is None else min(self.num_samples, size)
        return count if self._replacement else min(count, int(np.count_nonzero(self._probabilities)))


class DistributedSampler(BuiltinSampler):
    """Every `num_shards`-th row, starting at `shard_id`; short shards are filled with the first rows.

    Args:
        num_shards: Number of shards that the rows are divided into.
        shard_id: The shard to read, from 0.
        shuffle: Whether to divide the rows in random order, a new one in each epoch and the same on every shard; a
            `Shuffle` means the same.
        num_samples: Maximum number of rows of the shard in a pass.
        offset: The shard that gets the first row; then no shard is filled. By default -1: shard 0, and filled.

    Example:
        >>> DistributedSampler(4, 3, shuffle=False).indices(PassSeed.start(), 6).tolist()
        [3, 1]
    """

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool | Shuffle = True, num_samples: int | None = None,
        offset: int = -1,
    ) -> None:
        super().__init__(num_samples)
        where = "DistributedSampler"
        self.num_shards = checks.integer(where, "num_shards", num_shards, at_least=1)
        self.shard_id = checks.integer(where, "shard_id", shard_id, at_least=0)
        if self.shard_id >= self.num_shards:
            raise checks.fail_value(
                where, f"shard_id must be less than num_shards={num_shards}", shard_id, "shard_id=0"
            )
        self.shuffled = read_shuffle(where, shuffle) is Shuffle.GLOBAL
        self.offset = checks.integer(where, "offset", offset, at_least=-1)
        if self.offset > self.num_shards:
            raise checks.fail_value(where, f"offset must be at most num_shards={num_shards}", offset, "offset=-1")

    @property
    def _first(self) -> int:
        """The index of the first row of the shard."""
        return self.shard_id if self.offset < 0 else (self.shard_id - self.offset) % self.num_shards

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        indices = pass_seed.common().generator().permutation(size) if self.shuffled else np.arange(size)
        # The modulo fills a short shard with the first rows.
        return indices[(self._first + self.num_shards * np.arange(self.length(size))) % max(size, 1)]

    def length(self, size: int) -> int:
        if self.offset >= 0:
            return len(range(self._first, size, self.num_shards))
        return -(-size // self.num_shards)


class PKSampler(BuiltinSampler):
    """`num_val` random rows of each class, class by class, sampled with replacement, so that a row may be repeated.

    Args:
        num_class, class_column: Not supported, must be None; and without effect: it is for MindRecord files.
        shuffle: Whether the classes come in random order, a new one in each epoch.
        num_samples: Maximum number of rows in a pass.

    Raises: ValueError: `num_val` is below 1 or `num_class` is given; on reading, the source has no labels.

    Example:
        >>> PKSampler(1).indices(PassSeed.start(), 3, np.array([7, 5, 8])).tolist()
        [1, 0, 2]
    """

    def __init__(
        self, num_val: int, num_class: None = None, shuffle: bool = False, class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        super().__init__(num_samples)
        if num_class is not None:
            raise checks.fail_value("PKSampler", "num_class is not supported", num_class, "num_class=None")
        checks.instance("PKSampler", "class_column", class_column, str, 'class_column="label"')
        self._num_val = checks.integer("PKSampler", "num_val", num_val, at_least=1)
        self._shuffle = checks.boolean("PKSampler", "shuffle", shuffle)

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        raise ValueError(
            "PKSampler: expected a source with labels (MnistDataset, Cifar10Dataset, ImageFolderDataset); got one "
            "without. Write another sampler."
        )

    def labelled_order(self, pass_seed: PassSeed, size: int, labels: np.ndarray | None) -> np.ndarray:
        if labels is None:
            return self.order(pass_seed, size)
        generator = pass_seed.generator()
        classes = np.unique(labels)
        if self._shuffle:
            classes = generator.permutation(classes)
        return np.concatenate([generator.choice(np.flatnonzero(labels == label), self._num_val) for label in classes])

    def labelled_length(self, size: int, labels: np.ndarray | None) -> int | None:
        return None if labels is None else len(np.unique(labels)) * self._num_val
