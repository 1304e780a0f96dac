"""A function applied to items by several threads at once, results in the items' order."""

from __future__ import annotations

import collections
import concurrent.futures
from collections.abc import Callable, Iterator
from typing import Any


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
