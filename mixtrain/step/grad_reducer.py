"""`DistributedGradReducer`: the sum or mean of gradients over the processes that train together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import auto_parallel, backend, checks, process_group
from mixtrain.boundary import library
from mixtrain.cell.cell import Cell
from mixtrain.communication import GlobalComm
from mixtrain.dtype import float32


class DistributedGradReducer(Cell):
    """Reduce gradients over the processes that train together, in float32; one process keeps its own.

    Args:
        parameters: What is trained.
        mean: Whether to take the mean over processes, otherwise the sum; None for `gradients_mean` of
            `set_auto_parallel_context`.
        degree: What the mean divides by; None for the number of processes, and no other is possible.
        fusion_type: How MindSpore fuses the reductions; without effect, the backend fuses them.
        group: Name of the group of processes.

    Raises:
        ValueError: `degree` is another number.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1)
        >>> reducer = DistributedGradReducer(net.trainable_params(), mean=True, degree=1)
        >>> [float(gradient) for gradient in reducer((mixtrain.Tensor(2.0), mixtrain.Tensor(3.0)))]
        [2.0, 3.0]

    Source: MindSpore, `mindspore.nn.DistributedGradReducer`.
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = GlobalComm.WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        size = process_group.current().size
        if degree is not None and checks.integer(self.cls_name, "degree", degree, at_least=1) != size:
            raise checks.fail_value(
                self.cls_name, f"degree must be {size}, the number of processes", degree, f"degree={size}"
            )
        self.mean = bool(auto_parallel.get_auto_parallel_context("gradients_mean")) if mean is None else mean
        self.degree = size

    @library
    def construct(self, grads: Any) -> Any:
        """Return the gradients of all processes, each in its dtype; a gradient may be None."""
        if self.degree == 1:
            return grads
        flat = keras.tree.flatten(grads)
        given = [one for one in flat if one is not None]
        single = [backend.map_values(lambda value: keras.ops.cast(value, float32), one) for one in given]
        summed = iter(backend.all_reduce(single))

        def reduced(gradient: Any) -> Any:
            if gradient is None:
                return None
            share = 1 / self.degree if self.mean else 1.0
            return backend.map_values(lambda value: keras.ops.cast(value * share, gradient.dtype), next(summed))

        return keras.tree.pack_sequence_as(grads, [reduced(gradient) for gradient in flat])
