"""`data_parallel`: the devices that a Model made inside it trains on, and what its gradients over them come to."""

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


@dataclasses.dataclass(frozen=True)
class DataParallel:
    """How one step is spread over devices.

    Attributes:
        devices: The backend's devices.
        gradients_mean: Whether a scalar loss is a mean over the rows of its batch; otherwise it is a sum.
        reduce_dtype: The format that gradients are added up in.
    """

    devices: tuple[Any, ...]
    gradients_mean: bool
    reduce_dtype: DType = float32

    @property
    def count(self) -> int:
        """How many devices there are."""
        return len(self.devices)

    def replicas(
        self, likely: Callable[[], Iterable[keras.Variable]], whole: bool = False
    ) -> backend.Replicas | None:
        """Return what runs the replicas of a step; None where that is the device that steps run on anyway.

        Args:
            likely: Returns the variables that the part of a step that belongs to a replica is likely to write.
            whole: Whether one of them must have all rows.
        """
        return None if list(self.devices) == backend.find_devices(1) else backend.Replicas(self.devices, likely, whole)


_in_force: Final[contextvars.ContextVar[DataParallel | ProcessParallel | None]] = contextvars.ContextVar(
    "data_parallel", default=None
)


def in_force() -> DataParallel | ProcessParallel | None:
    """Return how steps that are made here are spread over devices or processes; None for one device.

    Without `data_parallel` that is what the user has told the backend or Keras.

    Raises:
        ValueError: They are spread over both.
    """
    chosen = _in_force.get()
    if isinstance(chosen, ProcessParallel):
        return chosen
    devices = backend.devices_in_force() if chosen is None else None
    if devices is not None:
        chosen = DataParallel(tuple(devices), gradients_mean=True)
    processes = processes_in_force()
    if processes is not None and chosen is not None and chosen.count > 1:
        raise checks.fail_value(
            "Model", "a step must be spread over devices or over processes", f"{chosen.count} devices in each of "
            f"{processes.count} processes", "one process for each device",
        )
    if processes is None or chosen is None:
        return processes or chosen
    return dataclasses.replace(processes, reduce_dtype=chosen.reduce_dtype)


@contextlib.contextmanager
def putting_in_force(chosen: DataParallel | ProcessParallel | None) -> Iterator[None]:
    """Let steps that are made inside be spread over devices as was chosen before."""
    token = _in_force.set(chosen)
    try:
        yield
    finally:
        _in_force.reset(token)


@contextlib.contextmanager
def data_parallel(
    devices: int | Sequence[Any] | None = None, *, gradients_mean: bool = True, reduce_dtype: Any = float32
) -> Iterator[None]:
    """Let each `Model` or train cell that is made inside train on several devices of this process.

    Each device has a share of the rows of a batch. It runs the network and its loss on them, takes the gradients of the
    scaled loss, casts them to float32 and unscales them. Only then are they added up, in float32; one flag tells
    whether the sums are finite, and the update is applied or skipped for all devices at once. A batch whose rows do not
    divide by the number of devices is computed whole by each.

    On TensorFlow the scope of a ``tf.distribute.MirroredStrategy`` means the same, and on JAX a
    ``keras.distribution.DataParallel`` that was set.

    Args:
        devices: How many devices, or which; None for all. On TensorFlow the names of logical devices, such as
            ``["GPU:0", "GPU:1"]``; on JAX its devices.
        gradients_mean: Whether a loss that is one number is a mean over the rows of the batch, as most are; False for
            one that is their sum. A loss with ``reduction="sum"``, and one with a number for each row, are known to be
            sums.
        reduce_dtype: The format that gradients are added up in over the devices, and over the processes of a group
            (``data_parallel(1, reduce_dtype=...)`` in each). In float16 or bfloat16 the scaled gradients are added up,
            half as many bytes, and unscaled afterwards.

    Raises:
        TypeError: `devices` is something else, or `reduce_dtype` is no format.
        ValueError: `reduce_dtype` is neither float32 nor half, there are fewer devices, one is named twice, or a
            strategy of the backend or of Keras is in force.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> with data_parallel(1):
        ...     net = nn.Dense(2, 1)
        ...     model = mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))

    Source: MindSpore, `mindspore.set_auto_parallel_context` with ``parallel_mode="data_parallel"``.
    """
    checks.boolean("data_parallel", "gradients_mean", gradients_mean)
    if isinstance(devices, bool) or isinstance(devices, str) or not isinstance(devices, (int, Sequence, type(None))):
        raise checks.fail_type("data_parallel", "devices must be a number, a list of devices or None", devices, "2")
    chosen = checks.one_of("data_parallel", "reduce_dtype", as_dtype(reduce_dtype), (float32, *HALF_DTYPES))
    if backend.devices_in_force() is not None:
        raise checks.fail_value(
            "data_parallel", "devices must be chosen in one way", "a strategy of the backend or of Keras besides",
            "data_parallel without it, or it alone",
        )
    with putting_in_force(DataParallel(tuple(backend.find_devices(devices)), gradients_mean, chosen)):
        yield
