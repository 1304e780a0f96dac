"""Where the elements of a stream come from: NumPy rows, read several at a time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mixtrain.backend.aligned import aligned_empty
from mixtrain.backend.rows import CheckedRows, Row

# Returns the next elements alike, stacked on a new first axis, at most as many as asked for; None at the end.
Read = Callable[[int], Row | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """Elements, of which each pass makes anew.

    Attributes:
        open: Begins a pass; what must be closed after it is left on the stack.
        size: How many elements a pass has: None where it is unknown, `math.inf` where it does not end.
        example: An element, where one is known without reading.
        element_bytes: How much memory an element takes, as far as is known; others may take more or less.
    """

    open: Callable[[contextlib.ExitStack], Read]
    size: float | None = None
    example: Row | None = None
    element_bytes: int | None = None


def from_arrays(arrays: Sequence[np.ndarray]) -> Source:
    """Return the rows of equally long arrays: parts of them, nothing is copied."""
    columns = tuple(map(np.asarray, arrays))
    size = len(columns[0])

    def begin(closing: contextlib.ExitStack) -> Read:
        place = 0

        def read(count: int) -> Row | None:
            nonlocal place
            start, place = place, min(place + count, size)
            return tuple(column[start:place] for column in columns) if start < place else None

        return read

    example = tuple(column[0] for column in columns) if size else None
    return Source(begin, size, example, None if example is None else bytes_of(example))


def from_python(rows: CheckedRows) -> Source:
    """Return the rows that Python code makes, copied as they come: the code may write into its arrays again."""

    def begin(closing: contextlib.ExitStack) -> Read:
        opened = rows.rows()
        closing.callback(opened.close)  # type: ignore[attr-defined]
        waiting: list[Row | BaseException | None] = []

        def following() -> Row | None:
            found = waiting.pop() if waiting else next(opened, None)
            if isinstance(found, BaseException):
                raise found
            return found

        def read(count: int) -> Row | None:
            row = following()
            if row is None:
                return None
            found = tuple(aligned_empty(count, value) for value in row)
            filled = 0
            form = _form(row)
            while row is not None and _form(row) == form:
                for column, value in zip(found, row, strict=True):
                    column[filled] = value
                filled += 1
                if filled == count:
                    return found
                try:
                    row = next(opened, None)
                except Exception as error:  # It comes after the rows before it.
                    waiting.append(error)
                    break
            else:
                waiting.append(row)
            return tuple(column[:filled] for column in found)

        return read

    return Source(begin, rows.size, rows.example, bytes_of(rows.example))


def gathered(read: Read) -> Read:
    """Return what reads exactly as many elements as asked for, if so many alike follow each other."""
    waiting: list[Row | Exception | None] = []

    def following(count: int) -> Row | None:
        if not waiting:
            return read(count)
        found = waiting.pop()
        if isinstance(found, Exception):
            raise found
        if found is not None and len(found[0]) > count:
            waiting.append(tuple(column[count:] for column in found))
            found = tuple(column[:count] for column in found)
        return found

    def gather(count: int) -> Row | None:
        block = following(count)
        if block is None:
            return None
        blocks, missing = [block], count - len(block[0])
        while missing:
            try:
                part = following(missing)
            except Exception as error:
                waiting.append(error)
                break
            if part is None or _form(first_of(block)) != _form(first_of(part)):
                waiting.append(part)
                break
            blocks.append(part)
            missing -= len(part[0])
        return block if len(blocks) == 1 else tuple(map(_joined, zip(*blocks, strict=True)))

    return gather


def bytes_of(row: Sequence[np.ndarray]) -> int:
    """Return how much memory a row takes."""
    return sum(np.asarray(value).nbytes for value in row)


def first_of(block: Row) -> Row:
    """Return the first of elements that are stacked."""
    return tuple(column[0] for column in block)


def _form(row: Row) -> list[tuple[Any, ...]]:
    """Return what elements have in common that can be stacked."""
    return [(value.shape, value.dtype) for value in row]


def _joined(parts: tuple[np.ndarray, ...]) -> np.ndarray:
    whole = aligned_empty(sum(map(len, parts)), parts[0][0])
    return np.concatenate(parts, out=whole) if whole.dtype.kind not in "USO" else np.concatenate(parts)
