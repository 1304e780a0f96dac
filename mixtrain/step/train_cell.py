"""The train cells: a network with its loss and its optimizer, one call a step."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Final, Literal

import keras

from mixtrain import backend, checks, context
from mixtrain.boundary import is_any_tensor, library
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter
from mixtrain.common.referenced_layers import referenced_variables
from mixtrain.distribution.data_parallel import DataParallel, in_force
from mixtrain.distribution.processes import ProcessParallel, all_rows, batch_rows, share_values
from mixtrain.dtype import float32
from mixtrain.loss_scale.step_scale import StepScale
from mixtrain.network.walk import tree_of
from mixtrain.ops.gradient import GradOperation
from mixtrain.ops.hyper_map import HyperMap
from mixtrain.optim.adapter import drive
from mixtrain.precision.formats import choose_step_jit
from mixtrain.seed import stream_states
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.grad_reducer import DistributedGradReducer
from mixtrain.step.gradient_window import GradientWindow
from mixtrain.step.loss_cell import WithLossCell, sums_rows
from mixtrain.step.recipe import AppliedBatches, Scaling, StepResult, run_step

_log = logging.getLogger("mixtrain")
# What a step can tell beside scalars, where a callback asks for it.
Need = Literal["gradients", "predictions"]
# And what it tells where it is to be known why a step overflowed, if the step is not of the user's own making.
NON_FINITE: Final = "non_finite_counts"


class TrainOneStepCell(Cell):
    """A network with its loss and its optimizer: a call trains on one batch and returns the loss.

    Called from outside any other cell in GRAPH_MODE, a step is compiled. Subclasses may define `construct` anew with
    ``self.network, self.optimizer, self.weights, self.grad, self.grad_reducer, self.sens``.

    Args:
        network: Returns the loss; a Cell.
        optimizer: A mixtrain or Keras optimizer.
        sens: What the loss is multiplied by before gradients are taken; the optimizer divides (``loss_scale=sens``;
            a Keras optimizer is given divided gradients). None for 1, or a Keras optimizer's `loss_scale_factor`.
        return_grad: Whether a call returns ``(loss, {name: gradient})``.

    Raises:
        TypeError: `optimizer` is no optimizer.
        ValueError: `sens` is 0, there is no parameter to train, or it is made for several devices with a `construct` of
            its own, or for several processes with Keras layers that are synchronized.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> step = TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5))
        >>> float(step(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))), net.weight.asnumpy().tolist()
        (4.0, [[2.0]])

    Source: MindSpore, `mindspore.nn.TrainOneStepCell`.
    """

    compiles_itself: ClassVar[bool] = True

    def __init__(self, network: Any, optimizer: Any, sens: float | None = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        driver = drive(optimizer)
        object.__setattr__(self, "driver", driver)
        if sens == 0:
            raise checks.fail_value("TrainOneStepCell", "sens must not be 0", sens, "sens=1.0")
        if sens is None:
            sens = driver.own_scale
        self.sens = 1.0 if sens is None else sens
        self.return_grad = return_grad
        object.__setattr__(self, "weights", driver.select(network.trainable_params()))
        if not self.weights:
            raise checks.fail_value(
                type(self).__name__, "there must be parameters to train", "none",
                "requires_grad=True for some, and build a Keras network first",
            )
        driver.build(self.weights)
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.sense_flag = sens is not None
        object.__setattr__(self, "_compiled", {})
        object.__setattr__(self, "_reports", None)
        object.__setattr__(self, "_observer", None)
        object.__setattr__(self, "_needs", frozenset())
        object.__setattr__(self, "window", None)
        object.__setattr__(self, "_ending", None)
        parallel = in_force()
        whole = parallel is not None and self._takes_joint_batch(parallel)
        object.__setattr__(self, "_parallel", parallel)
        replicas = None if parallel is None else parallel.replicas(self._likely_written, whole)
        object.__setattr__(self, "_replicas", replicas)
        # For a construct of the user's own; the recipe reduces what its replicas return.
        self.reducer_flag = isinstance(parallel, ProcessParallel)
        self.grad_reducer: Callable[[Any], Any] = lambda gradients: gradients
        if isinstance(parallel, ProcessParallel):
            self.grad_reducer = DistributedGradReducer(self.weights, parallel.gradients_mean)
            share_values([*self.weights, *self.network_state(), *driver.state_variables()])

    # ---- calling ----------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if backend.is_tracing() or not context.graph_mode() or kwargs:
            return super().__call__(*args, **kwargs)
        if self.training not in self._compiled:
            step = super().__call__
            self._compiled[self.training] = CompiledCall(step, self.network, lambda: self.jit_choice(self.network))
        return self._compiled[self.training](*args)

    def construct(self, *inputs: Any) -> Any:
        """Train on one batch; return the loss, or with `return_grad` also the gradients by name."""
        found: list[Any] = []
        result = self._reported(self.step(inputs, self.scaling(), watch=found.extend if self.return_grad else None))
        if not self.return_grad:
            return result.loss
        names = [weight.name for weight in self.weights]
        return result.loss, dict(zip(names, found, strict=True))

    def scaling(self) -> Scaling | None:
        """Return how the loss is scaled: by `sens`, which the optimizer takes out again."""
        if not self.sense_flag:
            return None
        return Scaling(
            loss_scale=lambda: keras.ops.cast(self.sens, "float32"),
            divides=not self.driver.divides_by_loss_scale,
            rollback=None,
            advance=lambda finite: None,
        )

    def step(
        self, inputs: Sequence[Any], scaling: Scaling | None, watch: Callable[[list[Any]], None] | None = None
    ) -> StepResult:
        """Run the recipe on one batch.

        Args:
            inputs: The columns of the batch.
            scaling: How the loss is scaled.
            watch: Shown the gradients that the optimizer gets.

        Returns:
            The `StepResult`.
        """

        def apply(gradients: list[Any]) -> None:
            if watch is not None:
                watch(gradients)
            self.driver.apply(gradients, self.weights)

        observed = self._observer is not None and isinstance(self.network, WithLossCell)
        seen = observed or "predictions" in self._needs
        return run_step(
            self.network.seen if seen else self.network,
            inputs,
            self.weights,
            apply=apply,
            written=self.driver.state_variables(),
            scaling=scaling,
            auxiliary=seen,
            observer=self._observer if observed else None,
            replicas=self._replicas,
            reduce_dtype=float32 if self._replicas is None else self._parallel.reduce_dtype,
            gradients_mean=(self._parallel is None and self.window is None) or (
                (self._parallel is None or self._parallel.gradients_mean) and not sums_rows(self.network)
            ),
            window=self.window,
            rows=lambda: (all_rows if isinstance(self._parallel, ProcessParallel) else batch_rows)(inputs),
        )

    def accumulate(self, steps: int) -> None:
        """Let the optimizer be given the mean gradient of so many batches, not that of each."""
        object.__setattr__(self, "window", GradientWindow(steps, self.weights) if steps > 1 else None)

    def end_window(self) -> None:
        """Apply the gradients of the batches that do not fill a window, as at the end of an epoch."""
        if self.window is None:
            return
        if self._ending is None:

            def ending() -> Any:
                self.window.end(lambda gradients: self.driver.apply(gradients, self.weights))
                return backend.snapshot(self.window.counts)

            choice = functools.partial(self.jit_choice, self.network)
            object.__setattr__(self, "_ending", CompiledCall(ending, self.network, choice))
        self._ending.run()

    def _takes_joint_batch(self, parallel: DataParallel | ProcessParallel) -> bool:
        """Return whether layers have statistics of the joint batch; refuse what would not mean what its writer means.

        Raises:
            ValueError: A step of the user's own, which reduces nothing; a synchronized Keras layer, in processes.
        """
        where, count = type(self).__name__, f"{parallel.count} devices"
        if isinstance(parallel, DataParallel) and not self._steps_as_written_here():
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
        """Whether it was made for several devices."""
        return self._parallel is not None

    def jit_choice(self, network: Any) -> backend.JitChoice:
        """Return how a step is compiled for what a network, this cell or the one inside, computes in now."""
        choice = choose_step_jit(network)
        return choice if self._replicas is None else self._replicas.jit_choice(choice)

    def observe(self, observer: AppliedBatches | None) -> None:
        """Let every batch of the network with its loss that is applied be taken in, as a `SeenBatch`; None ends it."""
        object.__setattr__(self, "_observer", observer)

    def run_with_report(self, *inputs: Any, needs: Collection[str] = ()) -> tuple[Any, dict[str, Any]]:
        """Train on one batch, inside a function that is being compiled.

        Args:
            *inputs: The columns of the batch.
            needs: What else to tell of the step.

        Returns:
            What a call returns; and tensors by name, which it leaves out: "learning_rate" that the step was made with,
            where the optimizer has one; "counter", what `driver.counter` holds after it; "grad_norm", where the step is
            not a subclass's own; "metrics", what the observer tells, by name; "gradients", by the names of the
            weights, "predictions", the network's outputs, and "non_finite_counts", how many values of
            that of each weight are not finite, int32 (weights,), where they are needed.

        Raises:
            ValueError: This cell cannot tell what is needed.
        """
        self._check_needs(needs)
        found: dict[str, Any] = {}
        rate = self.driver.learning_rate
        if rate is not None:
            found["learning_rate"] = keras.ops.reshape(keras.ops.cast(rate, "float32"), ())
        object.__setattr__(self, "_reports", [])
        object.__setattr__(self, "_needs", frozenset(needs))
        try:
            outputs = self(*inputs)
            for result in self._reports:
                found |= {"grad_norm": result.grad_norm, **self._needed(result)}
            metrics = {} if self._observer is None else self._observer.results()
            if metrics:
                found["metrics"] = metrics
        finally:
            object.__setattr__(self, "_reports", None)
            object.__setattr__(self, "_needs", frozenset())
        return outputs, {**found, "counter": backend.snapshot(self.driver.counter)}

    def _reported(self, result: StepResult) -> StepResult:
        """Let `run_with_report` know a result of the library's own step.

        A subclass's `construct` may call this one in a branch, whose tensors cannot leave it.
        """
        if self._reports is not None and self._steps_as_written_here():
            self._reports.append(result)
        return result

    def _steps_as_written_here(self) -> bool:
        return type(self).construct in (TrainOneStepCell.construct, TrainOneStepWithLossScaleCell.construct)

    def _check_needs(self, needs: Collection[str]) -> None:
        """Refuse needs that a step of the user's own, or a network with a loss of the user's own, cannot meet."""
        who = self if not self._steps_as_written_here() else self.network
        needs = set(needs) - {NON_FINITE}
        if needs and (who is self or ("predictions" in needs and not isinstance(who, WithLossCell))):
            raise checks.fail_value(
                "Model.train", f"what a callback needs is known of Model(network, loss_fn, optimizer) alone, not of a "
                f"{type(who).__name__} with a construct of its own", checks.listed(sorted(needs)),
                "Model(network, loss_fn, optimizer), or needs = frozenset() in the callback",
            )

    def _needed(self, result: StepResult) -> dict[str, Any]:
        """Return what `run_with_report` was asked for beside the scalars."""
        found: dict[str, Any] = {}
        if "gradients" in self._needs:
            pairs = zip(self.weights, result.gradients, strict=True)
            found["gradients"] = {
                weight.name if isinstance(weight, Parameter) else weight.path: backend.densified(gradient)
                for weight, gradient in pairs
                if gradient is not None
            }
        if "predictions" in self._needs:
            found["predictions"] = result.auxiliary.outputs
        if NON_FINITE in self._needs and result.overflow is not None:
            found[NON_FINITE] = backend.non_finite_counts(result.gradients, keras.ops.logical_not(result.overflow))
        return found

    def _likely_written(self) -> list[keras.Variable]:
        """Return what a forward pass may write; only eagerly it is not seen whether it writes weights (as norms do)."""
        return self.network_state() if backend.is_tracing() else [*self.network_state(), *self.weights]

    def network_state(self) -> list[keras.Variable]:
        """Return the variables of the network and its loss that no gradient is taken of, random states among them."""
        others = {id(variable) for variable in (*self.weights, *self.driver.state_variables())}
        found = [*referenced_variables([self.network]), *stream_states()]
        return [variable for variable in found if id(variable) not in others]

    def set_sens(self, value: float) -> None:
        """Change what the loss is multiplied by."""
        self.sens = value
        self.sense_flag = True
        self._compiled.clear()


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """As `TrainOneStepCell`, with loss scaling: overflowing steps are skipped, and the scale moves.

    Args:
        network: Returns the loss; a Cell.
        optimizer: A mixtrain or Keras optimizer.
        scale_sense: A loss-scale update cell, or a scalar tensor for a constant loss scale.

    Raises:
        TypeError: `scale_sense` is neither.
        ValueError: A tensor that is not a scalar; an optimizer with a `loss_scale_factor`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> step = TrainOneStepWithLossScaleCell(
        ...     nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5),
        ...     nn.DynamicLossScaleUpdateCell(1024, 2, 2000))
        >>> loss, overflow, scale = step(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))
        >>> float(loss), bool(overflow), float(scale), net.weight.asnumpy().tolist()
        (4.0, False, 1024.0, [[2.0]])

    Source: MindSpore, `mindspore.nn.TrainOneStepWithLossScaleCell`.
    """

    def __init__(self, network: Any, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        if self.driver.own_scale not in (None, 1.0):
            raise checks.fail_value(
                type(self).__name__, "the loss must be scaled once, by scale_sense",
                f"loss_scale_factor={self.driver.own_scale:g} in the optimizer",
                f"{type(optimizer).__name__}(...) without it",
            )
        scale = StepScale("TrainOneStepWithLossScaleCell", scale_sense)
        object.__setattr__(self, "_scale", scale)
        object.__setattr__(self, "state", scale.state)
        object.__setattr__(self, "scale_sense", scale.variable)
        object.__setattr__(self, "_user_update", scale.update)
        object.__setattr__(self, "_rollback", backend.Rollback(self._likely_written))
        # For a construct of the user's own.
        object.__setattr__(self, "hyper_map", HyperMap())
        object.__setattr__(self, "loss_scaling_manager", scale_sense if isinstance(scale_sense, Cell) else None)

    def construct(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """Train on one batch; return ``(loss, overflow, loss_scale)``, the scale being the one that was used."""
        result = self._reported(self.step(inputs, self.scaling()))
        return result.loss, result.overflow, result.loss_scale

    def scaling(self) -> Scaling:
        """Return how the loss is scaled: by the live scale, skipping steps that overflow."""
        return Scaling(
            loss_scale=lambda: backend.snapshot(self.scale_sense), divides=True, rollback=self._rollback,
            advance=self.advance,
        )

    def advance(self, finite: Any) -> None:
        """Move the loss scale and the counts by one step."""
        self._scale.advance(finite)

    def set_sense_scale(self, sens: Any) -> None:
        """Set the loss scale of the next step.

        Args:
            sens: A scalar tensor.

        Raises:
            TypeError: `sens` is not a tensor.
            ValueError: It is not a scalar.
        """
        if not is_any_tensor(sens):
            raise checks.fail_type("set_sense_scale", "sens must be a scalar tensor", sens, "mixtrain.Tensor(1024.0)")
        self.scale_sense.assign(keras.ops.cast(self._scale.scalar(sens), "float32"))

    # ---- for subclasses that write their own construct ----------------------------------------------------------
    @library
    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """Return ``(status, compute_input)``; nothing needs to start here, the gradients themselves tell.

        A variable, such as `scale_sense`, is returned as the value that it has now.
        """
        return pre_cond, backend.snapshot(compute_input) if isinstance(compute_input, keras.Variable) else compute_input

    @library
    def get_overflow_status(self, status: Any, compute_output: Any) -> Any:
        """Return a bool scalar: whether some gradient of `compute_output` is not finite, in one of the processes."""
        finite = backend.all_finite(keras.tree.flatten(compute_output))
        if isinstance(self._parallel, ProcessParallel):
            finite = backend.all_reduce([keras.ops.cast(finite, "int32")], "min")[0] > 0
        return keras.ops.logical_not(finite)

    @library
    def process_loss_scale(self, overflow: Any) -> Any:
        """Move the loss scale by one step; return `overflow`."""
        self.advance(keras.ops.logical_not(overflow))
        return overflow
