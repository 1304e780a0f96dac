"""A sampler: which rows of a random-access source a pass reads, and in what order."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator, Sized

import numpy as np

from mixtrain import checks
from mixtrain.dataset.draw import Draw


class BuiltinSampler(abc.ABC):
    """The base of the samplers here.

    Attributes:
        num_samples: The most rows that a pass reads, or None for all that the sampler chooses.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        where = type(self).__name__
        self.num_samples = (
            None if num_samples is None else checks.integer(where, "num_samples", num_samples, at_least=1)
        )

    @abc.abstractmethod
    def order(self, draw: Draw, size: int) -> np.ndarray:
        """Return the indices of a pass over `size` rows, before `num_samples` cuts them."""

    def length(self, size: int) -> int | None:
        """Return how many rows `order` chooses from `size`; None where only a pass can tell."""
        return size

    def indices(self, draw: Draw, size: int) -> np.ndarray:
        """Return the indices of a pass over `size` rows.

        Raises:
            ValueError: The sampler gave an index outside the source.
        """
        chosen = np.asarray(self.order(draw, size), dtype=np.int64)[: self.num_samples]
        wrong = chosen[(chosen < 0) | (chosen >= size)]
        if wrong.size:
            raise ValueError(
                f"{type(self).__name__}: expected indices from 0 to {size - 1}, the rows of the source; "
                f"got {wrong[0]}. Write indices of rows that exist."
            )
        return chosen

    def count(self, size: int) -> int | None:
        """Return how many rows a pass over `size` rows reads; None where only a pass can tell."""
        length = self.length(size)
        return length if length is None or self.num_samples is None else min(length, self.num_samples)


class Sampler(BuiltinSampler):
    """The base of a user's sampler: a subclass yields indices in `__iter__`.

    Args:
        num_samples: The most rows that a pass reads; all by default.

    Attributes:
        dataset_size: Rows of the source, set before each pass.

    Example:
        >>> class Backwards(Sampler):
        ...     def __iter__(self):
        ...         yield from range(self.dataset_size - 1, -1, -1)
        >>> Backwards(num_samples=2).indices(Draw.start(), 5).tolist()
        [4, 3]

    Source: MindSpore, `mindspore.dataset.Sampler`.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.dataset_size = 0

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(
            f"{type(self).__name__}: expected __iter__, which yields indices; got none. "
            "Write def __iter__(self): ... in the sampler."
        )

    def order(self, draw: Draw, size: int) -> np.ndarray:
        self.dataset_size = size
        return np.fromiter(itertools.islice(iter(self), self.num_samples), np.int64)

    def length(self, size: int) -> int | None:
        return None


class IterSampler(BuiltinSampler):
    """Any iterable of indices; it is iterated anew for each pass."""

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self._sampler = sampler

    def order(self, draw: Draw, size: int) -> np.ndarray:
        return np.fromiter(itertools.islice(iter(self._sampler), self.num_samples), np.int64)

    def length(self, size: int) -> int | None:
        return len(self._sampler) if isinstance(self._sampler, Sized) else None
