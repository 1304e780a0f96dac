"""A function applied to items, by several threads or to several items at once; results in the items' order."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

_MAX_ITEMS: Final = 32
_SECONDS: Final = 0.002  # What handing a task to a thread should cost little of.
_TRIED: Final = 8
# Threads that each hold Python's lock for so short a time spend more on passing it on than they gain.
_QUICK_SECONDS: Final = 0.0002


def in_order(function: Callable[[Any], Any], items: Iterator[Any], workers: int) -> Iterator[Any]:
    """Yield the results for the items, in order.

    The items are read by whoever reads the results, first one, then two ahead, then four, so that the first result
    comes at once; at most twice as many as `workers` are under way.

    Args:
        function: Applied to each item in a thread.
        items: The items.
        workers: How many threads; with one, nothing is read ahead and no thread is made.
    """
    if workers == 1:
        yield from map(function, items)
        return
    waiting: collections.deque[concurrent.futures.Future[Any]] = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="mixtrain-map")
    ahead = 1
    try:
        more = True
        while more or waiting:
            while more and len(waiting) < ahead:
                try:
                    item = next(items)
                except StopIteration:
                    more = False
                except BaseException:
                    yield from (future.result() for future in waiting)  # What came before the failure.
                    raise
                else:
                    waiting.append(pool.submit(function, item))
            if waiting:
                yield waiting.popleft().result()
            ahead = min(2 * ahead, 2 * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def each_in_order(function: Callable[[list[Any]], Sequence[Any]], items: Iterator[Any], workers: int) -> Iterator[Any]:
    """Yield the results for the items, in order; see `in_order`.

    The first are computed here, one at a time. Where an item takes very little time the others are too, many at a time.
    Where it takes more, threads compute them, several at a time where that is quick.

    Args:
        function: From several items to as many results. Where it raises, it is called again for each item alone.
        items: The items.
        workers: How many threads; with one, none is made.
    """
    quickest = math.inf
    for item in itertools.islice(items, _TRIED):
        started = time.perf_counter()
        results = function([item])
        quickest = min(quickest, time.perf_counter() - started)
        yield from results
    yield from _results(function, items, quickest, workers if quickest >= _QUICK_SECONDS else 1)


def _results(
    function: Callable[[list[Any]], Sequence[Any]], items: Iterator[Any], seconds: float, workers: int
) -> Iterator[Any]:
    """Yield the results for the items, each of which is expected to take so many seconds."""

    def groups() -> Iterator[list[Any]]:
        group: list[Any] = []
        try:
            for item in items:
                group.append(item)
                if len(group) >= min(_MAX_ITEMS, _SECONDS / seconds):
                    yield group
                    group = []
        except Exception:
            if group:
                yield group  # The items before the one that failed.
            raise
        if group:
            yield group

    def run(group: list[Any]) -> tuple[Sequence[Any], Exception | None]:
        nonlocal seconds
        started = time.perf_counter()
        try:
            return before_failure(function, group)
        finally:
            seconds = (time.perf_counter() - started) / len(group)

    for results, error in in_order(run, groups(), workers):
        yield from results
        if error is not None:
            raise error


def before_failure(
    function: Callable[[list[Any]], Sequence[Any]], group: list[Any]
) -> tuple[Sequence[Any], Exception | None]:
    """Return the results for several items, or for those before one that fails, and what it fails with.

    Args:
        function: From several items to results in order. Where it raises, it is called again for each item alone.
        group: The items.
    """
    try:
        return function(group), None
    except Exception:
        results: list[Any] = []
        for item in group:
            try:
                results.extend(function([item]))
            except Exception as error:
                return results, error
        return results, None
