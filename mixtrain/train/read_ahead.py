"""`read_ahead`: reads the batches of a `keras.utils.PyDataset` in its threads or processes."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras

from mixtrain import backend
from mixtrain.typing import Tree

# The dataset that a process of a pool reads.
_dataset: Any = None


def read_ahead(dataset: keras.utils.PyDataset, indexes: Iterable[int]) -> Iterator[Tree]:
    """Yield batches in order, of which up to ``max_queue_size`` are read ahead.

    With ``workers`` above 1 they are read by so many threads; with ``use_multiprocessing`` by processes, started with
    the default method of `multiprocessing`, as in Keras. If that is fork, and JAX runs, threads are used instead: a
    fork of a process with JAX's threads may hang.

    `indexes`: The indexes of the batches.

    Raises: Exception raised by the dataset, at the position of that batch.

    Example:
        >>> class Squares(keras.utils.PyDataset):
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> list(read_ahead(Squares(workers=2), range(5)))
        [0, 1, 4, 9, 16]
    """
    workers = dataset.workers
    if workers < 1 or (workers == 1 and not dataset.use_multiprocessing):
        yield from map(dataset.__getitem__, indexes)
        return
    pool: concurrent.futures.Executor
    read: Callable[[int], Tree]
    if dataset.use_multiprocessing and (backend.can_fork() or multiprocessing.get_start_method() != "fork"):
        pool = concurrent.futures.ProcessPoolExecutor(workers, initializer=_serve, initargs=(dataset,))
        read = _read
    else:
        pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="mixtrain-batches")
        read = functools.partial(type(dataset).__getitem__, dataset)
    waiting: collections.deque[concurrent.futures.Future[Any]] = collections.deque()
    try:
        for index in indexes:
            waiting.append(pool.submit(read, index))
            if len(waiting) > max(dataset.max_queue_size, 1):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Batches that are not being read yet are not read if the pass ends early.
        pool.shutdown(cancel_futures=True)


def _serve(dataset: keras.utils.PyDataset) -> None:
    global _dataset
    _dataset = dataset


def _read(index: int) -> Tree:
    return _dataset[index]
