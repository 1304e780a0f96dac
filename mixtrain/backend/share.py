"""A replica's share of a step: its rows of the batch, its seeds, and how its variable writes are merged."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

import keras

from mixtrain.typing import Tensor

_log = logging.getLogger("mixtrain")
# 2**32 / golden ratio, odd: its multiples are far apart, so that seeds of layers on different replicas rarely collide.
SEED_STRIDE: Final = 0x9E3779B9

Merge = Literal["seed", "sum", "mean", "first"]


@dataclasses.dataclass(frozen=True)
class Share:
    """The part of a batch that one replica computes."""

    rows: Tensor | int | None = None  # The number of its rows; None for a batch without rows.
    # That of a mean over these rows in the mean over the batch, a float or a scalar tensor; None for 1: they are all.
    weight: Tensor | None = None

    def weighted(self, mean: Tensor) -> Tensor:
        """Return a mean over these rows as a term of the mean over the batch."""
        return mean if self.weight is None else mean * self.weight


class Written(NamedTuple):
    """A write of a replica to a variable."""

    merge: Merge  # How the values of the replicas are merged.
    before: Any  # The value before the write.
    value: Any
    write: Callable[[Any], Any]  # Writes another value.


def is_one_number(value: Any) -> bool:
    """Whether a tensor is known to be a scalar."""
    rank = getattr(value.shape, "rank", -1)  # None for a TensorFlow shape of unknown rank, which has no length.
    return rank is not None and len(value.shape) == 0


def divide(rows: Any, count: int) -> bool:
    """Whether the number of rows is divisible by the number of replicas; logs if it is not."""
    if not rows:
        return False
    if rows % count:
        _log.info("replicas: %d rows do not divide by %d devices: each computes the whole batch", rows, count)
    return bool(rows % count == 0)


def rows_of_all(columns: Sequence[Tensor]) -> Tensor | int:
    """Return the number of rows of the tensors of a batch; None where it is unknown or there are none."""
    return next((column.shape[0] for column in columns if not is_one_number(column)), None)


def has_rows(value: Any, rows: Any) -> bool:
    """Whether a tensor has one entry per row on its first axis."""
    return not is_one_number(value) and value.shape[0] == rows


def lost_process(where: str, ranks: Sequence[int]) -> str:
    """Return the sentence that ends a process when others, of known or unknown ranks, have ended."""
    who = f"the process of rank {', '.join(map(str, ranks))}" if ranks else "one of them"
    return (
        f"{where}: all processes must live until the end; {who} has ended, and this one ends with it. Write resume=... "
        "in train and start all of them again: the run goes on from the last checkpoint."
    )


def merge_of(variable: keras.Variable) -> Merge:
    """Return how the values that replicas wrote to a variable are merged.

    A seed advances alike on every replica. Keras knows the aggregation of some variables; of the others floats, such
    as moving statistics, are averaged, and integers, such as counters, are taken from the first replica.
    """
    if variable.name == "seed_generator_state":
        return "seed"
    if variable.aggregation == "sum":
        return "sum"
    floating = keras.backend.is_float_dtype(keras.backend.standardize_dtype(variable.dtype))
    return "mean" if floating and variable.aggregation != "only_first_replica" else "first"
