"""A function applied to items by several threads at once, results in the items' order."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

_MAX_ITEMS: Final = 16
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


def each_in_order(function: Callable[[Any], Any], items: Iterator[Any], workers: int) -> Iterator[Any]:
    """Yield the results for the items, in order; see `in_order`.

    The first are computed here. Where the function takes very little time the others are too, and where it takes little
    a thread is handed several items at once.
    """
    if workers == 1:
        yield from map(function, items)
        return
    quickest = math.inf
    for item in itertools.islice(items, _TRIED):
        started = time.perf_counter()
        result = function(item)
        quickest = min(quickest, time.perf_counter() - started)
        yield result
    yield from map(function, items) if quickest < _QUICK_SECONDS else _results(function, items, workers)


def _results(function: Callable[[Any], Any], items: Iterator[Any], workers: int) -> Iterator[Any]:
    limit = 1

    def run(group: list[Any]) -> list[tuple[Any, Exception | None]]:
        nonlocal limit
        started = time.perf_counter()
        results: list[tuple[Any, Exception | None]] = []
        for item in group:
            try:
                results.append((function(item), None))
            except Exception as error:  # It comes after the results before it.
                results.append((None, error))
                break
        each = (time.perf_counter() - started) / len(results)
        limit = max(1, min(2 * limit, _MAX_ITEMS, int(_SECONDS / each)))
        return results

    def groups() -> Iterator[list[Any]]:
        group: list[Any] = []
        try:
            for item in items:
                group.append(item)
                if len(group) >= limit:
                    yield group
                    group = []
        except Exception:
            if group:
                yield group  # The items before the one that failed.
            raise
        if group:
            yield group

    for results in in_order(run, groups(), workers):
        for result, error in results:
            if error is not None:
                raise error
            yield result
