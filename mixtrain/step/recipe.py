"""The recipe of one training step, read top to bottom; every train network runs this one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras

from mixtrain import backend
from mixtrain.dtype import DType, float32
from mixtrain.loss_scale.scaling import scaled, unscaled
from mixtrain.step.gradient_window import GradientWindow


@dataclasses.dataclass(frozen=True)
class StepResult:
    """What a step reports.

    Attributes:
        loss: The unscaled loss, float32.
        overflow: bool scalar: whether the gradients were not finite; None without loss scaling.
        loss_scale: The scale that the step used, float32 scalar; None without loss scaling.
        gradients: The unscaled gradients of the weights, in their order, float32; None for a weight without one.
        grad_norm: Their L2 norm as one vector, float32 scalar.
        auxiliary: What the loss function returned beside the loss, where it was asked to.
    """

    loss: Any
    overflow: Any = None
    loss_scale: Any = None
    gradients: Any = None
    grad_norm: Any = None
    auxiliary: Any = None


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a step scales its loss.

    Attributes:
        loss_scale: Returns the scale of this step.
        divides: Whether the step divides the gradients; otherwise the optimizer does.
        rollback: Puts back what a step has written whose gradients are not finite; None where it is not skipped.
        advance: Called last, with whether the gradients were finite.
    """

    loss_scale: Callable[[], Any]
    divides: bool
    rollback: backend.Rollback | None
    advance: Callable[[Any], None]


class AppliedBatches(Protocol):
    """Takes in the batches whose step is applied, such as metrics do."""

    def variables(self, seen: Any) -> Sequence[keras.Variable]:
        """Return the variables that `take_in` writes, made for what a batch's auxiliary value looks like."""

    def take_in(self, seen: Any) -> None:
        """Take in the auxiliary value of a batch whose update was applied, in the branch that applies it."""

    def results(self) -> dict[str, Any]:
        """Return what it has to tell after a step, tensors by name."""


def run_step(
    loss_of: Callable[..., Any],
    inputs: Sequence[Any],
    weights: Sequence[Any],
    *,
    apply: Callable[[list[Any]], None],
    written: Sequence[keras.Variable] = (),
    scaling: Scaling | None = None,
    auxiliary: bool = False,
    observer: AppliedBatches | None = None,
    replicas: backend.Replicas | None = None,
    reduce_dtype: DType = float32,
    gradients_mean: bool = True,
    window: GradientWindow | None = None,
    rows: Callable[[], Any] = lambda: 1,
) -> StepResult:
    """Train on one batch.

    Args:
        loss_of: The network with its loss: takes `inputs`, returns the loss (any shape; its sum is differentiated).
        inputs: The columns of the batch.
        weights: The variables that gradients are taken of.
        apply: Changes the weights by a list of gradients, in their order; an entry may be None.
        written: The variables that `apply` writes.
        scaling: How the loss is scaled; None for not at all.
        auxiliary: Whether `loss_of` returns ``(loss, auxiliary)``.
        observer: Takes in the auxiliary values of batches that are applied.
        replicas: The devices that share the rows of the batch; None for one device.
        reduce_dtype: The format that their gradients are added up in.
        gradients_mean: Whether a loss of one number is a mean over rows, which replicas need to know; otherwise a sum.
        window: Gathers the gradients of several batches before they are applied; None for an update each batch.
        rows: Returns how many rows the batch has, for the window.

    Returns:
        The step's result.

    Raises:
        ValueError: The loss depends on none of the weights.
    """
    scale = None if scaling is None else backend.to_tensor(scaling.loss_scale())
    rollback = None if scaling is None else scaling.rollback
    advance: Callable[[Any], None] = (lambda finite: None) if scaling is None else scaling.advance

    def divided(gradients: list[Any]) -> list[Any]:
        gradients = [in_format(gradient, float32) for gradient in gradients]
        if scaling is None or not scaling.divides:
            return gradients
        return [unscaled(gradient, scale) for gradient in gradients]

    def of_replica(share: backend.Share, *columns: Any) -> tuple[list[Any], tuple[Any, Any]]:
        """Return the loss and gradients of some rows, as terms of the sums over replicas, and what is beside.

        A mean is weighted before it is scaled: half gradients are then as large as those of the whole batch are.
        """

        def forward() -> tuple[Any, Any]:
            found = loss_of(*columns)
            value, more = found if auxiliary else (found, None)
            loss = keras.ops.cast(value, float32)
            if gradients_mean and backend.is_one_number(loss):
                loss = share.weighted(loss)
            return (loss if scale is None else scaled(loss, scale)), (loss, more)

        _, (loss, more), gradients = backend.value_and_gradient(forward, weights)
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                "train step: the loss must depend on parameters that the optimizer holds; got one that depends on "
                "none. Write the optimizer with the trainable parameters of the network that is trained."
            )
        # Half formats have the range of what is scaled: there, gradients are unscaled once they are added up.
        half = reduce_dtype != float32
        gradients = [in_format(one, reduce_dtype) for one in gradients] if half else divided(gradients)
        # A loss of many numbers has one for each row: they are joined.
        one = backend.is_one_number(loss)
        return [loss if one else None, *gradients], (None if one else loss, more)

    def reduced() -> tuple[list[Any], tuple[Any, Any]]:
        """Return the loss and gradients of the batch: from here on a step knows nothing of replicas."""
        if replicas is None:
            return of_replica(backend.Share(), *inputs)
        return replicas.run(of_replica, inputs)

    ((loss, *gradients), (losses, more)), undo = (reduced(), None) if rollback is None else rollback.run(reduced)
    loss = losses if loss is None else loss
    gradients = gradients if reduce_dtype == float32 else divided(gradients)
    observed = () if observer is None else observer.variables(more)

    # All replicas together have as many rows, so that they add up alike.
    counted = rows() if window is not None and gradients_mean and backend.is_one_number(loss) else None

    def applied() -> None:
        if window is None:
            apply(gradients)
        else:
            window.add(gradients, counted, apply)
        if observer is not None:
            observer.take_in(more)

    # The norm does not decide: of finite gradients the sum of squares may be infinite.
    finite, norm = (None, backend.global_norm(gradients)) if scaling is None else backend.finite_and_norm(gradients)

    if undo is None:
        # A count of updates and a decay of weights need no batch, and would come where that cannot be read.
        backend.write_after(loss, applied, weights)
        advance(finite)
    else:
        # In a branch it is known whether the step is good: most of the rule's operations fall away.
        def good() -> None:
            applied()
            advance(True)

        def overflowed() -> None:
            undo()
            if window is not None:
                window.reject()
            advance(False)

        gathered = () if window is None else window.variables()
        backend.cond(finite, good, overflowed, writes=[*weights, *written, *observed, *gathered])
    if scaling is None:
        return StepResult(loss, gradients=gradients, grad_norm=norm, auxiliary=more)
    if not scaling.divides:
        gradients, norm = [unscaled(gradient, scale) for gradient in gradients], norm / scale
    return StepResult(loss, keras.ops.logical_not(finite), scale, gradients, norm, more)


def in_format(gradient: Any, dtype: DType) -> Any:
    """Return a gradient in a format; None stays None."""
    if gradient is None or gradient.dtype == dtype:
        return gradient
    return backend.map_values(lambda values: keras.ops.cast(values, dtype), gradient)
