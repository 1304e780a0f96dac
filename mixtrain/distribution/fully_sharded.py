"""`fully_sharded`: a Keras distribution that divides weights and rows over the same devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.distribution.data_parallel import devices_of
from mixtrain.typing import Variable

_AXIS: Final = "batch"


class FullySharded(keras.distribution.ModelParallel):
    """Divides every variable along its largest axis that has a multiple of as many entries as there are devices.

    `mesh`: A mesh of one axis.
    """

    def __init__(self, mesh: keras.distribution.DeviceMesh) -> None:
        super().__init__(layout_map=keras.distribution.LayoutMap(mesh), batch_dim_name=_AXIS)

    def get_variable_layout(self, variable: Variable) -> Any:
        """Return the layout of a variable."""
        count, shape = self.device_mesh.shape[0], variable.shape
        axes = [axis for axis, size in enumerate(shape) if size >= count and size % count == 0]
        chosen = max(axes, key=lambda axis: shape[axis], default=None)
        return keras.distribution.TensorLayout(
            [_AXIS if axis == chosen else None for axis in range(len(shape))], self.device_mesh
        )


def fully_sharded(devices: int | Sequence[Any] | None = None) -> keras.distribution.ModelParallel:
    """Return a distribution with which each device holds a share of the weights and trains on a share of the rows.

    Weights, the slots of the optimizer and float32 copies are divided along their largest axis that is divisible by the
    number of devices; those without one are whole on each device. A step gathers the weights that it computes with, and
    adds up gradients in float32. Set it before the network is made.

    Args:
        devices: The number of devices, or a list of JAX devices; None for all.

    Returns:
        The distribution, for `keras.distribution.set_distribution` or its own `scope()`.

    Raises: RuntimeError on TensorFlow, where Keras does not shard weights. TypeError or ValueError if the devices are
        none that JAX has, or one is named twice.

    Example: ``keras.distribution.set_distribution(mixtrain.distribution.fully_sharded())``.

    Source: PyTorch, `torch.distributed.fsdp`; Keras, `keras.distribution.ModelParallel`.
    """
    if not backend.SHARDS_WEIGHTS:
        raise RuntimeError(
            "fully_sharded: expected JAX, with which Keras shards weights; got TensorFlow. Set KERAS_BACKEND=jax, or "
            "use data_parallel, where each device has all weights."
        )
    names = [f"{device.platform}:{device.id}" for device in devices_of("fully_sharded", devices, of_all_processes=True)]
    return FullySharded(keras.distribution.DeviceMesh((len(names),), [_AXIS], np.array(names)))
