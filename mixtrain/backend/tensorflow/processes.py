"""Several processes that train together: how they meet, and what they compute between them, by `tf.distribute`.

`MultiWorkerMirroredStrategy` connects the processes and has the collectives. Variables are not made in its scope: each
process has its own, as in a step of one process, and the recipe keeps them alike.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import keras
import tensorflow as tf

from mixtrain import checks, process_group
from mixtrain.backend.facts import JitChoice
from mixtrain.backend.share import Written, merge_of
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


def all_reduce(values: Sequence[Any], op: str = "sum") -> list[Any]:
    """Return tensors combined over all processes, each with those at its place.

    Args:
        values: Tensors of the same shapes and dtypes in each process.
        op: "sum", "max", "min" or "prod".
    """
    return list(_between("all_reduce", op, values))


def all_gather(value: Any) -> Any:
    """Return the tensors of all processes joined along axis 0."""
    return _between("all_gather", "", [value])[0]


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


def _between(name: str, op: str, values: Sequence[Any]) -> Any:
    tensors = [value if isinstance(value, tf.IndexedSlices) else tf.convert_to_tensor(value) for value in values]
    return _compiled(name, op)(*tensors) if tf.executing_eagerly() else _COLLECTIVES[name](op, *tensors)


@functools.cache
def _compiled(name: str, op: str) -> Callable[..., Any]:
    """Return a collective for tensors of Python; each is traced once for tensors alike, in all processes together."""
    return tf.function(functools.partial(_COLLECTIVES[name], op), autograph=False)  # type: ignore[no-any-return]


def _in_replica(function: Callable[..., Any], *values: Any) -> Any:
    """Run a function of the strategy's replica context and tensors."""

    @tf.autograph.experimental.do_not_convert
    def replica(*tensors: Any) -> Any:
        # Copies made here, for the strategy asks tensors for their device.
        return function(tf.distribute.get_replica_context(), *tf.nest.map_structure(tf.identity, tensors))

    return _Joined.strategy.run(replica, args=values)


def _all_reduce(op: str, *values: Any) -> list[Any]:
    if op == "sum":
        given = [value if value.dtype in _REDUCED else tf.cast(value, tf.int64) for value in values]
        summed: list[Any] = list(values)
        for dtype in dict.fromkeys(value.dtype for value in given):  # The strategy joins tensors of one format.
            places = [place for place, value in enumerate(given) if value.dtype == dtype]
            found = _in_replica(
                lambda replica, *tensors: replica.all_reduce("SUM", list(tensors)), *(given[place] for place in places)
            )
            for place, value in zip(places, found, strict=True):
                like = values[place].dtype
                summed[place] = value if dtype == like else tf.cast(value, like)
        return summed
    reduce = {"max": tf.reduce_max, "min": tf.reduce_min, "prod": tf.reduce_prod}[op]
    return [reduce(_all_gather("", value[None])[0], axis=0) for value in values]


def _all_gather(op: str, value: Any) -> list[Any]:
    del op
    value = tf.reshape(value, (1,)) if value.shape.rank == 0 else value
    as_int = value.dtype not in _REDUCED
    given = tf.cast(value, tf.int64) if as_int else value
    found = _in_replica(lambda replica, tensor: replica.all_gather(tensor, axis=0), given)
    return [tf.cast(found, value.dtype) if as_int else found]


_COLLECTIVES: Final[dict[str, Callable[..., list[Any]]]] = {"all_reduce": _all_reduce, "all_gather": _all_gather}


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
