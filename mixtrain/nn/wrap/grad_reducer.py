"""`DistributedGradReducer`: sums or averages gradients over processes."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import auto_parallel, backend, checks, process_group
from mixtrain.boundary import library
from mixtrain.cell.cell import Cell
from mixtrain.communication import GlobalComm
from mixtrain.dtype import float32
from mixtrain.lazy_names import serve_names
from mixtrain.step.recipe import in_dtype
from mixtrain.typing import Tensor, Tree


class DistributedGradReducer(Cell):
    """Reduce gradients over processes, in float32; without effect in a single process.

    Args:
        parameters: The parameters that are trained.
        mean: Whether to average over processes rather than sum; None for `gradients_mean` of
            `set_auto_parallel_context`.
        degree: The divisor of the mean; must be the number of processes, None for it.
        fusion_type: How MindSpore fuses reductions; without effect, the backend fuses them.
        group: Name of the group of processes.

    Raises:
        ValueError: `degree` is not the number of processes.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1)
        >>> reducer = DistributedGradReducer(net.trainable_params(), mean=True, degree=1)
        >>> [float(gradient) for gradient in reducer((mixtrain.Tensor(2.0), mixtrain.Tensor(3.0)))]
        [2.0, 3.0]
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
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
    def construct(self, grads: Tree) -> Tree:
        """Return the gradients reduced over all processes, each in its own dtype; None stays None."""
        if self.degree == 1:
            return grads
        flat = keras.tree.flatten(grads)
        sums = iter(backend.all_reduce([in_dtype(gradient, float32) for gradient in flat if gradient is not None]))
        weight = 1 / self.degree if self.mean else 1.0

        def reduced(gradient: Tensor) -> Tensor:
            if gradient is None:
                return None
            return backend.map_values(lambda value: keras.ops.cast(value * weight, gradient.dtype), next(sums))

        return keras.tree.pack_sequence_as(grads, [reduced(gradient) for gradient in flat])


serve_names(__name__)
