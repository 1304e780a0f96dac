"""The recipe of a training step, which every train network runs; read it from top to bottom."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import keras

from mixtrain import backend
from mixtrain.distribution.processes import ProcessReplicas
from mixtrain.dtype import DType, float32, wider
from mixtrain.loss_scale.scaling import check_gradients, scaled, unscaled, unscaled_gradients
from mixtrain.step.gradient_hooks import hooked
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


class _Batch(NamedTuple):
    """What the forward and backward pass of a batch gave, the same on each replica.

    Attributes:
        loss: The unscaled loss, float32: a scalar, or a value for each row.
        gradients: In the order of the weights; divided by the scale unless the optimizer does it.
        extra: What the loss function returned next to the loss.
        undo: Restores what the forward pass wrote; None if the step is applied in any case.
    """

    loss: Tensor
    gradients: list[Tensor]
    extra: Tree
    undo: Callable[[], None] | None


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A training step in four stages: `_terms`, `_reduced`, `_verdict` and `_settle`.

    Attributes:
        loss_of: The network with its loss: takes the columns of a batch, returns the loss (its sum is differentiated).
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
    """

    loss_of: Callable[..., Any]
    weights: Sequence[Variable]
    apply: Callable[[list[Tensor]], None]
    written: Sequence[keras.Variable] = ()
    scaling: Scaling | None = None
    auxiliary: bool = False
    observer: StepObserver | None = None
    replicas: backend.Replicas | ProcessReplicas | None = None
    reduce_dtype: DType = float32
    gradients_mean: bool = True
    window: GradientWindow | None = None
    rows: Callable[[], Tensor | int] = lambda: 1

    def run(self, inputs: Sequence[Tree]) -> StepResult:
        """Train on one batch, given its columns. Raises: ValueError if the loss depends on none of the weights."""
        scale = None if self.scaling is None else backend.to_tensor(self.scaling.loss_scale())
        batch = self._reduced(inputs, scale)
        gradients, finite, norm = self._verdict(batch.gradients)
        self._settle(batch._replace(gradients=gradients), finite)
        gradients = backend.without_next_values(gradients, self.weights)
        if self.scaling is None:
            return StepResult(batch.loss, gradients=gradients, grad_norm=norm, auxiliary=batch.extra)
        if not self.scaling.divides:
            # The optimizer divides for itself; what is reported is unscaled all the same.
            gradients, norm = [unscaled(gradient, scale) for gradient in gradients], norm / scale
        return StepResult(batch.loss, keras.ops.logical_not(finite), scale, gradients, norm, batch.extra)

    # ---- 1. The terms of one replica ------------------------------------------------------------------------------
    def _terms(
        self, scale: Tensor | None, share: backend.Share, *columns: Tree
    ) -> tuple[list[Tensor], tuple[Tensor, Tree]]:
        """Return the loss and gradients of one replica's rows: terms to sum over replicas, and values to join."""

        def forward() -> tuple[Tensor, Tree]:
            outputs = self.loss_of(*columns)
            value, extra = outputs if self.auxiliary else (outputs, None)
            loss = keras.ops.cast(value, wider(value.dtype, float32))
            # A mean is weighted before it is scaled, so that half gradients are as large as those of the whole batch.
            if self.gradients_mean and backend.is_one_number(loss):
                loss = share.weighted(loss)
            return (loss if scale is None else scaled(loss, scale)), (loss, extra)

        _, (loss, extra), gradients = backend.value_and_gradient(forward, self.weights)
        gradients = hooked(gradients, self.weights)
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                "train step: the loss must depend on parameters that the optimizer holds; got one that depends on "
                "none. Write the optimizer with the trainable parameters of the network that is trained."
            )
        # Each replica unscales its gradients in float32, then they are summed. A sum in half precision is unscaled
        # afterwards: the scale was chosen for the scaled gradients to fit the range of a half dtype.
        if self.reduce_dtype == float32:
            gradients = self._divided(gradients, scale)
        else:
            gradients = [
                gradient if backend.takes_next_value(weight) else in_dtype(gradient, self.reduce_dtype)
                for gradient, weight in zip(gradients, self.weights, strict=True)
            ]
        # A scalar loss is a term of the sum over replicas; a loss with a value for each row is joined along the rows.
        scalar = backend.is_one_number(loss)
        return [loss if scalar else None, *gradients], (None if scalar else loss, extra)

    def _divided(self, gradients: list[Tensor], scale: Tensor | None) -> list[Tensor]:
        """Return gradients in at least float32, divided by the scale that the loss was multiplied by."""
        gradients = [
            gradient if gradient is None else in_dtype(gradient, wider(gradient.dtype, float32))
            for gradient in gradients
        ]
        if self.scaling is None or not self.scaling.divides:
            return gradients
        return unscaled_gradients(gradients, self.weights, scale)

    # ---- 2. Reduced over replicas ---------------------------------------------------------------------------------
    def _reduced(self, inputs: Sequence[Tree], scale: Tensor | None) -> _Batch:
        """Return the loss and the gradients of the whole batch."""
        # With a rollback, what the forward pass writes (moving statistics, random state) is noted, so that `undo` can
        # restore it if the step overflows.
        rollback = None if self.scaling is None else self.scaling.rollback
        with contextlib.nullcontext() if rollback is None else rollback.recorded() as undo:
            if self.replicas is None:
                terms = self._terms(scale, backend.Share(), *inputs)
            else:
                # Next values are not summed: the largest is taken. The loss is the first term.
                largest = [index for index, weight in enumerate(self.weights, 1) if backend.takes_next_value(weight)]
                terms = self.replicas.run(functools.partial(self._terms, scale), inputs, [None, *self.weights], largest)
        (scalar_loss, *gradients), (row_losses, extra) = terms
        if self.reduce_dtype != float32:
            gradients = self._divided(gradients, scale)
        return _Batch(row_losses if scalar_loss is None else scalar_loss, gradients, extra, undo)

    # ---- 3. The verdict, one for all replicas ---------------------------------------------------------------------
    def _verdict(self, gradients: Sequence[Tensor]) -> tuple[list[Tensor], Tensor | None, Tensor]:
        """Return the gradients for the update; whether they are finite, None without scaling; and their norm.

        The norm cannot be the flag: the squares of finite gradients may have an infinite sum.
        """
        gradients, finite, norm = check_gradients(gradients, self.weights, finite=self.scaling is not None)
        return gradients, None if self.scaling is None else finite, norm

    # ---- 4. Apply or skip; the next scale comes last --------------------------------------------------------------
    def _settle(self, batch: _Batch, finite: Tensor | None) -> None:
        """Apply the update and show the batch to the observer, or undo the forward pass; then update the scale."""
        window, observer, scaling = self.window, self.observer, self.scaling
        observed = () if observer is None else observer.variables(batch.extra)
        # The rows of all replicas together, so that each replica accumulates the same mean.
        rows = self.rows() if window is not None and self.gradients_mean and backend.is_one_number(batch.loss) else None

        def update() -> None:
            if window is None:
                self.apply(batch.gradients)
            else:
                window.add(batch.gradients, rows, self.apply)
            if observer is not None:
                observer.update(batch.extra)

        if batch.undo is None:
            # A count of updates or a decay of weights does not depend on the batch: without an explicit order it would
            # be written even where reading the batch fails.
            backend.write_after(batch.loss, update, self.weights)
            if scaling is not None:
                scaling.advance(finite)
            return
        undo, advance = batch.undo, scaling.advance  # type: ignore[union-attr]

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
        backend.cond(finite, good, overflowed, writes=[*self.weights, *self.written, *observed, *accumulated])


def in_dtype(gradient: Tensor, dtype: DType) -> Tensor:
    """Return a gradient, dense or sparse, cast to a dtype; None stays None."""
    if gradient is None or gradient.dtype == dtype:
        return gradient
    return backend.map_values(lambda values: keras.ops.cast(values, dtype), gradient)
