"""`GradientAccumulation` of MindSpore's `boost`, for train cells of scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixtrain import backend, ops
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import int32
from mixtrain.lazy_names import serve_names
from mixtrain.typing import Optimizer, Variable

__all__ = ["GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op"]

gradient_accumulation_op = ops.MultitypeFuncGraph("gradient_accumulation_op")
gradient_clear_op = ops.MultitypeFuncGraph("gradient_clear_op")


@gradient_accumulation_op.register("Number", "Tensor", "Tensor")
def _accumulate(steps: int, total: Variable, gradient: Tensor) -> Tensor:
    return ops.assign_add(total, gradient / steps)


@gradient_clear_op.register("Tensor")
def _clear(total: Variable) -> Tensor:
    return ops.assign(total, ops.zeros_like(total))


class GradientAccumulation(Cell):
    """Accumulates the gradients of several steps, and updates with their mean.

    In new scripts use `Model(..., accumulate_steps=n)`.

    `max_accumulation_step`: Number of steps per update. `optimizer`: The optimizer of the weights.

    Example:
        >>> import mixtrain, numpy as np
        >>> from mixtrain.boost import GradientAccumulation
        >>> w = mixtrain.Parameter(np.zeros(1, np.float32), name="w")
        >>> accumulate = GradientAccumulation(2, mixtrain.nn.SGD([w], 1.0))
        >>> for gradient in (1.0, 3.0):
        ...     loss = accumulate(mixtrain.Tensor(0.0), (mixtrain.Tensor([gradient]),))
        ...     print(w.asnumpy())
        [0.]
        [-2.]
    """

    def __init__(self, max_accumulation_step: int, optimizer: Optimizer) -> None:
        super().__init__()
        # Subclasses in public scripts read these names.
        self._max_accumulation_step = max_accumulation_step
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = ops.HyperMap()
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        # Of the next values of float8 scales the largest is applied, as in Keras.
        self._takes_largest = [*map(backend.takes_next_value, self.weights)]
        for total, takes_largest in zip(self._grad_accumulation, self._takes_largest, strict=True):
            if takes_largest:
                backend.mark_next_value(total)
        self._accumulation_step = Parameter(Tensor(0, int32), name="accumulation_step", requires_grad=False)

    def construct(self, loss: Tensor, grads: Sequence[Tensor]) -> Any:
        """Add gradients, update after `max_accumulation_step` of them, and return the loss."""
        accumulate = ops.partial(gradient_accumulation_op, self._max_accumulation_step)
        for total, gradient, takes_largest in zip(self._grad_accumulation, grads, self._takes_largest, strict=True):
            if takes_largest:  # A magnitude or a scale, at least 0.
                ops.assign(total, ops.maximum(total, gradient))
            else:
                accumulate(total, gradient)
        self._accumulation_step.assign_add(1)
        backend.cond(self._accumulation_step.value >= self._max_accumulation_step, self._update, lambda: None)
        return loss

    def _update(self) -> None:
        self.optimizer(self._grad_accumulation)
        self.hyper_map(gradient_clear_op, self._grad_accumulation)
        self._accumulation_step.assign(0)


serve_names(__name__)
