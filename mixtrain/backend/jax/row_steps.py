"""What each step of a stream makes of the elements below it, read several at a time."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable

import numpy as np

from mixtrain.backend.jax.rows import Read, Source, first_of, gathered
from mixtrain.backend.rows import Row


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
            following = gather(1)
            if following is not None:
                shapes = [tuple(value.shape for value in first_of(block)) for block in (last, following)]
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
        read, left, some = source.open(inner), count, False

        def read_on(wanted: int) -> Row | None:
            nonlocal read, left, some
            while left > 0:
                block = read(wanted)
                if block is not None:
                    some = True
                    return block
                left = left - 1 if some else 0  # A source without elements has them in no pass.
                if left > 0:
                    inner.close()
                    read, some = source.open(inner), False
            return None

        return read_on

    endless = source.size != 0 and math.inf in (source.size, count)
    size = math.inf if endless else None if source.size is None else source.size * count if source.size else 0
    return Source(begin, size, source.example, source.element_bytes)


def shuffled(source: Source, buffer: int, seed: int | None) -> Source:
    """Return the elements out of a buffer in random order, each pass in another."""
    passes = itertools.count()

    def begin(closing: contextlib.ExitStack) -> Read:
        random = np.random.default_rng([np.random.randint(2**31) if seed is None else seed, next(passes)])
        read = source.open(closing)
        held: list[Row] = []
        full = False

        def pick(count: int) -> Row | None:
            nonlocal full
            while not full and len(held) < buffer:
                block = read(1)
                if block is None:
                    full = True
                else:
                    held.append(block)
            if not held:
                return None
            place = random.integers(len(held))
            held[place], held[-1] = held[-1], held[place]
            return held.pop()

        return pick

    return Source(begin, source.size, None, source.element_bytes)


def taken(source: Source, count: int) -> Source:
    """Return the first `count` elements; all where it is -1."""
    most = math.inf if count < 0 else count

    def begin(closing: contextlib.ExitStack) -> Read:
        read, left = source.open(closing), most

        def read_on(wanted: int) -> Row | None:
            nonlocal left
            block = read(int(min(wanted, left))) if left else None
            left -= 0 if block is None else len(block[0])
            return block

        return read_on

    size = None if source.size is None and most else min(source.size or 0, most)
    return Source(begin, size, source.example, source.element_bytes)


def skipped(source: Source, count: int) -> Source:
    """Return what follows the first `count` elements."""

    def begin(closing: contextlib.ExitStack) -> Read:
        read, left = source.open(closing), count

        def read_on(wanted: int) -> Row | None:
            nonlocal left
            while left:
                left = left - 1 if read(1) is not None else 0
            return read(wanted)

        return read_on

    return Source(begin, None if source.size is None else max(source.size - count, 0), None, source.element_bytes)


def joined(first: Source, second: Source) -> Source:
    """Return the elements of one source, then those of another."""

    def begin(closing: contextlib.ExitStack) -> Read:
        reads = [first.open(closing)]

        def read_on(wanted: int) -> Row | None:
            block = reads[-1](wanted)
            if block is None and len(reads) == 1:
                reads.append(second.open(closing))
                block = reads[-1](wanted)
            return block

        return read_on

    size = None if None in (first.size, second.size) else first.size + second.size  # type: ignore[operator]
    return Source(begin, size, first.example, first.element_bytes)


def mapped(source: Source, function: Callable[[Row], Row]) -> Source:
    """Return what a function makes of each element."""

    def begin(closing: contextlib.ExitStack) -> Read:
        read = source.open(closing)

        def read_on(wanted: int) -> Row | None:
            block = read(1)
            return None if block is None else tuple(value[np.newaxis] for value in function(first_of(block)))

        return read_on

    return Source(begin, source.size)
