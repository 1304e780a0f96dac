"""`Graph`: OneFlow's `nn.Graph`, a compiled step of training or evaluation."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NoReturn

import keras
import numpy as np

from mixtrain import backend, boundary, checks, execution
from mixtrain.cell.cell import Cell
from mixtrain.compat.oneflow.graph_config import GraphConfig
from mixtrain.compat.oneflow.graph_optimizers import GraphOptimizers
from mixtrain.compat.pytorch.grad_scaler import GradScaler
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.walk import all_built, tree_of
from mixtrain.optim.optimizer import Optimizer
from mixtrain.precision.apply import under_plan
from mixtrain.precision.dtypes import choose_step_jit
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planner import plan_precision
from mixtrain.seed import stream_states
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.recipe import Recipe, Scaling
from mixtrain.typing import Network, Tensor, Variable


class Graph(Cell):
    """One step of training or evaluation: a subclass assigns networks in ``__init__`` and defines `build`.

    With an optimizer a call trains: the networks are in training mode, `build` calls ``self.backward(loss)``, and the
    gradients are computed, checked and applied after it. Without one, a call evaluates in inference mode. Outside the
    graph, the networks keep their own mode and precision.

    Attributes:
        config: The settings of the graph; ``self.config.enable_amp(True)`` for mixed precision.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> class TrainGraph(nn.Graph):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.net, self.loss_fn = net, nn.MSELoss()
        ...         self.add_optimizer(nn.SGD(net.trainable_params(), 0.5))
        ...     def build(self, x, y):
        ...         loss = self.loss_fn(self.net(x), y)
        ...         self.backward(loss)
        ...         return loss
        >>> step = TrainGraph()
        >>> float(step(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))), net.weight.asnumpy().tolist()
        (4.0, [[2.0]])

    Source: OneFlow, `oneflow.nn.Graph`.
    """

    compiles_itself: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(auto_prefix=False)
        self.config = GraphConfig(self.cls_name)
        self._optimizers = GraphOptimizers(self.cls_name)
        self._scaler: GradScaler | None = None
        self._losses: list[Any] | None = None
        self._compiled: CompiledCall | None = None
        self._rollback = backend.Rollback(self._state)

    # ---- methods for subclasses --------------------------------------------------------------------------------
    def build(self, *inputs: Any) -> Any:
        """Compute the outputs of a step; a subclass defines it.

        Args:
            *inputs: The inputs of the call.

        Raises:
            NotImplementedError: The subclass does not.
        """
        raise NotImplementedError(
            f"{self.cls_name}: a Graph must define its step. Write def build(self, x, y): ..., with "
            "self.backward(loss) where it trains."
        )

    def add_optimizer(
        self, optim: Optimizer, *, lr_sch: Any = None, parameters: Sequence[Variable] | None = None
    ) -> None:
        """Add an optimizer, so that calls of the graph train.

        Args:
            optim: A mixtrain or Keras optimizer.
            lr_sch: The learning rate by step: a mixtrain or Keras schedule, or a list; None for the optimizer's own.
            parameters: The variables that a Keras optimizer trains; None for all of the graph.

        Raises:
            TypeError: `optim` is not an optimizer.
            ValueError: It divides by a loss scale of its own, or the graph was called already.
        """
        self.config.check_open("add_optimizer")
        self._optimizers.add(optim, lr_sch, parameters)
        for cell in (optim, self._optimizers.parts[-1].schedule):
            if isinstance(cell, Cell):
                kind = "optimizer" if cell is optim else "schedule"
                setattr(self, f"{kind}_{len(self._optimizers.parts) - 1}", cell)

    def set_grad_scaler(self, grad_scaler: GradScaler | None = None) -> None:
        """Scale the loss, and skip steps whose gradients are not finite.

        Args:
            grad_scaler: The scaler; None for no scaling.

        Raises:
            TypeError: It is not an `amp.GradScaler`.
            ValueError: The graph was called already.
        """
        self.config.check_open("set_grad_scaler")
        if grad_scaler is not None:
            where = f"{self.cls_name}.set_grad_scaler"
            checks.instance(where, "grad_scaler", grad_scaler, GradScaler, "amp.GradScaler(init_scale=2.0**12)")
        self._scaler = grad_scaler

    def backward(self, loss: Tensor) -> None:
        """Set the loss to differentiate, inside `build`; gradients are computed and applied after `build`.

        Args:
            loss: A float scalar; a scaler scales it.

        Raises:
            RuntimeError: Outside of `build`, a second time, or without an optimizer.
            ValueError: `loss` is not a scalar tensor.
        """
        if self._losses is None:
            self._refuse("a call inside build", "one outside of it", "self.backward(loss) in build")
        if not self._optimizers.parts:
            self._refuse("an optimizer", "a graph without one", "self.add_optimizer(optimizer) in __init__")
        if self._losses:
            self._refuse("one call in a step", "a second one", "self.backward(first_loss + second_loss)")
        if not backend.is_tensor(loss):
            raise checks.fail_value(
                f"{self.cls_name}.backward", "the loss must depend on parameters", loss,
                "self.backward(loss) with a loss that is computed from the network's outputs",
            )
        if int(np.prod(loss.shape)) != 1:
            raise checks.fail_value(
                f"{self.cls_name}.backward", "loss must be a scalar", f"shape {tuple(loss.shape)}",
                'reduction="mean" in the loss, or self.backward(ops.reduce_mean(loss))',
            )
        self._losses.append(keras.ops.reshape(loss, ()))

    def _refuse(self, expected: str, got: str, write: str) -> NoReturn:
        raise RuntimeError(f"{self.cls_name}.backward: expected {expected}; got {got}. Write {write}.")

    def precision_report(self) -> dict[str, PrecisionPlan]:
        """Return the plan of each network by attribute name; none without ``enable_amp``."""
        if self.config.half is None:
            return {}
        return {
            name: plan_precision(network, "O2", cast_model_type=self.config.half)
            for name, network in self._networks().items()
        }

    # ---- calling ------------------------------------------------------------------------------------------------
    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if type(self).build is Graph.build:
            self.build()
        returns_tensors = boundary.wants_tensors(inputs, named)
        results = self._run_step(boundary.to_backend_tensors(self._positional(inputs, named)))
        return boundary.to_tensors(results) if returns_tensors else results

    def _run_step(self, values: tuple[Any, ...]) -> Any:
        self._prepare(values)
        if backend.is_tracing() or not execution.current.graph_mode:
            return super().__call__(*values)
        if self._compiled is None:
            self._compiled = CompiledCall(super().__call__, self, choice=self._jit_choice)
        return self._compiled(*values)

    def _jit_choice(self) -> backend.JitChoice:
        with self._mode_and_precision():
            return choose_step_jit(self)

    def _positional(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return the inputs in the order of build's parameters, arrays as tensors."""
        if named:
            bound = inspect.signature(self.build).bind(*inputs, **named)
            if bound.kwargs:
                raise checks.fail_type(
                    self.cls_name, "build must take its inputs by position", tuple(bound.kwargs),
                    "def build(self, x, y) without * and **",
                )
            inputs = bound.args
        return keras.tree.map_structure(  # type: ignore[no-any-return]
            lambda value: backend.to_tensor(value) if isinstance(value, np.ndarray) else value, inputs
        )

    def construct(self, *inputs: Any) -> Any:
        """Run one step; return what `build` returns."""
        with self._mode_and_precision():
            if not self._optimizers.parts:
                return self._run_build(inputs)[0]

            def loss_of(*inputs: Any) -> Any:
                output, loss = self._run_build(inputs)
                return loss, output

            recipe = Recipe(
                loss_of, self._optimizers.weights, apply=self._optimizers.apply,
                written=self._optimizers.state_variables(), scaling=self._scaling(), auxiliary=True,
            )
            return recipe.run(inputs).auxiliary

    def _run_build(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Run `build`; return its outputs and the loss passed to `backward`, None in a graph that evaluates."""
        outer, self._losses = self._losses, []
        try:
            outputs = boundary.run_users(backend.branching(self.build), tuple(inputs), {})
            losses = self._losses
        except AttributeError as error:
            if error.name != "backward" or not backend.is_tensor(error.obj):
                raise
            raise RuntimeError(
                f"{self.cls_name}.build: expected self.backward(loss); got loss.backward(). A tensor does not know the "
                "graph that it is computed in. Write self.backward(loss)."
            ) from error
        finally:
            self._losses = outer
        if self._optimizers.parts and not losses:
            raise RuntimeError(
                f"{self.cls_name}: expected build of a graph with an optimizer to call self.backward; got none. Write "
                "self.backward(loss), or no add_optimizer for a graph that evaluates."
            )
        return boundary.to_backend_tensors(outputs), boundary.to_backend_tensors(losses[0]) if losses else None

    def _scaling(self) -> Scaling | None:
        if self._scaler is None or not self._scaler.is_enabled():
            return None
        state = self._scaler.state
        return Scaling(
            loss_scale=lambda: backend.snapshot(state.loss_scale), divides=True, rollback=self._rollback,
            advance=state.advance,
        )

    # ---- state --------------------------------------------------------------------------------------------------
    def _prepare(self, inputs: Sequence[Any]) -> None:
        """Create the variables of Keras layers and optimizers, before the first call."""
        if self.config.fixed:
            return
        with backend.eager_scope():
            if not all_built(self):
                self._run_once(inputs)
            trained = [weight for network in self._trained_cells() for weight in network.trainable_params()]
            self._optimizers.assign_weights(trained)
        self.config.fixed = True

    def _run_once(self, inputs: Sequence[Any]) -> None:
        """Run `build` in inference mode, so that Keras layers create their variables."""
        with _mode([cell for _, cell in self.cells_and_names()], training=False):
            self._run_build(inputs)

    def _trained_cells(self) -> list[Any]:
        schedules = [part.schedule for part in self._optimizers.parts]
        return [cell for cell in self.cells() if not isinstance(cell, Optimizer) and cell not in schedules]

    def _networks(self) -> dict[str, Network]:
        """Return the networks by attribute name: cells with parameters that are in no other of these cells."""
        networks = {
            name: getattr(cell, "keras_layer", cell) for name, cell in self.name_cells().items()
            if cell in self._trained_cells() and any(True for _ in cell.get_parameters())
        }
        inner = {id(node.layer) for network in networks.values() for node in list(tree_of(network).walk())[1:]}
        return {name: network for name, network in networks.items() if id(network) not in inner}

    def _state(self) -> list[keras.Variable]:
        """Return the variables that `build` may assign; whether it assigns weights, a trace shows by itself."""
        variables = {id(item): item for item in (*referenced_variables(self._trained_cells()), *stream_states())}
        excluded = {id(weight) for weight in self._optimizers.weights} if backend.is_tracing() else ()
        return [variable for key, variable in variables.items() if key not in excluded]

    @contextlib.contextmanager
    def _mode_and_precision(self) -> Iterator[None]:
        """Run a block with the networks in the graph's mode and precision."""
        networks = self._networks() if self.config.half is not None else {}
        with contextlib.ExitStack() as stack:
            for name, plan in self.precision_report().items():
                stack.enter_context(under_plan(networks[name], plan))
            cells = [cell for _, cell in self.cells_and_names()]
            stack.enter_context(_mode(cells, training=bool(self._optimizers.parts)))
            yield


@contextlib.contextmanager
def _mode(cells: Sequence[Any], *, training: bool) -> Iterator[None]:
    """Run a block with cells in training or inference mode."""
    previous = [(cell, cell.training) for cell in cells]
    try:
        for cell in cells:
            object.__setattr__(cell, "training", training)
        yield
    finally:
        for cell, mode in previous:
            object.__setattr__(cell, "training", mode)
