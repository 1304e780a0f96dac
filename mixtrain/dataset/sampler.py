"""The base classes of samplers, which select the rows of a random-access source and their order."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator, Sized

import numpy as np

from mixtrain import checks
from mixtrain.dataset.pass_seed import PassSeed


class BuiltinSampler(abc.ABC):
    """Base class of all samplers.

    Attributes:
        num_samples: Maximum number of rows in a pass; None or 0: all that the sampler selects.
        child_sampler: The sampler from whose rows this one selects; None: it selects from all rows.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        where = type(self).__name__
        limit = 0 if num_samples is None else checks.integer(where, "num_samples", num_samples, at_least=0)
        self.num_samples = limit or None
        self.child_sampler: BuiltinSampler | None = None

    @abc.abstractmethod
    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        """Return the indices of a pass over `size` rows, before they are limited to `num_samples`."""

    def length(self, size: int) -> int | None:
        """Return how many of `size` rows `order` selects; None if unknown before a pass."""
        return size

    def labelled_order(self, pass_seed: PassSeed, size: int, labels: np.ndarray | None) -> np.ndarray:
        """Return `order(pass_seed, size)`, which may depend on `labels`, the classes of the rows, too."""
        return self.order(pass_seed, size)

    def labelled_length(self, size: int, labels: np.ndarray | None) -> int | None:
        """Return `length(size)`, which may depend on `labels`, the classes of the rows, too."""
        return self.length(size)

    def indices(self, pass_seed: PassSeed, size: int, labels: np.ndarray | None = None) -> np.ndarray:
        """Return the indices of a pass.

        Args:
            pass_seed: The seed of the random order.
            size: Rows of the source.
            labels: The class of each row, if known.

        Raises: ValueError: The sampler returned an index outside the source.
        """
        candidates = None
        if self.child_sampler is not None:
            candidates = self.child_sampler.indices(pass_seed.fold_in(0), size, labels)
            size, labels = len(candidates), None if labels is None else labels[candidates]
        selected = np.asarray(self.labelled_order(pass_seed, size, labels), dtype=np.int64)[: self.num_samples]
        invalid = selected[(selected < 0) | (selected >= size)]
        if invalid.size:
            raise ValueError(
                f"{type(self).__name__}: expected indices from 0 to {size - 1}, the rows of the source; "
                f"got {invalid[0]}. Write indices of rows that exist."
            )
        return selected if candidates is None else candidates[selected]

    def count(self, size: int, labels: np.ndarray | None = None) -> int | None:
        """Return the number of rows in a pass over `size` rows of classes `labels`; None if unknown before a pass."""
        if self.child_sampler is not None:
            candidates = self.child_sampler.count(size, labels)
            if candidates is None:
                return None
            size = candidates
        length = self.labelled_length(size, labels)
        return length if length is None or self.num_samples is None else min(length, self.num_samples)

    def add_child(self, sampler: BuiltinSampler) -> None:
        """Select from the rows of another sampler instead of from all rows. `sampler`: the other sampler."""
        where = f"{type(self).__name__}.add_child"
        checks.instance(where, "sampler", sampler, BuiltinSampler, "a sampler such as SequentialSampler()")
        if self.child_sampler is not None:
            raise checks.fail_value(where, "a sampler can have one child", sampler, "add_child on the child")
        self.child_sampler = sampler

    def get_child(self) -> BuiltinSampler | None:
        """Return the sampler that was passed to `add_child`, or None."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """Return the maximum number of rows in a pass, as set in the sampler and its children; None: unknown."""
        child_count = None if self.child_sampler is None else self.child_sampler.get_num_samples()
        return min((count for count in (self.num_samples, child_count) if count is not None), default=None)


class Sampler(BuiltinSampler):
    """Base class of user-defined samplers: a subclass yields indices in `__iter__`.

    Args: num_samples: Maximum number of rows in a pass; by default the length of the sampler, or all that it yields.

    Attributes:
        dataset_size: Rows of the source, set before each pass.

    Example:
        >>> class Backwards(Sampler):
        ...     def __iter__(self):
        ...         yield from range(self.dataset_size - 1, -1, -1)
        >>> Backwards(num_samples=2).indices(PassSeed.start(), 5).tolist()
        [4, 3]
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
    """A `sampler` from any iterable of indices, which is iterated once for each pass; `num_samples` is the maximum
    number of rows.

    Example:
        >>> IterSampler([2, 0]).indices(PassSeed.start(), 3).tolist()
        [2, 0]
    """

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._sampler = sampler

    def order(self, pass_seed: PassSeed, size: int) -> np.ndarray:
        return np.fromiter(itertools.islice(iter(self._sampler), self.num_samples), np.int64)

    def length(self, size: int) -> int | None:
        return len(self._sampler) if isinstance(self._sampler, Sized) else None
