"""The recipe of a training step, which every train network runs; read it from top to bottom."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras

from mixtrain import backend
from mixtrain.distribution.processes import ProcessReplicas
from mixtrain.dtype import DType, float32
from mixtrain.loss_scale.scaling import finite_and_norm, scaled, unscaled, unscaled_gradients
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.typing import Tensor, Tree, Variable


@dataclasses.dataclass(frozen=True)
class StepResult:
    """Result of one training step.

    Attributes:
        loss: The unscaled loss, float32.
        overflow: Whether some gradient is not finite, bool scalar; None without loss scaling.
        loss_scale: The scale that the step used, float32 scalar; None without loss scaling.
        gradients: The unscaled gradients, float32, in the order of the weights; None for a weight without a gradient,
            or whose "gradient" is its next value.
        grad_norm: The global L2 norm of the gradients, float32 scalar.
        auxiliary: What the loss function returned next to the loss; None unless `auxiliary=True`.
    """

    loss: Tensor
    overflow: Tensor | None = None
    loss_scale: Tensor | None = None
    gradients: Sequence[Tensor | None] = ()
    grad_norm: Tensor | None = None
    auxiliary: Tree = None


@dataclasses.dataclass(frozen=True)
class Scaling:
    """How a step scales its loss.

    Attributes:
        loss_scale: Returns the scale of this step.
        divides: Whether the step divides the gradients by the scale; otherwise the optimizer does.
        rollback: Restores the state that an overflowing step has written; None if such a step is applied all the same.
        advance: Updates the scale after the step; called with whether the gradients are finite.
    """

    loss_scale: Callable[[], Tensor]
    divides: bool
    rollback: backend.Rollback | None
    advance: Callable[[Tensor], None]


class StepObserver(Protocol):
    """Observer of the batches whose update is applied, such as training metrics."""

    def variables(self, auxiliary: Tree) -> Sequence[keras.Variable]:
        """Return the variables that `update` writes, created on first use for the shapes of an auxiliary value."""

    def update(self, auxiliary: Tree) -> None:
        """Update from the auxiliary value of an applied batch; called in the branch that applies it."""

    def results(self) -> dict[str, Tensor]:
        """Return the results so far, scalar tensors by name."""


def run_step(
    loss_of: Callable[..., Any],
    inputs: Sequence[Tree],
    weights: Sequence[Variable],
    *,
    apply: Callable[[list[Tensor]], None],
    written: Sequence[keras.Variable] = (),
    scaling: Scaling | None = None,
    auxiliary: bool = False,
    observer: StepObserver | None = None,
    replicas: backend.Replicas | ProcessReplicas | None = None,
    reduce_dtype: DType = float32,
    gradients_mean: bool = True,
    window: GradientWindow | None = None,
    rows: Callable[[], Tensor | int] = lambda: 1,
) -> StepResult:
    """Train on one batch.

    Args:
        loss_of: The network with its loss: takes `inputs`, returns the loss (any shape; its sum is differentiated).
        inputs: The columns of the batch.
        weights: The variables to differentiate with respect to.
        apply: Updates the weights from a list of gradients, in their order; an entry may be None.
        written: The variables that `apply` writes.
        scaling: How the loss is scaled; None for not at all.
        auxiliary: Whether `loss_of` returns ``(loss, auxiliary)``.
        observer: Shown the auxiliary value of each batch whose update is applied.
        replicas: The devices that share the rows of the batch; None for one device.
        reduce_dtype: The dtype in which gradients are summed over replicas.
        gradients_mean: Whether a scalar loss is a mean over rows, so that replicas weight it; otherwise a sum.
        window: Accumulates the gradients of several batches before they are applied; None to update on each batch.
        rows: Returns the number of rows of the batch, for the window.

    Returns:
        The result of the step.

    Raises:
        ValueError: The loss depends on none of the weights.
    """
    scale = None if scaling is None else backend.to_tensor(scaling.loss_scale())
    rollback = None if scaling is None else scaling.rollback
    advance: Callable[[Tensor], None] = (lambda finite: None) if scaling is None else scaling.advance

    def divided(gradients: list[Tensor]) -> list[Tensor]:
        """Return gradients in float32, divided by the scale that the loss was multiplied by."""
        gradients = [in_dtype(gradient, float32) for gradient in gradients]
        if scaling is None or not scaling.divides:
            return gradients
        return unscaled_gradients(gradients, weights, scale)

    def replica_terms(share: backend.Share, *columns: Tree) -> tuple[list[Tensor], tuple[Tensor, Tree]]:
        """Return the loss and gradients of one replica's rows: terms to sum over replicas, and values to join."""

        def forward() -> tuple[Tensor, Tree]:
            outputs = loss_of(*columns)
            value, extra = outputs if auxiliary else (outputs, None)
            loss = keras.ops.cast(value, float32)
            # A mean is weighted before it is scaled, so that half gradients are as large as those of the whole batch.
            if gradients_mean and backend.is_one_number(loss):
                loss = share.weighted(loss)
            return (loss if scale is None else scaled(loss, scale)), (loss, extra)

        _, (loss, extra), gradients = backend.value_and_gradient(forward, weights)
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                "train step: the loss must depend on parameters that the optimizer holds; got one that depends on "
                "none. Write the optimizer with the trainable parameters of the network that is trained."
            )
        # Each replica unscales its gradients in float32, then they are summed. A sum in half precision is unscaled
        # afterwards: the scale was chosen for the scaled gradients to fit the range of a half dtype.
        if reduce_dtype == float32:
            gradients = divided(gradients)
        else:
            gradients = [
                gradient if backend.takes_next_value(weight) else in_dtype(gradient, reduce_dtype)
                for gradient, weight in zip(gradients, weights, strict=True)
            ]
        # A scalar loss is a term of the sum over replicas; a loss with a value for each row is joined along the rows.
        scalar = backend.is_one_number(loss)
        return [loss if scalar else None, *gradients], (None if scalar else loss, extra)

    # The loss is the first term.
    largest = [index for index, weight in enumerate(weights, 1) if backend.takes_next_value(weight)]

    def batch_terms() -> tuple[list[Tensor], tuple[Tensor, Tree]]:
        """Return the loss and gradients of the whole batch, reduced over replicas."""
        if replicas is None:
            return replica_terms(backend.Share(), *inputs)
        return replicas.run(replica_terms, inputs, largest)

    # Forward, loss and gradients. With a rollback, what the forward pass writes (moving statistics, random state) is
    # noted, so that `undo` can restore it if the step overflows.
    undo = None
    if rollback is None:
        (scalar_loss, *gradients), (row_losses, extra) = batch_terms()
    else:
        ((scalar_loss, *gradients), (row_losses, extra)), undo = rollback.run(batch_terms)
    loss = row_losses if scalar_loss is None else scalar_loss
    if reduce_dtype != float32:
        gradients = divided(gradients)

    observed = () if observer is None else observer.variables(extra)
    # The rows of all replicas together, so that each replica accumulates the same mean.
    batch_rows = rows() if window is not None and gradients_mean and backend.is_one_number(loss) else None

    def update() -> None:
        if window is None:
            apply(gradients)
        else:
            window.add(gradients, batch_rows, apply)
        if observer is not None:
            observer.update(extra)

    # One flag for all replicas. The norm cannot be the flag: the squares of finite gradients may have an infinite sum.
    true_gradients = backend.without_next_values(gradients, weights)
    if scaling is None:
        finite, norm = None, backend.global_norm(true_gradients)
    else:
        finite, norm = finite_and_norm(gradients, weights)

    # Apply or skip; the next scale comes last.
    if undo is None:
        # A count of updates or a decay of weights does not depend on the batch: without an explicit order it would be
        # written even where reading the batch fails.
        backend.write_after(loss, update, weights)
        advance(finite)
    else:
        # Inside a branch it is known whether the step is good: with a Python bool most of the rule's operations vanish.
        def good() -> None:
            update()
            advance(True)

        def overflowed() -> None:
            undo()
            if window is not None:
                window.reject()
            advance(False)

        accumulated = () if window is None else window.variables()
        backend.cond(finite, good, overflowed, writes=[*weights, *written, *observed, *accumulated])

    if scaling is None:
        return StepResult(loss, gradients=true_gradients, grad_norm=norm, auxiliary=extra)
    if not scaling.divides:
        # The optimizer divides for itself; what is reported is unscaled all the same.
        true_gradients, norm = [unscaled(gradient, scale) for gradient in true_gradients], norm / scale
    return StepResult(loss, keras.ops.logical_not(finite), scale, true_gradients, norm, extra)


def in_dtype(gradient: Tensor, dtype: DType) -> Tensor:
    """Return a gradient, dense or sparse, cast to a dtype; None stays None."""
    if gradient is None or gradient.dtype == dtype:
        return gradient
    return backend.map_values(lambda values: keras.ops.cast(values, dtype), gradient)
