"""Train cells: a `TrainStep` as a cell, whose call runs one training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import keras

from mixtrain import backend, checks, execution, faces
from mixtrain.boundary import is_any_tensor, library
from mixtrain.cell.cell import Cell
from mixtrain.distribution.processes import ProcessParallel
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.loss_scale.step_scale import StepScale
from mixtrain.nn.wrap.cell_scale import scalar, step_scale
from mixtrain.nn.wrap.grad_reducer import DistributedGradReducer
from mixtrain.ops.gradient import GradOperation
from mixtrain.ops.hyper_map import HyperMap
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.step.network_loss import NetworkLoss
from mixtrain.step.optimizer_driver import OptimizerDriver
from mixtrain.step.train_step import ForeignStep, Step, TrainStep
from mixtrain.typing import Network, Optimizer, Tensor, TensorLike, Tree

_SCALED: Final = "TrainOneStepWithLossScaleCell"


class TrainOneStepCell(Cell):
    """A network with its loss and optimizer; a call trains on one batch and returns the loss.

    In GRAPH_MODE the outermost call is compiled. A subclass may override `construct`, using ``self.network,
    self.optimizer, self.weights, self.grad, self.grad_reducer, self.sens``.

    Args:
        network: A Cell that returns the loss.
        optimizer: A mixtrain or Keras optimizer.
        sens: Factor of the loss before differentiation. The optimizer divides by it (``loss_scale=sens``); a Keras
            optimizer gets gradients that are divided already. None for 1, or a Keras optimizer's `loss_scale_factor`.
        return_grad: Whether a call returns ``(loss, {name: gradient})``.

    Raises:
        TypeError: `optimizer` is not an optimizer.
        ValueError: `sens` is 0; there is no parameter to train; or the cell is created for several devices with its own
            `construct`, or for several processes with synchronized Keras layers.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> step = TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5))
        >>> float(step(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))), net.weight.asnumpy().tolist()
        (4.0, [[2.0]])
    """

    compiles_itself: ClassVar[bool] = True

    def __init__(
        self, network: Network, optimizer: Optimizer, sens: float | None = None, return_grad: bool = False
    ) -> None:
        self._hold_network(network, optimizer)
        if sens == 0:
            raise checks.fail_value("TrainOneStepCell", "sens must not be 0", sens, "sens=1.0")
        self.return_grad = return_grad
        where, own = type(self).__name__, self._has_own_construct()
        self._hold(TrainStep(self.network, optimizer, sens=sens, where=where, own_construct=own))

    def _hold_network(self, network: Network, optimizer: Optimizer) -> None:
        """Initialize the cell with its network and its optimizer."""
        Cell.__init__(self, auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer

    def _hold(self, step: TrainStep) -> None:
        """Store the step that the cell runs, and what subclasses with their own `construct` use."""
        self._step = step
        self._compiled: dict[bool, CompiledCall] = {}
        self.weights = step.weights
        self.sens = 1.0 if step.sens is None else step.sens
        self.sense_flag = step.sens is not None
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        # The recipe reduces gradients by itself.
        self.reducer_flag = isinstance(step.parallel, ProcessParallel)
        self.grad_reducer: Callable[[Any], Any] = lambda gradients: gradients
        if isinstance(step.parallel, ProcessParallel):
            self.grad_reducer = DistributedGradReducer(self.weights, step.parallel.gradients_mean)

    @classmethod
    def _of(cls, step: TrainStep) -> TrainOneStepCell:
        """Return the cell of a step that a Model made."""
        cell = cls.__new__(cls)
        Cell.__init__(cell, auto_prefix=False)
        cell.network = faces.face("loss_cell", step.loss) if isinstance(step.loss, NetworkLoss) else step.loss
        cell.optimizer = step.optimizer
        cell.return_grad = False
        cell._hold(step)
        # Not by `set_train`, which would change the mode of the user's cells below.
        object.__setattr__(cell, "training", True)
        if isinstance(step.loss, NetworkLoss):
            object.__setattr__(cell.network, "training", True)
        return cell

    @property
    def driver(self) -> OptimizerDriver:
        """The driver of the optimizer."""
        return self._step.driver

    @property
    def window(self) -> GradientWindow | None:
        """Accumulates the gradients of several batches, or None."""
        return self._step.window

    @property
    def host_manager(self) -> Any:
        """A manager whose scale Python code updates after each step, or None."""
        return self._step.host_manager

    # ---- calling ----------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if backend.is_tracing() or not execution.current.graph_mode or kwargs:
            return super().__call__(*args, **kwargs)
        if self.training not in self._compiled:
            choice = self._step.jit_choice
            self._compiled[self.training] = CompiledCall(super().__call__, self.network, choice=choice)
        return self._compiled[self.training](*args)

    def construct(self, *inputs: Tree) -> Tensor:
        """Train on one batch; return the loss, or with `return_grad` ``(loss, {name: gradient})``."""
        gradients: list[Tensor] = []
        step = self._current_step()
        result = step.run(inputs, watch=gradients.extend if self.return_grad else None)
        return step.outputs(result, gradients)

    def as_train_step(self) -> Step:
        """Return the step that a Model runs: the library's, or a subclass's own."""
        return ForeignStep(self, self._current_step()) if self._has_own_construct() else self._current_step()

    def _current_step(self) -> TrainStep:
        """Return the step with the attributes that a script may have set."""
        self._step.weights, self._step.return_grad = list(self.weights), self.return_grad
        if self._step.sens is not None:
            self._step.sens = self.sens
        return self._step

    def _has_own_construct(self) -> bool:
        """Whether a subclass overrides `construct`."""
        return type(self).construct not in (TrainOneStepCell.construct, TrainOneStepWithLossScaleCell.construct)

    def accumulate(self, steps: int) -> None:
        """Accumulate gradients: the optimizer gets the mean of this number of batches."""
        self._step.accumulate(steps)

    def end_window(self) -> None:
        """Apply the gradients of an incomplete window, as at the end of an epoch."""
        self._step.end_window()

    def network_state(self) -> list[keras.Variable]:
        """Return the variables of the network and its loss that are not trained, including random state."""
        return self._step.network_state()

    def set_sens(self, value: float) -> None:
        """Set the factor of the loss; the step is recompiled."""
        self.sens = self._step.sens = value
        self.sense_flag = True
        self._compiled.clear()


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """A `TrainOneStepCell` with loss scaling: overflowing steps are skipped, and the scale is updated.

    Args:
        network: A Cell that returns the loss.
        optimizer: A mixtrain or Keras optimizer.
        scale_sense: A loss-scale update cell, or a scalar tensor for a constant loss scale.

    Raises:
        TypeError: `scale_sense` is neither.
        ValueError: `scale_sense` is a tensor that is not a scalar, or the optimizer has a `loss_scale_factor`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> step = TrainOneStepWithLossScaleCell(
        ...     nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5),
        ...     nn.DynamicLossScaleUpdateCell(1024, 2, 2000))
        >>> loss, overflow, scale = step(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))
        >>> float(loss), bool(overflow), float(scale), net.weight.asnumpy().tolist()
        (4.0, False, 1024.0, [[2.0]])
    """

    def __init__(self, network: Network, optimizer: Optimizer, scale_sense: Any) -> None:
        self._hold_network(network, optimizer)
        self.return_grad = False
        where = type(self).__name__
        scale = scale_sense if isinstance(scale_sense, StepScale) else step_scale(_SCALED, scale_sense)
        own = self._has_own_construct()
        step = TrainStep(self.network, optimizer, scale, where=where, own_construct=own)
        if step.driver.expected_loss_scale not in (None, 1.0):
            raise checks.fail_value(
                where, "the loss must be scaled once, by scale_sense",
                f"loss_scale_factor={step.driver.expected_loss_scale:g} in the optimizer",
                f"{type(optimizer).__name__}(...) without it",
            )
        self._hold(step)
        # Not tracked: this is neither a parameter nor a child cell.
        object.__setattr__(self, "loss_scaling_manager", scale_sense if isinstance(scale_sense, Cell) else None)

    def _hold(self, step: TrainStep) -> None:
        super()._hold(step)
        object.__setattr__(self, "scale_sense", step.scale.variable)  # type: ignore[union-attr]
        # For subclasses with their own `construct`.
        object.__setattr__(self, "hyper_map", HyperMap())

    def construct(self, *inputs: Tree) -> tuple[Tensor, Tensor, Tensor]:
        """Train on one batch; return ``(loss, overflow, loss_scale)`` with the scale that the step used."""
        return super().construct(*inputs)  # type: ignore[return-value]

    def advance(self, finite: Tensor) -> None:
        """Update the loss scale and its counters after a step."""
        self._step.scale.advance(finite)  # type: ignore[union-attr]

    @property
    def state(self) -> LossScaleState:
        """The loss scale and its counters."""
        return self._step.state

    def set_sense_scale(self, sens: TensorLike) -> None:
        """Set the loss scale of the next step.

        Args:
            sens: A scalar tensor.

        Raises:
            TypeError: `sens` is not a tensor.
            ValueError: `sens` is not a scalar.
        """
        if not is_any_tensor(sens):
            raise checks.fail_type("set_sense_scale", "sens must be a scalar tensor", sens, "mixtrain.Tensor(1024.0)")
        self.scale_sense.assign(keras.ops.cast(scalar(_SCALED, sens), "float32"))

    # ---- for subclasses that write their own construct ----------------------------------------------------------
    @library
    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """Return ``(status, compute_input)``; no check needs to start here, the gradients show an overflow.

        Of `scale_sense` the value that this step uses is returned; a Parameter of the user's own is returned itself, so
        that its manager updates it.
        """
        return pre_cond, backend.snapshot(compute_input) if compute_input is self.scale_sense else compute_input

    @library
    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Return whether some gradient in `compute_output` is not finite in any of the processes, bool scalar."""
        finite = backend.all_finite(keras.tree.flatten(compute_output))
        if isinstance(self._step.parallel, ProcessParallel):
            finite = backend.all_reduce([keras.ops.cast(finite, "int32")], "min")[0] > 0
        return keras.ops.logical_not(finite)

    @library
    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Update the loss scale after a step; return `overflow`."""
        self.advance(keras.ops.logical_not(overflow))
        return overflow


def train_cell(step: TrainStep) -> TrainOneStepCell:
    """Return the cell of a step."""
    return (TrainOneStepCell if step.scale is None else TrainOneStepWithLossScaleCell)._of(step)


faces.register("train_cell", train_cell)
