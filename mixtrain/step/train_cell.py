"""Train cells: a network with its loss and optimizer, whose call runs one training step."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Final, Literal

import keras

from mixtrain import backend, checks, context
from mixtrain.boundary import is_any_tensor, library
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import variable_names
from mixtrain.distribution.data_parallel import DataParallel, in_force
from mixtrain.distribution.processes import ProcessParallel, all_rows, batch_rows, share_values
from mixtrain.dtype import float32
from mixtrain.loss_scale.step_scale import StepScale
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.walk import tree_of
from mixtrain.ops.gradient import GradOperation
from mixtrain.ops.hyper_map import HyperMap
from mixtrain.optim.adapter import drive
from mixtrain.precision.dtypes import choose_step_jit
from mixtrain.seed import stream_states
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.grad_reducer import DistributedGradReducer
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.step.loss_cell import WithLossCell, sums_rows
from mixtrain.step.recipe import Scaling, StepObserver, StepResult, run_step
from mixtrain.typing import Network, Optimizer, Tensor, TensorLike, Tree

_log = logging.getLogger("mixtrain")
# Tensors of a step that a callback can request in addition to the scalars.
Need = Literal["gradients", "predictions"]
# The number of non-finite values by weight, which diagnosing an overflow needs. A user's own step does not report it.
NON_FINITE: Final = "non_finite_counts"


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
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.driver = drive(optimizer)
        if sens == 0:
            raise checks.fail_value("TrainOneStepCell", "sens must not be 0", sens, "sens=1.0")
        if sens is None:
            sens = self.driver.expected_loss_scale
        self.sens = 1.0 if sens is None else sens
        self.return_grad = return_grad
        self.weights = self.driver.select(network.trainable_params())
        if not self.weights:
            raise checks.fail_value(
                type(self).__name__, "there must be parameters to train", "none",
                "requires_grad=True for some, and build a Keras network first",
            )
        self.driver.build(self.weights)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.sense_flag = sens is not None
        self.window: GradientWindow | None = None
        self._compiled: dict[bool, CompiledCall] = {}
        self._end_window: CompiledCall | None = None
        # In force during `run_with_report` only.
        self._reports: list[StepResult] | None = None
        self._needs: frozenset[str] = frozenset()
        self._observer: StepObserver | None = None
        parallel = in_force()
        joint_batch = parallel is not None and self._takes_joint_batch(parallel)
        self._parallel = parallel
        self._replicas = None if parallel is None else parallel.replicas(self._likely_written, joint_batch)
        # For subclasses with their own `construct`; the recipe reduces gradients by itself.
        self.reducer_flag = isinstance(parallel, ProcessParallel)
        self.grad_reducer: Callable[[Any], Any] = lambda gradients: gradients
        if isinstance(parallel, ProcessParallel):
            self.grad_reducer = DistributedGradReducer(self.weights, parallel.gradients_mean)
            share_values([*self.weights, *self.network_state(), *self.driver.state_variables()])

    # ---- calling ----------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if backend.is_tracing() or not context.graph_mode() or kwargs:
            return super().__call__(*args, **kwargs)
        if self.training not in self._compiled:
            step = super().__call__
            self._compiled[self.training] = CompiledCall(step, self.network, lambda: self.jit_choice(self.network))
        return self._compiled[self.training](*args)

    def construct(self, *inputs: Tree) -> Tensor:
        """Train on one batch; return the loss, or with `return_grad` ``(loss, {name: gradient})``."""
        gradients: list[Tensor] = []
        result = self._reported(self.step(inputs, self.scaling(), watch=gradients.extend if self.return_grad else None))
        if not self.return_grad:
            return result.loss
        return result.loss, dict(zip(variable_names(self.weights), gradients, strict=True))

    def scaling(self) -> Scaling | None:
        """Return how the loss is scaled: by `sens`, constant, with no step skipped; None without `sens`."""
        if not self.sense_flag:
            return None
        return Scaling(
            loss_scale=lambda: keras.ops.cast(self.sens, "float32"),
            divides=not self.driver.divides_by_loss_scale,
            rollback=None,
            advance=lambda finite: None,
        )

    def step(
        self, inputs: Sequence[Tree], scaling: Scaling | None, watch: Callable[[list[Tensor]], None] | None = None
    ) -> StepResult:
        """Run the recipe on one batch.

        Args:
            inputs: The columns of the batch.
            scaling: How the loss is scaled.
            watch: Called with the gradients that the optimizer gets.

        Returns:
            The result of the step.
        """

        def apply(gradients: list[Tensor]) -> None:
            if watch is not None:
                watch(gradients)
            self.driver.apply(gradients, self.weights)

        observed = self._observer is not None and isinstance(self.network, WithLossCell)
        needs_outputs = observed or "predictions" in self._needs
        parallel = self._parallel
        # Whether the loss is a sum or a mean over rows matters only if rows are shared or accumulated.
        weights_rows = parallel is not None or self.window is not None
        sums = weights_rows and ((parallel is not None and not parallel.gradients_mean) or sums_rows(self.network))
        return run_step(
            self.network.with_outputs if needs_outputs else self.network,
            inputs,
            self.weights,
            apply=apply,
            written=self.driver.state_variables(),
            scaling=scaling,
            auxiliary=needs_outputs,
            observer=self._observer if observed else None,
            replicas=self._replicas,
            reduce_dtype=float32 if parallel is None or self._replicas is None else parallel.reduce_dtype,
            gradients_mean=not sums,
            window=self.window,
            rows=lambda: (all_rows if isinstance(parallel, ProcessParallel) else batch_rows)(inputs),
        )

    def accumulate(self, steps: int) -> None:
        """Accumulate gradients: the optimizer gets the mean of this number of batches."""
        self.window = GradientWindow(steps, self.weights) if steps > 1 else None

    def end_window(self) -> None:
        """Apply the gradients of an incomplete window, as at the end of an epoch."""
        window = self.window
        if window is None:
            return
        if self._end_window is None:

            def end() -> Any:
                window.end(lambda gradients: self.driver.apply(gradients, self.weights))
                return backend.snapshot(window.counts)

            choice = functools.partial(self.jit_choice, self.network)
            self._end_window = CompiledCall(end, self.network, choice)
        self._end_window.run()

    def _takes_joint_batch(self, parallel: DataParallel | ProcessParallel) -> bool:
        """Whether some layer normalizes by statistics of the joint batch, which one device then computes.

        Raises:
            ValueError: On several devices a subclass has its own `construct`, which would reduce nothing; or in several
                processes a Keras layer is synchronized.
        """
        where, count = type(self).__name__, f"{parallel.count} devices"
        if isinstance(parallel, DataParallel) and self._has_own_construct():
            raise checks.fail_value(
                where, "a step on several devices must be the library's own, not a construct of its own", count,
                "Model(network, loss_fn, optimizer), or it outside data_parallel",
            )
        layers = [node for node in tree_of(self.network).walk() if getattr(node.layer, "synchronized", False)]
        if isinstance(parallel, ProcessParallel):
            layers = [node for node in layers if isinstance(node.layer, keras.Layer)]  # SyncBatchNorm is at home here.
        if layers and isinstance(parallel, ProcessParallel):
            raise checks.fail_value(
                where, f"Keras layers must normalize by their own statistics, and {layers[0].path} is synchronized",
                count.replace("devices", "processes"), "nn.SyncBatchNorm, or BatchNormalization(synchronized=False)",
            )
        if layers and parallel.count > 1:
            _log.info("replicas: %s takes statistics of the joint batch: one device computes it", layers[0].path)
        return bool(layers)

    @property
    def spread(self) -> bool:
        """Whether the cell was created for several devices or processes."""
        return self._parallel is not None

    def jit_choice(self, network: Network) -> backend.JitChoice:
        """Return how to compile a step for the dtypes that a network, this cell or the one inside, computes in now."""
        choice = choose_step_jit(network)
        return choice if self._replicas is None else self._replicas.jit_choice(choice)

    def observe(self, observer: StepObserver | None) -> None:
        """Set the observer that gets a `BatchOutputs` of every applied batch; None to remove it."""
        self._observer = observer

    def run_with_report(self, *inputs: Tree, needs: Collection[str] = ()) -> tuple[Any, dict[str, Tensor]]:
        """Train on one batch, inside a function that is being compiled.

        Args:
            *inputs: The columns of the batch.
            needs: Names of the tensors to report in addition.

        Returns:
            ``(outputs, report)``: what a call returns, and tensors by name. "counter" is `driver.counter` after the
            step; "learning_rate" the rate that the step used, if the optimizer has one; "metrics" the observer's
            results; "grad_norm" is missing for a subclass with its own `construct`. Only if needed: "gradients" by the
            names of the weights, "predictions", the outputs of the network, and "non_finite_counts", int32 (weights,),
            the number of non-finite values in the gradient of each weight.

        Raises:
            ValueError: This cell cannot report what is needed.
        """
        self._check_needs(needs)
        report: dict[str, Tensor] = {}
        rate = self.driver.learning_rate
        if rate is not None:
            report["learning_rate"] = keras.ops.reshape(keras.ops.cast(rate, "float32"), ())
        self._reports = []
        self._needs = frozenset(needs)
        try:
            outputs = self(*inputs)
            for result in self._reports:
                report |= {"grad_norm": result.grad_norm, **self._needed(result)}
            metrics = {} if self._observer is None else self._observer.results()
            if metrics:
                report["metrics"] = metrics
        finally:
            self._reports = None
            self._needs = frozenset()
        return outputs, {**report, "counter": backend.snapshot(self.driver.counter)}

    def _reported(self, result: StepResult) -> StepResult:
        """Record the result of a step for `run_with_report`, and return it.

        The `construct` of a subclass may call this class's in a branch, whose tensors cannot leave the branch: then
        nothing is recorded.
        """
        if self._reports is not None and not self._has_own_construct():
            self._reports.append(result)
        return result

    def _has_own_construct(self) -> bool:
        """Whether a subclass overrides `construct`."""
        return type(self).construct not in (TrainOneStepCell.construct, TrainOneStepWithLossScaleCell.construct)

    def _check_needs(self, needs: Collection[str]) -> None:
        """Refuse needs that a user's own step, or a user's own network with loss, cannot report."""
        own_step = self._has_own_construct()
        cell = self if own_step else self.network
        needs = set(needs) - {NON_FINITE}
        if needs and (own_step or ("predictions" in needs and not isinstance(cell, WithLossCell))):
            raise checks.fail_value(
                "Model.train", f"what a callback needs is known of Model(network, loss_fn, optimizer) alone, not of a "
                f"{type(cell).__name__} with a construct of its own", checks.join_names(sorted(needs)),
                "Model(network, loss_fn, optimizer), or needs = frozenset() in the callback",
            )

    def _needed(self, result: StepResult) -> dict[str, Tensor]:
        """Return the requested tensors of a step by name."""
        tensors: dict[str, Tensor] = {}
        if "gradients" in self._needs:
            pairs = zip(variable_names(self.weights), result.gradients, strict=True)
            tensors["gradients"] = {
                name: backend.densified(gradient) for name, gradient in pairs if gradient is not None
            }
        if "predictions" in self._needs:
            tensors["predictions"] = result.auxiliary.outputs
        if NON_FINITE in self._needs and result.overflow is not None:
            tensors[NON_FINITE] = backend.non_finite_counts(result.gradients, keras.ops.logical_not(result.overflow))
        return tensors

    def _likely_written(self) -> list[keras.Variable]:
        """Return the variables that a forward pass may write.

        Those are not only non-trainable ones: a norm may write weights. A trace shows that; eager execution does not.
        """
        return self.network_state() if backend.is_tracing() else [*self.network_state(), *self.weights]

    def network_state(self) -> list[keras.Variable]:
        """Return the variables of the network and its loss that are not trained, including random state."""
        excluded = {id(variable) for variable in (*self.weights, *self.driver.state_variables())}
        variables = [*referenced_variables([self.network]), *stream_states()]
        return [variable for variable in variables if id(variable) not in excluded]

    def set_sens(self, value: float) -> None:
        """Set the factor of the loss; the step is recompiled."""
        self.sens = value
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
        super().__init__(network, optimizer)
        if self.driver.expected_loss_scale not in (None, 1.0):
            raise checks.fail_value(
                type(self).__name__, "the loss must be scaled once, by scale_sense",
                f"loss_scale_factor={self.driver.expected_loss_scale:g} in the optimizer",
                f"{type(optimizer).__name__}(...) without it",
            )
        self._step_scale = StepScale("TrainOneStepWithLossScaleCell", scale_sense)
        self.state = self._step_scale.state
        self._rollback = backend.Rollback(self._likely_written)
        # Not tracked: these are neither parameters nor child cells. A manager that is updated from Python, else None.
        object.__setattr__(self, "host_manager", None)
        object.__setattr__(self, "scale_sense", self._step_scale.variable)
        # For subclasses with their own `construct`.
        object.__setattr__(self, "hyper_map", HyperMap())
        object.__setattr__(self, "loss_scaling_manager", scale_sense if isinstance(scale_sense, Cell) else None)

    def construct(self, *inputs: Tree) -> tuple[Tensor, Tensor, Tensor]:
        """Train on one batch; return ``(loss, overflow, loss_scale)`` with the scale that the step used."""
        result = self._reported(self.step(inputs, self.scaling()))
        return result.loss, result.overflow, result.loss_scale

    def scaling(self) -> Scaling:
        """Return how the loss is scaled: by the current scale, skipping steps that overflow."""
        return Scaling(
            loss_scale=lambda: backend.snapshot(self.scale_sense), divides=True, rollback=self._rollback,
            advance=self.advance,
        )

    def advance(self, finite: Tensor) -> None:
        """Update the loss scale and its counters after a step."""
        self._step_scale.advance(finite)

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
        self.scale_sense.assign(keras.ops.cast(self._step_scale.scalar(sens), "float32"))

    # ---- for subclasses that write their own construct ----------------------------------------------------------
    @library
    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """Return ``(status, compute_input)``; no check needs to start here, the gradients show an overflow.

        For a variable, such as `scale_sense`, its current value is returned.
        """
        return pre_cond, backend.snapshot(compute_input) if isinstance(compute_input, keras.Variable) else compute_input

    @library
    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Return whether some gradient in `compute_output` is not finite in any of the processes, bool scalar."""
        finite = backend.all_finite(keras.tree.flatten(compute_output))
        if isinstance(self._parallel, ProcessParallel):
            finite = backend.all_reduce([keras.ops.cast(finite, "int32")], "min")[0] > 0
        return keras.ops.logical_not(finite)

    @library
    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Update the loss scale after a step; return `overflow`."""
        self.advance(keras.ops.logical_not(overflow))
        return overflow
