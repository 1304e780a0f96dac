"""A function of one row, compiled once and run over blocks of rows: the transforms of a data pipeline."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np

from mixtrain.data_backend.jax.array_namespace import SizeUnknown, seed_words
from mixtrain.data_backend.jax.requirements import collecting, raise_failure
from mixtrain.data_backend.row_part import RowPart

Columns = tuple[np.ndarray, ...]

_SIZES: Final = (1, 8)  # Numbers of rows that the function is compiled for; above, powers of two.
_MAX_SPECS: Final = 32  # Shapes and dtypes of rows that it is compiled for.
_NEEDS_VALUES: Final = (
    SizeUnknown,
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_with_64_bits: Final = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


class RowFunction:
    # The function is compiled for each shape of rows. Where there are too many shapes, or where the shape of a result
    # depends on a row's values, rows are computed one by one, without compilation. `parallel` has no effect: the rows
    # of a block are computed one by one, blocks in parallel.
    opens: Final = False

    def __init__(self, parts: Sequence[RowPart], *, parallel: int, files: Sequence[int] = ()) -> None:
        del parallel, files
        self._parts = tuple(parts)
        self._specs: set[Any] = set()
        self._row_by_row = False
        self._messages: list[str] = []
        self._lock = threading.Lock()
        self._compiled = jax.jit(self._run)

    def __call__(self, keys: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        seeds = seed_words(np.stack([keys, np.zeros_like(keys)], axis=1))
        spec = tuple((array.dtype, array.shape[1:]) for array in block)
        with on_cpu():
            if not self._row_by_row and self._may_compile(spec):
                try:
                    return self._call_compiled(seeds, block)
                except _NEEDS_VALUES:
                    self._row_by_row = True
            return self._call_row_by_row(seeds, block)

    def call_files(self, keys: np.ndarray, columns: Sequence[Sequence[np.ndarray]]) -> Columns | None:
        """JAX does not decode images."""
        del keys, columns
        return None

    def _may_compile(self, spec: Any) -> bool:
        with self._lock:
            if spec not in self._specs and len(self._specs) < _MAX_SPECS:
                self._specs.add(spec)
            return spec in self._specs

    def _call_compiled(self, seeds: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
        count = len(seeds)
        size = next((size for size in _SIZES if count <= size), 1 << (count - 1).bit_length())
        results, failures = self._compiled(np.int32(count), *(_padded(array, size) for array in (seeds, *block)))
        for numbers, values in failures:
            raise_failure(self._messages, np.asarray(numbers), np.asarray(values))
        return tuple(np.array(result[:count] if count < size else result) for result in results)

    def _call_row_by_row(self, seeds: np.ndarray, block: Sequence[np.ndarray]) -> Columns:
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

    # ---- compiled code ----------------------------------------------------------------------------------------
    def _run(self, count: Any, seeds: Any, *block: Any) -> tuple[tuple[Any, ...], list[Any]]:
        failures = []

        def run(part: RowPart, columns: tuple[Any, ...]) -> tuple[Any, ...]:
            if part.by_block:
                with collecting(self._messages) as scope:
                    columns = tuple(map(jnp.asarray, part.function(*columns)))
                failure = scope.failure
            else:
                columns, failure = self._loop(part, count, seeds, columns)
            failures.append(failure)
            return columns

        for part in self._parts:
            block = part.applied(functools.partial(run, part), block)
        return block, failures

    def _loop(self, part: RowPart, count: Any, seeds: Any, block: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        def run_row(index: Any) -> Any:
            row = [jax.lax.dynamic_index_in_dim(column, index, keepdims=False) for column in (seeds, *block)]
            with collecting(self._messages) as scope:
                result = tuple(map(jnp.asarray, part.function(*row)))
            return result, scope.failure

        def body(index: Any, rows: Any) -> Any:
            return jax.tree.map(lambda column, value: column.at[index].set(value), rows, run_row(index))

        shapes = jax.eval_shape(run_row, jnp.int32(0))
        rows = jax.tree.map(lambda shape: jnp.zeros((len(seeds), *shape.shape), shape.dtype), shapes)
        return jax.lax.fori_loop(jnp.int32(0), count, body, rows)  # type: ignore[no-any-return]


def call_row(function: Callable[..., Any], seed: Sequence[int], *columns: Any) -> Any:
    words = seed_words(np.array([number & (2**64 - 1) for number in seed], np.uint64).view(np.int64))
    with on_cpu():
        return tuple(map(np.asarray, function(words, *map(jnp.asarray, columns))))


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Compute on the CPU, with 64-bit dtypes enabled."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]), _with_64_bits(True):
        yield


def _padded(array: np.ndarray, size: int) -> np.ndarray:
    """Pad rows to `size` by repeating the last one."""
    missing = size - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array
