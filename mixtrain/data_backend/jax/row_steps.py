"""Transformations of a stream's source, such as batching and shuffling, that read several elements at a time."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable

import numpy as np

from mixtrain.data_backend.jax.rows import Read, Source, first_of, gathered
from mixtrain.data_backend.rows import Row


def batched(source: Source, size: int, *, drop_remainder: bool) -> Source:
    """Return every `size` elements stacked."""

    def begin(closing: contextlib.ExitStack) -> Read:
        gather = gathered(source.open(closing))
        rest: list[Row] = []

        def read(count: int) -> Row | None:
            if not rest:
                block = gather(size * count)
                if block is None:
                    return None
                full = len(block[0]) // size
                if len(block[0]) > full * size:
                    rest.append(tuple(column[full * size :] for column in block))
                if full:
                    return tuple(
                        column[: full * size].reshape(full, size, *column.shape[1:]) for column in block
                    )
            last = rest.pop()
            next_block = gather(1)
            if next_block is not None:
                shapes = [tuple(value.shape for value in first_of(block)) for block in (last, next_block)]
                raise ValueError(
                    f"dataset: expected rows of one shape in a batch, {shapes[0]}; got {shapes[1]}. "
                    "Write a map that brings all rows to one shape, or a batch of 1."
                )
            return None if drop_remainder else tuple(column[np.newaxis] for column in last)

        return read

    known = source.size is not None and source.size != math.inf
    count = (math.floor if drop_remainder else math.ceil)(source.size / size) if known else source.size  # type: ignore
    return Source(begin, count, None, source.element_bytes and source.element_bytes * size)


def repeated(source: Source, count: float) -> Source:
    """Return the passes of a source one after the other, `count` of them."""

    def begin(closing: contextlib.ExitStack) -> Read:
        inner = closing.enter_context(contextlib.ExitStack())
        read, remaining, has_elements = source.open(inner), count, False

        def read_next(limit: int) -> Row | None:
            nonlocal read, remaining, has_elements
            while remaining > 0:
                block = read(limit)
                if block is not None:
                    has_elements = True
                    return block
                remaining = remaining - 1 if has_elements else 0  # An empty source would repeat forever.
                if remaining > 0:
                    inner.close()
                    read, has_elements = source.open(inner), False
            return None

        return read_next

    endless = source.size != 0 and math.inf in (source.size, count)
    size = math.inf if endless else None if source.size is None else source.size * count if source.size else 0
    return Source(begin, size, source.example, source.element_bytes)


def shuffled(source: Source, buffer: int, seed: int | None) -> Source:
    """Return the elements in random order within a buffer; the order differs in each pass."""
    passes = itertools.count()

    def begin(closing: contextlib.ExitStack) -> Read:
        random = np.random.default_rng([np.random.randint(2**31) if seed is None else seed, next(passes)])
        read = source.open(closing)
        elements: list[Row] = []
        full = False

        def pick(count: int) -> Row | None:
            nonlocal full
            while not full and len(elements) < buffer:
                block = read(1)
                if block is None:
                    full = True
                else:
                    elements.append(block)
            if not elements:
                return None
            index = random.integers(len(elements))
            elements[index], elements[-1] = elements[-1], elements[index]
            return elements.pop()

        return pick

    return Source(begin, source.size, None, source.element_bytes)


def taken(source: Source, count: int) -> Source:
    """Return the first `count` elements; all where it is -1."""
    max_count = math.inf if count < 0 else count

    def begin(closing: contextlib.ExitStack) -> Read:
        read, remaining = source.open(closing), max_count

        def read_next(limit: int) -> Row | None:
            nonlocal remaining
            block = read(int(min(limit, remaining))) if remaining else None
            remaining -= 0 if block is None else len(block[0])
            return block

        return read_next

    size = None if source.size is None and max_count else min(source.size or 0, max_count)
    return Source(begin, size, source.example, source.element_bytes)


def skipped(source: Source, count: int) -> Source:
    """Return the elements after the first `count`."""

    def begin(closing: contextlib.ExitStack) -> Read:
        read, remaining = source.open(closing), count

        def read_next(limit: int) -> Row | None:
            nonlocal remaining
            while remaining:
                remaining = remaining - 1 if read(1) is not None else 0
            return read(limit)

        return read_next

    return Source(begin, None if source.size is None else max(source.size - count, 0), None, source.element_bytes)


def joined(first: Source, second: Source) -> Source:
    """Return the elements of one source, then those of another."""

    def begin(closing: contextlib.ExitStack) -> Read:
        reads = [first.open(closing)]

        def read_next(limit: int) -> Row | None:
            block = reads[-1](limit)
            if block is None and len(reads) == 1:
                reads.append(second.open(closing))
                block = reads[-1](limit)
            return block

        return read_next

    size = None if None in (first.size, second.size) else first.size + second.size  # type: ignore[operator]
    return Source(begin, size, first.example, first.element_bytes)


def mapped(source: Source, function: Callable[[Row], Row]) -> Source:
    """Return the results of a function of each element."""

    def begin(closing: contextlib.ExitStack) -> Read:
        read = source.open(closing)

        def read_next(limit: int) -> Row | None:
            block = read(1)
            return None if block is None else tuple(value[np.newaxis] for value in function(first_of(block)))

        return read_next

    return Source(begin, source.size)
