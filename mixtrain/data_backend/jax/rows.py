"""Sources of stream elements: NumPy rows, read several at a time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mixtrain.backend.aligned import aligned_empty
from mixtrain.backend.jax.elements import bytes_of
from mixtrain.data_backend.rows import CheckedRows, Row

# Returns up to `count` next elements of one spec, stacked on a new first axis; None at the end.
Read = Callable[[int], Row | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """Elements that each pass makes anew.

    Attributes:
        open: Begins a pass; pushes what must be closed after it on the stack.
        size: Number of elements of a pass: None where it is unknown, `math.inf` where it does not end.
        example: An element, where one is known without reading.
        element_bytes: Size of an element in bytes, where it is known; others may differ.
    """

    open: Callable[[contextlib.ExitStack], Read]
    size: float | None = None
    example: Row | None = None
    element_bytes: int | None = None


def from_arrays(arrays: Sequence[np.ndarray]) -> Source:
    """Return the rows of equally long arrays, as views."""
    columns = tuple(map(np.asarray, arrays))
    size = len(columns[0])

    def begin(closing: contextlib.ExitStack) -> Read:
        position = 0

        def read(count: int) -> Row | None:
            nonlocal position
            start, position = position, min(position + count, size)
            return tuple(column[start:position] for column in columns) if start < position else None

        return read

    example = tuple(column[0] for column in columns) if size else None
    return Source(begin, size, example, None if example is None else bytes_of(example))


def from_python(rows: CheckedRows) -> Source:
    """Return the rows of Python code, copied one by one: the code may reuse its arrays."""

    def begin(closing: contextlib.ExitStack) -> Read:
        elements = rows.rows()
        closing.callback(elements.close)  # type: ignore[attr-defined]
        pending: list[Row | BaseException | None] = []

        def next_row() -> Row | None:
            row = pending.pop() if pending else next(elements, None)
            if isinstance(row, BaseException):
                raise row
            return row

        def read(count: int) -> Row | None:
            row = next_row()
            if row is None:
                return None
            block = tuple(aligned_empty(count, value) for value in row)
            filled = 0
            spec = _spec(row)
            while row is not None and _spec(row) == spec:
                for column, value in zip(block, row, strict=True):
                    column[filled] = value
                filled += 1
                if filled == count:
                    return block
                try:
                    row = next(elements, None)
                except Exception as error:  # Raised after the rows before it are returned.
                    pending.append(error)
                    break
            else:
                pending.append(row)
            return tuple(column[:filled] for column in block)

        return read

    return Source(begin, rows.size, rows.example, bytes_of(rows.example))


def gathered(read: Read) -> Read:
    """Return a `Read` that joins blocks to exactly `count` elements, if so many of one spec follow each other."""
    pending: list[Row | Exception | None] = []

    def next_block(count: int) -> Row | None:
        if not pending:
            return read(count)
        block = pending.pop()
        if isinstance(block, Exception):
            raise block
        if block is not None and len(block[0]) > count:
            pending.append(tuple(column[count:] for column in block))
            block = tuple(column[:count] for column in block)
        return block

    def gather(count: int) -> Row | None:
        block = next_block(count)
        if block is None:
            return None
        blocks, missing = [block], count - len(block[0])
        while missing:
            try:
                part = next_block(missing)
            except Exception as error:
                pending.append(error)
                break
            if part is None or _spec(first_of(block)) != _spec(first_of(part)):
                pending.append(part)
                break
            blocks.append(part)
            missing -= len(part[0])
        return block if len(blocks) == 1 else tuple(map(_concatenate, zip(*blocks, strict=True)))

    return gather


def first_of(block: Row) -> Row:
    """Return the first of stacked elements."""
    return tuple(column[0] for column in block)


def _spec(row: Row) -> list[tuple[Any, ...]]:
    """Return the shapes and dtypes of a row; rows that have the same can be stacked."""
    return [(value.shape, value.dtype) for value in row]


def _concatenate(parts: tuple[np.ndarray, ...]) -> np.ndarray:
    result = aligned_empty(sum(map(len, parts)), parts[0][0])
    return np.concatenate(parts, out=result) if result.dtype.kind not in "USO" else np.concatenate(parts)
