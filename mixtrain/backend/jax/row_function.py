"""A function of one row, compiled once and run over blocks of rows: the transforms of a data pipeline."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.row_part import RowPart
from mixtrain.backend.jax.requirements import gathering, raise_found
from mixtrain.backend.jax.array_namespace import SizeUnknown, seed_words

Columns = tuple[np.ndarray, ...]

_SIZES: Final = (1, 8)  # Rows that a compiled function is made for; above, powers of two.
_MAX_FORMS: Final = 32  # Sizes of rows that it is compiled for.
_BY_HAND: Final = (
    SizeUnknown,
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_with_64_bits: Final = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


class RowFunction:
    """A function of a row's seed and columns, in parts.

    A block of rows is one call of a compiled function. A part that takes single rows is a loop in it. It is compiled
    for each size that rows have; where there are many, or where the size of a result depends on a row's values, rows
    are run by hand.

    Args:
        parts: One after the other.
        parallel: Without effect: rows of a block are run one by one, blocks at the same time.
        files: Without effect.

    Attributes:
        opens: Whether `call_files` is of use.
    """

    opens: Final = False

    def __init__(self, parts: Sequence[RowPart], *, parallel: int, files: Sequence[int] = ()) -> None:
        del parallel, files
        self._parts = tuple(parts)
        self._forms: set[Any] = set()
        self._by_hand = False
        self._sentences: list[str] = []
        self._lock = threading.Lock()
        self._compiled = jax.jit(self._run)

    def __call__(self, keys: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        """Return the results for the rows of a block, stacked.

        Args:
            keys: One int64 per row, from which its random numbers come.
            block: One array per column, rows along the first axis.

        Raises:
            ValueError: A row does not fit the function, which says so; see `require`.
        """
        seeds = seed_words(np.stack([keys, np.zeros_like(keys)], axis=1))
        form = tuple((array.dtype, array.shape[1:]) for array in block)
        with on_processor():
            if not self._by_hand and self._may_compile(form):
                try:
                    return self._call_compiled(seeds, block)
                except _BY_HAND:
                    self._by_hand = True
            return self._call_by_hand(seeds, block)

    def call_files(self, keys: np.ndarray, columns: Sequence[Sequence[np.ndarray]]) -> Columns | None:
        """Return None: JAX decodes no images."""
        del keys, columns
        return None

    def _may_compile(self, form: Any) -> bool:
        with self._lock:
            if form not in self._forms and len(self._forms) < _MAX_FORMS:
                self._forms.add(form)
            return form in self._forms

    def _call_compiled(self, seeds: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        count = len(seeds)
        size = next((size for size in _SIZES if count <= size), 1 << (count - 1).bit_length())
        results, found = self._compiled(np.int32(count), *(_padded(array, size) for array in (seeds, *block)))
        for numbers, values in found:
            raise_found(self._sentences, np.asarray(numbers), np.asarray(values))
        return tuple(np.array(result[:count] if count < size else result) for result in results)

    def _call_by_hand(self, seeds: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        def run(part: RowPart, columns: Columns) -> Columns:
            if part.by_block:
                return tuple(map(np.asarray, part.function(*map(jnp.asarray, columns))))
            rows = [
                tuple(map(np.asarray, part.function(seed, *map(jnp.asarray, row))))
                for seed, *row in zip(seeds, *columns, strict=True)
            ]
            return tuple(map(np.stack, zip(*rows, strict=True)))

        for part in self._parts:
            block = part.applied(functools.partial(run, part), block)
        return tuple(block)

    # ---- what is compiled -------------------------------------------------------------------------------------
    def _run(self, count: Any, seeds: Any, *block: Any) -> tuple[tuple[Any, ...], list[Any]]:
        found = []

        def run(part: RowPart, columns: tuple[Any, ...]) -> tuple[Any, ...]:
            if part.by_block:
                with gathering(self._sentences) as scope:
                    columns = tuple(map(jnp.asarray, part.function(*columns)))
                wrong = scope.found
            else:
                columns, wrong = self._loop(part, count, seeds, columns)
            found.append(wrong)
            return columns

        for part in self._parts:
            block = part.applied(functools.partial(run, part), block)
        return block, found

    def _loop(self, part: RowPart, count: Any, seeds: Any, block: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        def one(index: Any) -> Any:
            row = [jax.lax.dynamic_index_in_dim(column, index, keepdims=False) for column in (seeds, *block)]
            with gathering(self._sentences) as scope:
                result = tuple(map(jnp.asarray, part.function(*row)))
            return result, scope.found

        def body(index: Any, rows: Any) -> Any:
            return jax.tree.map(lambda column, value: column.at[index].set(value), rows, one(index))

        shapes = jax.eval_shape(one, jnp.int32(0))
        rows = jax.tree.map(lambda shape: jnp.zeros((len(seeds), *shape.shape), shape.dtype), shapes)
        found: tuple[tuple[Any, ...], Any] = jax.lax.fori_loop(jnp.int32(0), count, body, rows)
        return found


def call_row(function: Callable[..., Any], seed: Sequence[int], *columns: Any) -> Any:
    """Return, as NumPy arrays, what a function of a seed and tensors makes of one row at once, uncompiled."""
    words = seed_words(np.array([number & (2**64 - 1) for number in seed], np.uint64).view(np.int64))
    with on_processor():
        return tuple(map(np.asarray, function(words, *map(jnp.asarray, columns))))


@contextlib.contextmanager
def on_processor() -> Iterator[None]:
    """Compute on the CPU, in all formats that NumPy has: JAX leaves out 64 bits elsewhere."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]), _with_64_bits(True):
        yield


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _padded(array: np.ndarray, size: int) -> np.ndarray:
    """Return rows with the last repeated, so that there are `size`."""
    missing = size - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array
