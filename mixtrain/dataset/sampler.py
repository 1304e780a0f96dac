"""A sampler: which rows of a random-access source a pass reads, and in what order."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator, Sized

import numpy as np

from mixtrain import checks
from mixtrain.dataset.pass_seed import PassSeed


class BuiltinSampler(abc.ABC):
    """The base of the samplers here.

    Attributes:
        num_samples: The most rows that a pass reads, or None for all that the sampler chooses; 0 means None.
        child_sampler: The sampler whose choice this one chooses from, or None where it chooses from all rows.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        where = type(self).__name__
        given = None if num_samples is None else checks.integer(where, "num_samples", num_samples, at_least=0)
        self.num_samples = given or None
        self.child_sampler: BuiltinSampler | None = None

    @abc.abstractmethod
    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        """Return the indices of a pass over `size` rows, before `num_samples` cuts them."""

    def length(self, size: int) -> int | None:
        """Return how many rows `order` chooses from `size`; None where only a pass can tell."""
        return size

    def labelled_order(self, pass_seed: PassSeed, size: int, labels: np.ndarray | None) -> np.ndarray:
        """Return `order(pass_seed, size)`, for a sampler that looks at `labels`, the classes of the rows, as well."""
        return self.order(pass_seed, size)

    def labelled_length(self, size: int, labels: np.ndarray | None) -> int | None:
        """Return `length(size)`, for a sampler that looks at `labels`, the classes of the rows, as well."""
        return self.length(size)

    def indices(self, pass_seed: PassSeed, size: int, labels: np.ndarray | None = None) -> np.ndarray:
        """Return the indices of a pass.

        Args:
            pass_seed: Where its random order comes from.
            size: Rows of the source.
            labels: The class of each, where it is known.

        Raises:
            ValueError: The sampler gave an index outside the source.
        """
        below = None
        if self.child_sampler is not None:
            below = self.child_sampler.indices(pass_seed.fold_in(0), size, labels)
            size, labels = len(below), None if labels is None else labels[below]
        chosen = np.asarray(self.labelled_order(pass_seed, size, labels), dtype=np.int64)[: self.num_samples]
        wrong = chosen[(chosen < 0) | (chosen >= size)]
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__}: expected indices from 0 to {size - 1}, the rows of the source; "
                f"got {wrong[0]}. Write indices of rows that exist."
            )
        return chosen if below is None else below[chosen]

    def count(self, size: int, labels: np.ndarray | None = None) -> int | None:
        """Return how many rows a pass over `size` rows of classes `labels` reads; None where only a pass can tell."""
        if self.child_sampler is not None:
            below = self.child_sampler.count(size, labels)
            if below is None:
                return None
            size = below
        length = self.labelled_length(size, labels)
        return length if length is None or self.num_samples is None else min(length, self.num_samples)

    def add_child(self, sampler: BuiltinSampler) -> None:
        """Choose from the rows that another sampler chose, instead of from all.

        Args:
            sampler: The other sampler.
        """
        where = f"{type(self).__name__}.add_child"
        checks.instance(where, "sampler", sampler, BuiltinSampler, "a sampler such as SequentialSampler()")
        if self.child_sampler is not None:
            raise checks.fail_value(where, "a sampler can have one child", sampler, "add_child on the child")
        self.child_sampler = sampler

    def get_child(self) -> BuiltinSampler | None:
        """Return the sampler that `add_child` was given, or None."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """Return the most rows that a pass reads, as far as the arguments of the sampler and its children tell."""
        below = None if self.child_sampler is None else self.child_sampler.get_num_samples()
        known = [count for count in (self.num_samples, below) if count is not None]
        return min(known) if known else None


class Sampler(BuiltinSampler):
    """The base of a user's sampler: a subclass yields indices in `__iter__`.

    Args:
        num_samples: The most rows that a pass reads; `__len__` where the subclass has it, else all that it yields.

    Attributes:
        dataset_size: Rows of the source, set before each pass.

    Example:
        >>> class Backwards(Sampler):
        ...     def __iter__(self):
        ...         yield from range(self.dataset_size - 1, -1, -1)
        >>> Backwards(num_samples=2).indices(PassSeed.start(), 5).tolist()
        [4, 3]

    Source: MindSpore, `mindspore.dataset.Sampler`.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        super().__init__(len(self) if num_samples is None and isinstance(self, Sized) else num_samples)
        self.dataset_size = 0

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(
            f"{type(self).__name__}: expected __iter__, which yields indices; got none. "
            "Write def __iter__(self): ... in the sampler."
        )

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        self.dataset_size = size
        return np.fromiter(itertools.islice(iter(self), self.num_samples), np.int64)

    def length(self, size: int) -> int | None:
        return None


class IterSampler(BuiltinSampler):
    """Any iterable of indices; it is iterated anew for each pass.

    Args:
        sampler: The iterable.
        num_samples: The most rows that a pass reads; all by default.

    Example:
        >>> IterSampler([2, 0]).indices(PassSeed.start(), 3).tolist()
        [2, 0]

    Source: MindSpore, `mindspore.dataset.IterSampler`.
    """

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._sampler = sampler

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        return np.fromiter(itertools.islice(iter(self._sampler), self.num_samples), np.int64)

    def length(self, size: int) -> int | None:
        return len(self._sampler) if isinstance(self._sampler, Sized) else None
