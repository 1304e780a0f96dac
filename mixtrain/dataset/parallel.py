"""A function applied to items, by several threads or to several items at once; results in the items' order."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

_ItemT = TypeVar("_ItemT")
_ResultT = TypeVar("_ResultT")

_MAX_ITEMS: Final = 32
_TASK_SECONDS: Final = 0.002  # The duration of a task of which the overhead of a thread is a small part.
_MEASURED_ITEMS: Final = 8
# Threads that each hold Python's lock for so short a time spend more on passing it on than they gain.
_QUICK_SECONDS: Final = 0.0002


def ordered_map(function: Callable[[_ItemT], _ResultT], items: Iterator[_ItemT], workers: int) -> Iterator[_ResultT]:
    """Yield the results of `function` for the `items`, in order, computed by as many threads as `workers`; 1 starts
    none.

    Items are read when results are: first one, then two ahead, then four, so that the first result comes at once. At
    most twice as many as `workers` are being processed.
    """
    if workers == 1:
        yield from map(function, items)
        return
    pending: collections.deque[concurrent.futures.Future[_ResultT]] = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="mixtrain-map")
    ahead = 1
    try:
        exhausted = False
        while pending or not exhausted:
            while not exhausted and len(pending) < ahead:
                try:
                    item = next(items)
                except StopIteration:
                    exhausted = True
                except BaseException:
                    yield from (future.result() for future in pending)  # The results before the failure.
                    raise
                else:
                    pending.append(pool.submit(function, item))
            if pending:
                yield pending.popleft().result()
            ahead = min(2 * ahead, 2 * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def adaptive_map(
    function: Callable[[list[_ItemT]], Sequence[_ResultT]], items: Iterator[_ItemT], workers: int
) -> Iterator[_ResultT]:
    """Yield the results for the items, in order; see `ordered_map`.

    The first items are processed in this thread, one at a time, and timed. If an item takes very little time, the
    others are processed here too, many at a time. Otherwise threads process them, several at a time if they are quick.

    Args: function: From several items to as many results. If it raises, it is called again for each item alone.
    """
    quickest = math.inf
    for item in itertools.islice(items, _MEASURED_ITEMS):
        started = time.perf_counter()
        results = function([item])
        quickest = min(quickest, time.perf_counter() - started)
        yield from results
    yield from _grouped_map(function, items, quickest, workers if quickest >= _QUICK_SECONDS else 1)


def _grouped_map(
    function: Callable[[list[_ItemT]], Sequence[_ResultT]], items: Iterator[_ItemT], seconds: float, workers: int
) -> Iterator[_ResultT]:
    """Yield the results for the items, each of which is expected to take `seconds`."""

    def groups() -> Iterator[list[_ItemT]]:
        group: list[_ItemT] = []
        try:
            for item in items:
                group.append(item)
                if len(group) >= min(_MAX_ITEMS, _TASK_SECONDS / seconds):
                    yield group
                    group = []
        except Exception:
            if group:
                yield group  # The items before the one that failed.
            raise
        if group:
            yield group

    def run(group: list[_ItemT]) -> tuple[Sequence[_ResultT], Exception | None]:
        nonlocal seconds
        started = time.perf_counter()
        try:
            return call_until_failure(function, group)
        finally:
            seconds = (time.perf_counter() - started) / len(group)

    for results, error in ordered_map(run, groups(), workers):
        yield from results
        if error is not None:
            raise error


def call_until_failure(
    function: Callable[[list[_ItemT]], Sequence[_ResultT]], group: list[_ItemT]
) -> tuple[Sequence[_ResultT], Exception | None]:
    """Return the results for several items; if an item fails, the results before it and its exception.

    If `function` raises for all of them, it is called again for each item alone.
    """
    try:
        return function(group), None
    except Exception:
        results: list[_ResultT] = []
        for item in group:
            try:
                results.extend(function([item]))
            except Exception as error:
                return results, error
        return results, None
