"""`data_parallel`: the devices that a Model created inside it trains on, and how its gradients are reduced."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.distribution.processes import ProcessParallel, processes_in_force
from mixtrain.dtype import HALF_DTYPES, DType, as_dtype, float32
from mixtrain.typing import DTypeLike, Tensor


@dataclasses.dataclass(frozen=True)
class DataParallel:
    """How one step is spread over devices.

    `devices`: A tuple with one for each replica, or the mesh over which weights are sharded too. `gradients_mean`:
    Whether a scalar loss is a mean over the rows of its batch; otherwise it is a sum. `reduce_dtype`: The dtype in
    which gradients are added up. `spans_processes`: Whether they are devices of several processes. `joins_statistics`:
    Whether batch statistics are those of all rows, as in Keras on JAX; otherwise each replica has its own.
    """

    devices: Any
    gradients_mean: bool
    reduce_dtype: DType = float32
    spans_processes: bool = False
    joins_statistics: bool = False

    @property
    def count(self) -> int:
        return len(self.devices) if isinstance(self.devices, tuple) else int(self.devices.size)

    def replicas(
        self, likely_written: Callable[[], Iterable[keras.Variable]], joint_batch: bool = False
    ) -> backend.Replicas | None:
        """Return the runner of the replicas of a step; None for the default device, or a mesh that divides no rows.

        `likely_written` returns the variables that the replicated part is likely to write. `joint_batch`: one replica
        must have all rows, for statistics of the joint batch.
        """
        if self.devices == tuple(backend.find_devices(1)):
            return None
        replicas = backend.Replicas(self.devices, likely_written, joint_batch, self.joins_statistics)
        return replicas if isinstance(self.devices, tuple) or replicas.count > 1 else None


def joint_devices(parallel: DataParallel | ProcessParallel | None) -> Any:
    """Return the devices of several processes that a step is spread over, each with its rows; None if there are none.

    The weights are on all of them, so that every process must take part wherever one reads the weights.
    """
    return parallel.devices if isinstance(parallel, DataParallel) and parallel.spans_processes else None


_in_force: Final[contextvars.ContextVar[DataParallel | ProcessParallel | None]] = contextvars.ContextVar(
    "data_parallel", default=None
)


def in_force() -> DataParallel | ProcessParallel | None:
    """Return how steps created here are spread over devices or processes; None for one device.

    Without `data_parallel` the strategy of the backend or of Keras applies.
    """
    strategy = _in_force.get()
    if isinstance(strategy, ProcessParallel):
        return strategy
    devices = backend.devices_in_force() if strategy is None else None
    if devices is not None:
        spans = backend.in_several_processes(devices)
        found = tuple(devices) if isinstance(devices, list) else devices
        strategy = DataParallel(
            found, gradients_mean=True, spans_processes=spans, joins_statistics=backend.SHARDS_WEIGHTS
        )
    processes = processes_in_force()
    if processes is not None and strategy is not None and strategy.count > 1:
        raise checks.fail_value(
            "Model", "a step must be spread over devices or over processes", f"{strategy.count} devices in each of "
            f"{processes.count} processes", "one process for each device",
        )
    if processes is None or strategy is None:
        return processes or strategy
    # `data_parallel(1, reduce_dtype=...)` in each process sets the dtype of the reduction over processes.
    return dataclasses.replace(processes, reduce_dtype=strategy.reduce_dtype)


@contextlib.contextmanager
def putting_in_force(strategy: DataParallel | ProcessParallel | None) -> Iterator[None]:
    """Spread steps created inside the context by a given strategy."""
    token = _in_force.set(strategy)
    try:
        yield
    finally:
        _in_force.reset(token)


def devices_of(where: str, devices: Any, *, of_all_processes: bool = False) -> list[Any]:
    """Return the backend's devices for a number of them, a list, or None for all.

    `where`: The caller, for errors. `of_all_processes`: Whether those of other processes count too.

    Raises: TypeError or ValueError if `devices` is something else, or there are no such devices.
    """
    if isinstance(devices, (bool, str)) or not isinstance(devices, (int, Sequence, type(None))):
        raise checks.fail_type(where, "devices must be a number, a list of devices or None", devices, "2")
    return backend.find_devices(devices, where, of_all_processes=of_all_processes)


@contextlib.contextmanager
def data_parallel(
    devices: int | Sequence[Tensor] | None = None, *, gradients_mean: bool = True, reduce_dtype: DTypeLike = float32
) -> Iterator[None]:
    """Train each `Model` or train cell created inside the context on several devices of this process.

    Each device gets a share of the rows of a batch. It runs the network and its loss on them, computes the gradients of
    the scaled loss, casts them to float32 and unscales them. Only then are they added up, in float32; one flag tells
    whether the sums are finite, and the update is applied or skipped on all devices at once. If the number of rows is
    not divisible by the number of devices, each device computes the whole batch.

    On TensorFlow the scope of a ``tf.distribute.MirroredStrategy`` has the same effect, and on JAX a
    ``keras.distribution.DataParallel`` that was set.

    Args:
        devices: The number of devices, or a list of them; None for all. On TensorFlow the names of logical devices,
            such as ``["GPU:0", "GPU:1"]``; on JAX its devices.
        gradients_mean: Whether a scalar loss is a mean over the rows of the batch, as most are; False for a sum. A loss
            with ``reduction="sum"``, and one with a value for each row, are known to be sums.
        reduce_dtype: The dtype in which gradients are added up over the devices, and over the processes of a group
            (``data_parallel(1, reduce_dtype=...)`` in each). In float16 or bfloat16 the scaled gradients are added up,
            which halves the number of bytes, and unscaled afterwards.

    Raises: TypeError if `devices` has another type, or `reduce_dtype` is not a dtype. ValueError if `reduce_dtype` is
        neither float32 nor half, there are fewer devices, a device is named twice, or a strategy of the backend or of
        Keras is in force.

    Example: ``with data_parallel(2): model = mixtrain.Model(network, loss, optimizer)``.

    Source: MindSpore, `mindspore.set_auto_parallel_context` with ``parallel_mode="data_parallel"``.
    """
    checks.boolean("data_parallel", "gradients_mean", gradients_mean)
    found = devices_of("data_parallel", devices)
    dtype = checks.one_of("data_parallel", "reduce_dtype", as_dtype(reduce_dtype), (float32, *HALF_DTYPES))
    if backend.devices_in_force() is not None:
        raise checks.fail_value(
            "data_parallel", "devices must be chosen in one way", "a strategy of the backend or of Keras besides",
            "data_parallel without it, or it alone",
        )
    with putting_in_force(DataParallel(tuple(found), gradients_mean, dtype)):
        yield
