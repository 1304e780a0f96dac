"""`TrainStep`: a network with its loss and optimizer, whose run trains on one batch."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Literal

import keras

from mixtrain import backend, boundary, checks
from mixtrain.distribution.data_parallel import DataParallel, in_force
from mixtrain.distribution.processes import ProcessParallel, ProcessReplicas, all_rows, batch_rows, share_values
from mixtrain.dtype import float32
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.loss_scale.rule import STATIC, LossScaleState
from mixtrain.loss_scale.step_scale import StepScale, scale_of
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.unique_names import variable_names
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.precision.dtypes import choose_step_jit
from mixtrain.precision.float8_state import histories_by_name
from mixtrain.precision.master_weights import (
    LowPrecisionUpdate,
    check_optimizer,
    presented_in_float32,
    update_state,
    updating,
    updating_masters,
)
from mixtrain.seed import stream_states
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.step.joint_statistics import with_joint_statistics
from mixtrain.step.network_loss import NetworkLoss
from mixtrain.step.optimizer_driver import drive
from mixtrain.step.recipe import Recipe, Scaling, StepObserver, StepResult
from mixtrain.typing import Layer, Network, Optimizer, Tensor, Tree, Variable

_log = logging.getLogger("mixtrain")
# Tensors of a step that a callback can request in addition to the scalars.
Need = Literal["gradients", "predictions"]
# The number of non-finite values by weight, which diagnosing an overflow needs. A user's own step does not report it.
NON_FINITE: Final = "non_finite_counts"


def trainable_variables(layers: Sequence[Layer]) -> list[Variable]:
    """Return the variables of some Cells and Keras layers that require a gradient, each once."""
    found: dict[int, Variable] = {}
    for layer in layers:
        variables = layer.trainable_params() if is_cell(layer) else [item for item in layer.weights if item.trainable]
        found |= {id(variable): variable for variable in variables}
    return list(found.values())


class TrainStep:
    """One training step of a network.

    Args:
        loss: The network with its loss: a `NetworkLoss`, or a Cell that returns the loss.
        optimizer: An optimizer that has a driver.
        scale: The loss scale; steps that overflow are skipped. None for no scaling, or the constant `sens`.
        sens: Factor of the loss before differentiation if there is no `scale`, by which the optimizer divides (a Keras
            optimizer gets gradients that are divided already). None for 1, or a Keras optimizer's `loss_scale_factor`.
        where: The class that users see, for errors.
        own_construct: Whether the user wrote the computation, and only uses the parts of this step.
        low_precision_update: How the update of weights that the user stores in half is rounded; None to leave it to the
            optimizer.

    Attributes:
        loss, optimizer, scale, low_precision_update: As passed.
        driver: The driver of the optimizer.
        weights: The variables that the optimizer trains.
        sens: The constant factor of the loss; None for none.
        window: Accumulates the gradients of several batches, or None.
        host_manager: A manager whose scale Python code updates after each step, or None.
        parallel: The devices or processes that it was made for, or None.
        return_grad: Whether the outputs without a scale are ``(loss, {name: gradient})``.

    Raises: TypeError if `optimizer` is not an optimizer. ValueError if there is no parameter to train; or the step is
    made for several devices with an own computation, or for several processes with synchronized Keras layers.
    """

    def __init__(
        self, loss: NetworkLoss | Network, optimizer: Optimizer, scale: StepScale | None = None, *,
        sens: float | None = None, where: str = "Model", own_construct: bool = False,
        low_precision_update: LowPrecisionUpdate | None = None,
    ) -> None:
        self.loss, self.optimizer, self.scale = loss, optimizer, scale
        self.low_precision_update = low_precision_update
        self.driver = drive(optimizer)
        self.sens = self.driver.expected_loss_scale if sens is None else sens
        self.weights = self.driver.select(trainable_variables(self.layers))
        if not self.weights:
            raise checks.fail_value(
                where, "there must be parameters to train", "none",
                "requires_grad=True for some, and build a Keras network first",
            )
        check_optimizer(where, optimizer, self.weights, low_precision_update)
        with presented_in_float32(self.weights, low_precision_update):
            self.driver.build(self.weights)
        update_state(self.weights, low_precision_update)  # Made now, so that a checkpoint can be loaded into it.
        self.window: GradientWindow | None = None
        self.host_manager: Any = None
        self.return_grad = False
        self._rollback = None if scale is None else backend.Rollback(self._likely_written)
        self._end_window: CompiledCall | None = None
        # In force during `run_with_report` only.
        self._needs: frozenset[str] = frozenset()
        self._observer: StepObserver | None = None
        self.parallel = in_force()
        self._replicas: backend.Replicas | ProcessReplicas | None = None
        if self.parallel is not None:
            joint_batch = self._takes_joint_batch(where, self.parallel, own_construct)
            self._replicas = self.parallel.replicas(self._likely_written, joint_batch)
        if isinstance(self.parallel, ProcessParallel):
            with updating_masters(self.weights):
                share_values([*self.differentiated, *self.network_state(), *self.optimizer_state()])

    @property
    def layers(self) -> list[Layer]:
        """The layers that compute the loss."""
        return self.loss.layers if isinstance(self.loss, NetworkLoss) else [self.loss]

    @property
    def histories(self) -> dict[str, Variable]:
        """The variables of the float8 products of a plan, by name: a step computes their next values."""
        return histories_by_name(self.layers)

    @property
    def differentiated(self) -> list[Variable]:
        """The weights, and the variables whose next values are computed with their gradients."""
        return [*self.weights, *self.histories.values()]

    @property
    def state(self) -> LossScaleState:
        """The loss scale and its counters; an AttributeError without a scale."""
        return self.scale.state  # type: ignore[union-attr]

    def for_trials(self, loss_scale: float) -> TrainStep:
        """Return a step of the same network and optimizer that updates with each batch, and that nothing observes.

        Its loss scale is constant, and may be assigned; it has none where the optimizer itself divides by one.
        """
        step = copy.copy(self)
        step.window = step._observer = step.host_manager = None
        if self.driver.loss_scale == 1.0:
            step.scale = StepScale(LossScaleState(loss_scale, STATIC))
            step._rollback = backend.Rollback(step._likely_written)
        return step

    # ---- a step -----------------------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Tree], watch: Callable[[list[Tensor]], None] | None = None) -> StepResult:
        """Train on one batch, given its columns; `watch` is called with the gradients that the optimizer gets."""
        return self._recipe(inputs, watch).run(inputs)

    def _recipe(self, inputs: Sequence[Tree], watch: Callable[[list[Tensor]], None] | None) -> Recipe:
        """Return the step as it is now."""

        def apply(gradients: list[Tensor]) -> None:
            if watch is not None:
                watch(gradients[: len(self.weights)])
            self._apply(gradients)

        shows_outputs = hasattr(self.loss, "with_outputs")
        observer = self._observer if shows_outputs else None
        needs_outputs = observer is not None or "predictions" in self._needs
        parallel = self.parallel
        # Whether the loss is a sum or a mean over rows matters only if rows are shared or accumulated.
        weights_rows = parallel is not None or self.window is not None
        sums = weights_rows and (
            (parallel is not None and not parallel.gradients_mean) or getattr(self.loss, "sums_rows", False)
        )
        loss_of = self.loss.with_outputs if needs_outputs else self.loss
        if getattr(parallel, "joins_statistics", False):
            loss_of = with_joint_statistics(loss_of, self.layers)
        return Recipe(
            loss_of=loss_of,
            weights=self.differentiated,
            apply=apply,
            written=self.optimizer_state(),
            scaling=self._scaling(),
            auxiliary=needs_outputs,
            observer=observer,
            replicas=self._replicas,
            reduce_dtype=float32 if parallel is None or self._replicas is None else parallel.reduce_dtype,
            gradients_mean=not sums,
            window=self.window,
            rows=lambda: (all_rows if isinstance(parallel, ProcessParallel) else batch_rows)(inputs),
        )

    def _apply(self, gradients: list[Tensor]) -> None:
        """Update the weights, those in half in float32, and put the next values of the float8 products in place."""
        count = len(self.weights)
        with updating(self.weights, self.low_precision_update):
            self.driver.apply(gradients[:count], self.weights)
        for variable, value in zip(self.histories.values(), gradients[count:], strict=True):
            if value is not None:
                variable.assign(value)

    def _scaling(self) -> Scaling | None:
        """Return how the loss is scaled: by the current scale, skipping steps that overflow; or by `sens`."""
        if self.scale is not None:
            variable = self.scale.variable
            return Scaling(lambda: backend.snapshot(variable), True, self._rollback, self.scale.advance)
        if self.sens is None:
            return None
        return Scaling(
            loss_scale=lambda: keras.ops.cast(self.sens, "float32"),
            divides=not self.driver.divides_by_loss_scale,
            rollback=None,
            advance=lambda finite: None,
        )

    def run_with_report(self, *inputs: Tree, needs: Collection[str] = ()) -> tuple[Any, dict[str, Tensor]]:
        """Train on one batch, inside a function that is being compiled.

        `*inputs`: The columns of the batch. `needs`: Names of the tensors to report in addition.

        Returns: ``(outputs, report)``: what `outputs` returns, and tensors by name. "counter" is `driver.counter` after
        the step; "learning_rate" the rate that the step used, if the optimizer has one; "metrics" the observer's
        results. Only if needed: "gradients" by the names of the weights, "predictions", the outputs of the network, and
        "non_finite_counts", int32 (weights,), the number of non-finite values in the gradient of each weight.

        Raises: ValueError if this step cannot report what is needed.
        """
        if "predictions" in needs and not hasattr(self.loss, "with_outputs"):
            raise unreportable(self.loss, {"predictions"})
        report = self.rate()
        self._needs = frozenset(needs)
        try:
            gradients: list[Tensor] = []
            with boundary.in_mode("backend"):
                recipe = self._recipe(inputs, gradients.extend if self.return_grad else None)
                result = recipe.run(inputs)
                report |= {"grad_norm": result.grad_norm, **self._needed(result)}  # type: ignore[dict-item]
                metrics = {} if self._observer is None else self._observer.results()
        finally:
            self._needs = frozenset()
        if metrics:
            report["metrics"] = metrics
        report["counter"] = backend.snapshot(self.driver.counter)
        return self.outputs(result, gradients), report

    def outputs(self, result: StepResult, gradients: Sequence[Tensor]) -> Any:
        """Return what a call of the step returns.

        The loss; ``(loss, {name: gradient})`` with `return_grad`, the gradients that the optimizer got; ``(loss,
        overflow, loss_scale)`` with a scale.
        """
        if self.return_grad:
            return result.loss, dict(zip(variable_names(self.weights), gradients, strict=True))
        return result.loss if self.scale is None else (result.loss, result.overflow, result.loss_scale)

    def rate(self) -> dict[str, Tensor]:
        """Return the learning rate of the next update as "learning_rate"; nothing if there is no single one."""
        rate = self.driver.learning_rate
        if rate is None:
            return {}
        return {"learning_rate": keras.ops.reshape(keras.ops.cast(rate, "float32"), ())}

    def _needed(self, result: StepResult) -> dict[str, Any]:
        """Return the requested tensors of a step by name."""
        tensors: dict[str, Any] = {}
        gradients = result.gradients[: len(self.weights)]
        if "gradients" in self._needs:
            pairs = zip(variable_names(self.weights), gradients, strict=True)
            tensors["gradients"] = {
                name: backend.densified(gradient) for name, gradient in pairs if gradient is not None
            }
        if "predictions" in self._needs:
            tensors["predictions"] = result.auxiliary.outputs
        if NON_FINITE in self._needs and result.overflow is not None:
            tensors[NON_FINITE] = backend.non_finite_counts(gradients, keras.ops.logical_not(result.overflow))
        return tensors

    def observe(self, observer: StepObserver | None) -> None:
        """Set the observer that gets a `BatchOutputs` of every applied batch; None to remove it."""
        self._observer = observer

    # ---- accumulation -----------------------------------------------------------------------------------------
    def accumulate(self, steps: int) -> None:
        """Accumulate gradients: the optimizer gets the mean of this number of batches."""
        self.window = GradientWindow(steps, self.differentiated) if steps > 1 else None

    def end_window(self) -> None:
        """Apply the gradients of an incomplete window, as at the end of an epoch."""
        window = self.window
        if window is None:
            return
        if self._end_window is None:

            def end() -> Any:
                window.end(self._apply)
                return backend.snapshot(window.counts)

            self._end_window = CompiledCall(end, *self.layers, choice=self.jit_choice)
        self._end_window.run()

    # ---- what it writes ---------------------------------------------------------------------------------------
    def _likely_written(self) -> list[keras.Variable]:
        """Return the variables that a forward pass may write.

        Those are not only non-trainable ones: a norm may write weights. A trace shows that; eager execution does not.
        """
        return self.network_state() if backend.is_tracing() else [*self.network_state(), *self.differentiated]

    def optimizer_state(self) -> list[Variable]:
        """Return the variables that an update writes besides the weights."""
        return [*self.driver.state_variables(), *update_state(self.weights, self.low_precision_update)]

    def network_state(self) -> list[keras.Variable]:
        """Return the variables of the network and its loss that are not trained, including random state."""
        excluded = {id(variable) for variable in (*self.weights, *self.driver.state_variables())}
        variables = [*referenced_variables([self.loss]), *stream_states()]
        return [variable for variable in variables if id(variable) not in excluded]

    def variables(self) -> list[keras.Variable]:
        """Return all variables that training writes, each once: weights and state of the network, and of the optimizer,
        the loss scale, the accumulation window and the observer.
        """
        variables = [
            *referenced_variables([self]), *self.optimizer_state(), *stream_states(), *self.differentiated,
            self.driver.counter, *(() if self.scale is None else self.scale.variables()),
        ]
        return list({id(variable): variable for variable in variables}.values())

    # ---- devices ----------------------------------------------------------------------------------------------
    def jit_choice(self) -> backend.JitChoice:
        """Return how to compile a step for the dtypes that the network computes in now."""
        choice = choose_step_jit(*self.layers)
        return choice if self._replicas is None else self._replicas.jit_choice(choice)

    def _takes_joint_batch(self, where: str, parallel: DataParallel | ProcessParallel, own_construct: bool) -> bool:
        """Whether some layer normalizes by statistics of the joint batch, which one device then computes.

        Raises: ValueError if a subclass has its own `construct`, which would reduce nothing over several devices; or if
        a Keras layer is synchronized, in several processes.
        """
        count = f"{parallel.count} devices"
        if isinstance(parallel, DataParallel) and own_construct:
            raise checks.fail_value(
                where, "a step on several devices must be the library's own, not a construct of its own", count,
                "Model(network, loss_fn, optimizer), or it outside data_parallel",
            )
        nodes = [node for layer in self.layers for node in tree_of(layer).walk()]
        layers = [node for node in nodes if getattr(node.layer, "synchronized", False)]
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


class ForeignStep:
    """A user's own train step: a Cell whose call trains on a batch, in a way of its own.

    `cell`: The Cell. `parts`: The step whose parts (optimizer, scale, weights) the cell uses, or None; the attributes
    are those of `parts`.
    """

    def __init__(self, cell: Network, parts: TrainStep | None = None) -> None:
        self.cell, self._parts = cell, parts
        self.loss = cell if parts is None else parts.loss
        self.optimizer = None if parts is None else parts.optimizer
        self.driver = None if parts is None else parts.driver
        # A plain Cell may hold its weights by this name, or anything else.
        own = getattr(cell, "weights", ()) if parts is None else parts.weights
        own = own if isinstance(own, (tuple, list)) else ()
        self.weights: list[Variable] = [weight for weight in own if isinstance(weight, keras.Variable)]
        self.scale = None if parts is None else parts.scale
        self.window = None if parts is None else parts.window
        self.host_manager = None
        self.parallel = None if parts is None else parts.parallel

    @property
    def layers(self) -> list[Layer]:
        """The layers that the step runs."""
        return [self.cell]

    @property
    def state(self) -> LossScaleState:
        """The loss scale and its counters; an AttributeError without a scale."""
        return self.scale.state  # type: ignore[union-attr]

    def run_with_report(self, *inputs: Tree, needs: Collection[str] = ()) -> tuple[Any, dict[str, Tensor]]:
        """Call the cell; return its outputs and a report as `TrainStep.run_with_report`, without what only that knows.

        Raises: ValueError if tensors are needed that only the library's own step knows.
        """
        if self._parts is None:
            return self.cell(*inputs), {}
        unknown = set(needs) - {NON_FINITE}
        if unknown:
            raise unreportable(self.cell, unknown)
        report = self._parts.rate()
        outputs = self.cell(*inputs)
        return outputs, {**report, "counter": backend.snapshot(self._parts.driver.counter)}

    def end_window(self) -> None:
        """Apply the gradients of an incomplete window, as at the end of an epoch."""
        if self._parts is not None:
            self._parts.end_window()

    def network_state(self) -> list[keras.Variable]:
        """Return the variables of the network that are not trained; none where the optimizer is unknown."""
        return [] if self._parts is None else self._parts.network_state()

    def variables(self) -> list[keras.Variable]:
        """Return the variables that the cell refers to, and those of its parts, each once."""
        variables = [
            *referenced_variables([self.cell]), *stream_states(),
            *([] if self._parts is None else self._parts.variables()),
        ]
        return list({id(variable): variable for variable in variables}.values())

    def jit_choice(self) -> backend.JitChoice:
        """Return how to compile a step for the dtypes that the network computes in now."""
        return choose_step_jit(self.cell) if self._parts is None else self._parts.jit_choice()


Step = TrainStep | ForeignStep


def scaled_step(
    loss: NetworkLoss | Network, optimizer: Optimizer, manager: LossScaleManager | None,
    low_precision_update: LowPrecisionUpdate | None = None,
) -> TrainStep:
    """Return the step of a network that returns its loss.

    `loss`: The network with its loss. `optimizer`: A mixtrain or Keras optimizer. `manager`: The loss-scale manager;
    None for the optimizer's own scaler, or no scaling. `low_precision_update`: As of `TrainStep`.
    """
    driver = drive(optimizer)
    make = functools.partial(TrainStep, loss, optimizer, low_precision_update=low_precision_update)
    if manager is None and driver.own_scaler is not None:
        driver.claim_scaler()
        return make(StepScale(driver.own_scaler))
    if manager is None:
        return make()
    if not manager.get_drop_overflow_update():
        return make(sens=float(manager.get_loss_scale()))
    scale = scale_of("Model", manager)
    if scale is not None:
        return make(scale)
    step = make(StepScale(LossScaleState(float(manager.get_loss_scale()), STATIC)))
    step.host_manager = manager
    return step


def step_of(network: Network) -> Step:
    """Return the step of a network that trains itself: a Cell, or a train cell, which has a step inside."""
    inner = getattr(type(network), "as_train_step", None)
    return ForeignStep(network) if inner is None else inner(network)


def held_step(cell: Network) -> TrainStep | None:
    """Return the step that a train cell holds; None for any other network."""
    step = vars(cell).get("_step")
    return step if isinstance(step, TrainStep) else None


def unreportable(cell: Network, needs: Collection[str]) -> ValueError:
    """Return the error for tensors that a user's own step, or a user's own network with loss, cannot report."""
    return checks.fail_value(
        "Model.train", f"what a callback needs is known of Model(network, loss_fn, optimizer) alone, not of a "
        f"{type(cell).__name__} with a construct of its own", checks.join_names(sorted(needs)),
        "Model(network, loss_fn, optimizer), or needs = frozenset() in the callback",
    )
