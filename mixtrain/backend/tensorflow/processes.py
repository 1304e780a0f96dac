"""Several processes that train together: how they meet, and what they compute between them, by `tf.distribute`.

`MultiWorkerMirroredStrategy` connects the processes and has the collectives. Variables are not made in its scope: each
process has its own, as in a step of one process, and the recipe keeps them alike.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import keras
import tensorflow as tf

from mixtrain import checks, process_group
from mixtrain.backend.info import JitChoice
from mixtrain.backend.share import Written, lost_process, merge_of
from mixtrain.backend.tensorflow.device import has_started
from mixtrain.backend.tensorflow.rollback import Writes, places_of
from mixtrain.backend.tensorflow.tensor import snapshot

# The formats that TensorFlow's collectives add up on every device; others go as int64.
_REDUCED: Final = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)


class _Joined:
    strategy: Any = None


def join_processes() -> tuple[int, int]:
    """Meet the other processes, where the environment says that there are some.

    Returns:
        ``(rank, size)``; ``(0, 1)`` where there are none.

    Raises:
        RuntimeError: TensorFlow has started before.
        ValueError: ``TF_CONFIG`` does not name workers and which of them this is, or this process has several GPUs.
    """
    workers, rank = _workers()
    if len(workers) == 1:
        return 0, 1
    if has_started():
        raise RuntimeError(
            "communication.init: it must come before TensorFlow computes; got a TensorFlow that has started. Write "
            "communication.init() right after the imports, before networks, tensors and set_seed."
        )
    _Joined.strategy = strategy = tf.distribute.MultiWorkerMirroredStrategy()
    devices = strategy.extended.worker_devices
    if len(devices) != 1:
        raise checks.fail_value(
            "communication.init", "each process must have one device", devices, "CUDA_VISIBLE_DEVICES=0 for the first"
        )
    return rank, len(workers)


def _workers() -> tuple[list[str], int]:
    """Return the addresses of the processes that ``TF_CONFIG`` names, by rank, and which of them this is."""
    text = os.environ.get("TF_CONFIG")
    if not text:
        return [""], 0
    example = """TF_CONFIG='{"cluster": {"worker": ["host:1", "host:2"]}, "task": {"type": "worker", "index": 0}}'"""
    try:
        config = json.loads(text)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        kinds = [kind for kind in ("chief", "worker") if kind in cluster]
        names = [(kind, index) for kind in kinds for index in range(len(cluster[kind]))]
        if len(names) <= 1:
            return [""], 0
        rank = names.index((task["type"], int(task["index"])))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise checks.fail_value(
            "communication.init", "TF_CONFIG must be JSON that names workers and which of them this is", text, example
        ) from None
    return [cluster[kind][index] for kind, index in names], rank


def leave_processes() -> None:
    """End the communication with other processes."""
    _Joined.strategy = None


@contextlib.contextmanager
def telling_lost_process(where: str) -> Iterator[None]:
    """Raise what TensorFlow says once a process has ended as one sentence that names it.

    Raises:
        RuntimeError: Another process has ended while it was needed.
    """
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.InternalError) as error:
        if _Joined.strategy is None or "Collective ops is aborted" not in str(error):
            raise
        own = process_group.current().rank
        ranks = sorted({int(task) for task in re.findall(r"/replica:0/task:(\d+)", str(error))} - {own})
        raise RuntimeError(lost_process(where, ranks)) from error


def all_reduce(values: Sequence[Any], op: str = "sum") -> list[Any]:
    """Return tensors combined over all processes, each with those at its place.

    Args:
        values: Tensors of the same shapes and dtypes in each process.
        op: "sum", "max", "min" or "prod".
    """
    tensors = _tensors(values)
    if op == "sum":
        sparse = any(isinstance(value, tf.IndexedSlices) for value in tensors)
        return _summed(*tensors) if sparse else list(_differentiable_sum(*tensors))
    reduce = {"max": tf.reduce_max, "min": tf.reduce_min, "prod": tf.reduce_prod}[op]
    return [reduce(_joined(value[None]), axis=0) for value in tensors]


def all_gather(value: Any) -> Any:
    """Return the tensors of all processes joined along axis 0."""
    value, = _tensors([value])
    return _joined(tf.reshape(value, (1,)) if value.shape.rank == 0 else value)


def reduce_scatter(value: Any, op: str = "sum") -> Any:
    """Return this process's part, along axis 0, of a tensor that is combined over all processes."""
    group = process_group.current()
    whole = all_reduce([value], op)[0]
    size = tf.shape(whole)[0] // group.size
    return whole[group.rank * size : (group.rank + 1) * size]


def process_index() -> Any:
    """Return this process's number, a scalar tensor."""
    return tf.constant(process_group.current().rank)


def process_jit(choice: JitChoice) -> JitChoice:
    """Return how a step between processes is compiled, given how one of one process would be."""
    return JitChoice(False, "XLA does not compile what is computed between processes") if choice.jit else choice


def _tensors(values: Sequence[Any]) -> list[Any]:
    return [value if isinstance(value, tf.IndexedSlices) else tf.convert_to_tensor(value) for value in values]


# The strategy's own gradients ask for its replica context, which has ended where they are computed.
@tf.custom_gradient
def _differentiable_sum(*values: Any) -> Any:
    return tuple(_summed(*map(tf.stop_gradient, values))), lambda *gradients: tuple(_summed(*gradients))


@tf.custom_gradient
def _joined(value: Any) -> Any:
    def gradient(upstream: Any) -> Any:
        size = tf.shape(value)[0]
        start = process_group.current().rank * size
        return _summed(upstream)[0][start : start + size]

    return _gathered(tf.stop_gradient(value)), gradient


def _summed(*values: Any) -> list[Any]:
    given = [value if value.dtype in _REDUCED else tf.cast(value, tf.int64) for value in values]
    summed: list[Any] = list(values)
    for dtype in dict.fromkeys(value.dtype for value in given):  # The strategy joins tensors of one format.
        places = [place for place, value in enumerate(given) if value.dtype == dtype]
        for place, value in zip(places, _in_replica("sum", *(given[place] for place in places)), strict=True):
            like = values[place].dtype
            summed[place] = value if dtype == like else tf.cast(value, like)
    return summed


def _gathered(value: Any) -> Any:
    if value.dtype in _REDUCED:
        return _in_replica("gather", value)[0]
    return tf.cast(_in_replica("gather", tf.cast(value, tf.int64))[0], value.dtype)


def _in_replica(name: str, *values: Any) -> list[Any]:
    """Run a collective in a replica of the strategy, at once or as a part of the graph that is being made."""
    if not tf.executing_eagerly():
        return _collective(name, *values)
    return _compiled(name, tuple((value.dtype, tuple(value.shape)) for value in values))(*values)


@functools.cache
def _compiled(name: str, kinds: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a collective for tensors of Python of some formats and shapes, for each of which it is traced once."""
    del kinds
    return tf.function(functools.partial(_collective, name), autograph=False)  # type: ignore[no-any-return]


def _collective(name: str, *values: Any) -> list[Any]:
    @tf.autograph.experimental.do_not_convert
    def replica(*tensors: Any) -> list[Any]:
        context = tf.distribute.get_replica_context()
        # Copies made here, for the strategy asks tensors for their device.
        copies = tf.nest.map_structure(tf.identity, list(tensors))
        return context.all_reduce("SUM", copies) if name == "sum" else [context.all_gather(copies[0], axis=0)]

    return list(_Joined.strategy.run(replica, args=values))


class NotedWrites:
    """Sees what a function writes.

    Args:
        likely: Returns the variables that the function is likely to write; outside of a compiled call, all.
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely
        self._writes = Writes(likely)

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[Written]]:
        """Run a function; return its result, and what it wrote.

        Raises:
            TraceAgain: While a graph is made: the function must be traced again.
        """
        if tf.executing_eagerly():
            before = [(variable, snapshot(variable)) for variable in self._likely()]
            result = function()
            return result, [
                Written(merge_of(variable), value, snapshot(variable), variable.assign) for variable, value in before
            ]
        merges = {
            id(place.handle): merge_of(variable) for variable in self._likely() for place in places_of(variable)
        }
        result, written = self._writes.of(function)
        found = []
        for place, value in written:
            merge = merges.get(id(place.handle)) or ("mean" if place.dtype.is_floating else "first")
            found.append(Written(merge, value, place.read(), place.write))
        return result, found
