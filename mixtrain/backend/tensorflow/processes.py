"""Several processes that train together: their connection, and collectives by `tf.distribute`.

`MultiWorkerMirroredStrategy` connects the processes and has the collectives. Variables are not created in its scope:
each process has its own, as in a step of one process, and the recipe keeps them alike.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import tensorflow as tf

from mixtrain import checks, process_group
from mixtrain.backend.info import JitChoice
from mixtrain.backend.share import Written, lost_process, merge_of
from mixtrain.backend.signatures import Likely
from mixtrain.backend.tensorflow.device import has_started
from mixtrain.backend.tensorflow.graph_writes import Writes, places_of
from mixtrain.backend.tensorflow.tensor import snapshot
from mixtrain.typing import Tensor

# The dtypes that TensorFlow's collectives sum on every device; others are converted to int64.
_SUMMABLE: Final = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)


class _Connection:
    strategy: Any = None


def join_processes() -> tuple[int, int]:
    """``TF_CONFIG`` names the workers, and which of them this is."""
    workers, rank = _workers()
    if len(workers) == 1:
        return 0, 1
    if has_started():
        raise RuntimeError(
            "communication.init: it must come before TensorFlow computes; got a TensorFlow that has started. Write "
            "communication.init() right after the imports, before networks, tensors and set_seed."
        )
    _Connection.strategy = strategy = tf.distribute.MultiWorkerMirroredStrategy()
    devices = strategy.extended.worker_devices
    if len(devices) != 1:
        raise checks.fail_value(
            "communication.init", "each process must have one device", devices, "CUDA_VISIBLE_DEVICES=0 for the first"
        )
    return rank, len(workers)


def _workers() -> tuple[list[str], int]:
    """Return the addresses of the processes in ``TF_CONFIG``, by rank, and the rank of this one."""
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
    _Connection.strategy = None


@contextlib.contextmanager
def naming_lost_process(where: str) -> Iterator[None]:
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.InternalError) as error:
        if _Connection.strategy is None or "Collective ops is aborted" not in str(error):
            raise
        own = process_group.current().rank
        ranks = sorted({int(task) for task in re.findall(r"/replica:0/task:(\d+)", str(error))} - {own})
        raise RuntimeError(lost_process(where, ranks)) from error


def all_reduce(values: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
    tensors = _tensors(values)
    if op == "sum":
        sparse = any(isinstance(value, tf.IndexedSlices) for value in tensors)
        return _sum_all(*tensors) if sparse else list(_differentiable_sum(*tensors))
    reduce = {"max": tf.reduce_max, "min": tf.reduce_min, "prod": tf.reduce_prod}[op]
    return [reduce(_gather_all(value[None]), axis=0) for value in tensors]


def all_gather(value: Tensor) -> Tensor:
    value, = _tensors([value])
    return _gather_all(tf.reshape(value, (1,)) if value.shape.rank == 0 else value)


def reduce_scatter(value: Tensor, op: str = "sum") -> Tensor:
    group = process_group.current()
    reduced = all_reduce([value], op)[0]
    size = tf.shape(reduced)[0] // group.size
    return reduced[group.rank * size : (group.rank + 1) * size]


def process_index() -> Tensor:
    return tf.constant(process_group.current().rank)


def process_jit(choice: JitChoice) -> JitChoice:
    return JitChoice(False, "XLA does not compile what is computed between processes") if choice.jit else choice


def _tensors(values: Sequence[Tensor]) -> list[Tensor]:
    return [value if isinstance(value, tf.IndexedSlices) else tf.convert_to_tensor(value) for value in values]


# The strategy's own gradients need its replica context, which has ended when they are computed.
@tf.custom_gradient
def _differentiable_sum(*values: Tensor) -> Any:
    return tuple(_sum_all(*map(tf.stop_gradient, values))), lambda *gradients: tuple(_sum_all(*gradients))


@tf.custom_gradient
def _gather_all(value: Tensor) -> Tensor:
    def gradient(upstream: Tensor) -> Tensor:
        size = tf.shape(value)[0]
        start = process_group.current().rank * size
        return _sum_all(upstream)[0][start : start + size]

    summable = tf.stop_gradient(value if value.dtype in _SUMMABLE else tf.cast(value, tf.int64))
    return tf.cast(_in_replica("gather", summable)[0], value.dtype), gradient


def _sum_all(*values: Tensor) -> list[Tensor]:
    summable = [value if value.dtype in _SUMMABLE else tf.cast(value, tf.int64) for value in values]
    sums: list[Tensor] = list(values)
    for dtype in dict.fromkeys(value.dtype for value in summable):  # The strategy packs tensors of one dtype.
        indices = [index for index, value in enumerate(summable) if value.dtype == dtype]
        for index, value in zip(indices, _in_replica("sum", *(summable[index] for index in indices)), strict=True):
            sums[index] = tf.cast(value, values[index].dtype)
    return sums


def _in_replica(name: str, *values: Tensor) -> list[Tensor]:
    """Run a collective in a replica of the strategy, eagerly or in the current graph."""
    if not tf.executing_eagerly():
        return _collective(name, *values)
    return _compiled(name, tuple((value.dtype, tuple(value.shape)) for value in values))(*values)


@functools.cache
def _compiled(name: str, specs: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a collective for eager tensors of some dtypes and shapes, traced once for them."""
    del specs
    return tf.function(functools.partial(_collective, name), autograph=False)  # type: ignore[no-any-return]


def _collective(name: str, *values: Tensor) -> list[Tensor]:
    @tf.autograph.experimental.do_not_convert
    def replica(*tensors: Tensor) -> list[Tensor]:
        context = tf.distribute.get_replica_context()
        # Copies, since the strategy needs tensors with a device.
        copies = tf.nest.map_structure(tf.identity, list(tensors))
        return context.all_reduce("SUM", copies) if name == "sum" else [context.all_gather(copies[0], axis=0)]

    return list(_Connection.strategy.run(replica, args=values))


class RecordedWrites:
    def __init__(self, likely: Likely) -> None:
        self._likely = likely
        self._writes = Writes(likely)

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[Written]]:
        if tf.executing_eagerly():
            saved = [(variable, snapshot(variable)) for variable in self._likely()]
            result = function()
            return result, [
                Written(merge_of(variable), value, snapshot(variable), variable.assign) for variable, value in saved
            ]
        merges = {
            id(place.handle): merge_of(variable) for variable in self._likely() for place in places_of(variable)
        }
        with self._writes.recorded() as written:
            result = function()
        writes = []
        for place, value in written:
            merge = merges.get(id(place.handle)) or ("mean" if place.dtype.is_floating else "first")
            writes.append(Written(merge, value, place.read(), place.write))
        return result, writes
