"""`Networks`: the train, eval and predict networks of a `Model`, with its precision plan applied."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks, faces
from mixtrain.distribution.data_parallel import DataParallel, in_force, joint_devices, putting_in_force
from mixtrain.loss_scale.manager import DynamicLossScaleManager, LossScaleManager
from mixtrain.network.keras_own import own_steps
from mixtrain.network.unique_names import variable_names
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.precision.apply import under_plan
from mixtrain.precision.float8_layers import refuse_delayed
from mixtrain.precision.planner import plan_precision
from mixtrain.step.network_loss import NetworkLoss
from mixtrain.step.own_loss import computes_loss
from mixtrain.step.scaling_choice import (
    LEVEL_DEFAULT,
    check_manager,
    default_manager,
    saturates,
    warn_unscaled,
    watching_manager,
)
from mixtrain.step.train_step import ForeignStep, Step, TrainStep, scaled_step, step_of, trainable_variables
from mixtrain.train.feed import DictBatches, dicts_of
from mixtrain.train.plan_in_force import PlanInForce, PrecisionOptions
from mixtrain.train.training_metrics import TrainingMetrics
from mixtrain.typing import LossFn, Network, Optimizer, Tensor, TensorLike


class Networks:
    """The train, eval and predict networks of a Model, built once; `CompiledNetworks` compiles them.

    `network`: A Cell or Keras model. `loss_fn`: Takes ``(outputs, label)``, or None. `optimizer`: A mixtrain or Keras
    optimizer, or None. `eval_network`: Returns the inputs of the metrics; None for the network with its loss.
    `options`: How precision is planned. `manager`: The loss-scale manager, None for none, or the level's default.
    `loss_weights`: Factors of the losses, as for `WithLossCell`. `observer`: The metrics that training updates, or
    None. `accumulate_steps`: Number of batches per update. `watched`: Whether steps that are not finite are skipped
    without a manager too, by a constant scale of 1.

    Attributes:
        network: As passed; it predicts.
        loss_fn: The loss, or None.
        optimizer: The optimizer, or None.
        manager: The manager in use, or None.
        manager_by_default: Whether the manager is the level's default.
        precision: The plan.
        sample_weight: Whether a batch's third column is its sample weights.
        observer: The metrics that training updates, or None.
    """

    def __init__(
        self, network: Network, loss_fn: LossFn | None, optimizer: Optimizer | None, eval_network: Network | None,
        options: PrecisionOptions, manager: Any, loss_weights: Any = None, sample_weight: bool = False,
        observer: TrainingMetrics | None = None, accumulate_steps: int = 1, watched: bool = False,
    ) -> None:
        _check_network("network", network)
        if eval_network is not None:
            _check_network("eval_network", eval_network)
        self.network = network
        self.loss_fn = loss_fn
        self._loss_weights, self.sample_weight = loss_weights, checks.boolean("Model", "sample_weight", sample_weight)
        # A network that overrides `compute_loss` may have sample weights without a loss.
        needs_loss = sample_weight and not computes_loss(network)
        for name, value in (("loss_weights", loss_weights), ("sample_weight", needs_loss or None)):
            if loss_fn is None and value is not None:
                raise checks.fail_value("Model", f"{name} needs a loss_fn", value, "Model(network, loss_fn, optimizer)")
        self.optimizer = optimizer
        self._accumulate_steps, self._watched, self._update = accumulate_steps, watched, options.storage.update
        self.observer = observer if optimizer is not None and observer is not None and observer.observes else None
        self._user_eval_network = eval_network
        for name, value in (("master_weights", options.storage.masters), ("low_precision_update", self._update)):
            if optimizer is None and value is not None:
                example = "Model(network, loss_fn, optimizer, ...)"
                raise checks.fail_value("Model", f"{name} needs an optimizer", value, example)
        self.precision = PlanInForce(network, options)
        self.manager_by_default = manager is LEVEL_DEFAULT
        if manager is LEVEL_DEFAULT:
            manager = default_manager(self.precision.plan, optimizer) if optimizer is not None else None
        self.manager: LossScaleManager | None = manager
        self._parallel = in_force()
        if optimizer is not None:
            check_manager("Model", manager, optimizer)
        elif manager is not None:
            raise checks.fail_value(
                "Model", "loss_scale_manager needs an optimizer", manager, "Model(network, loss_fn, optimizer, ...)"
            )
        elif step_of(network).driver is not None and options.amp_level != "O0":
            raise checks.fail_value(
                "Model", "amp_level of a network that is its own train step must be O0", options.amp_level,
                f'amp.auto_mixed_precision(network, "{options.amp_level}") before the train step is made of it',
            )

    @property
    def of_cells(self) -> bool:
        """Whether the network is a Cell, whose outputs are shown as Tensors."""
        return not isinstance(self.network, keras.Layer)

    @property
    def dicts(self) -> DictBatches:
        """What a batch that is a dict holds, to train or predict."""
        return dicts_of(self.network)

    @property
    def eval_dicts(self) -> DictBatches:
        """What a batch that is a dict holds, to evaluate."""
        return dicts_of(self.network if self._user_eval_network is None else self._user_eval_network)

    @property
    def built(self) -> bool:
        """Whether every Keras layer has its variables."""
        return self.precision.inputs.built

    def build(self, *inputs: TensorLike) -> None:
        """Build every Keras layer by running the network on one sample, and make the cells.

        `*inputs`: The network's inputs, tensors (N, ...).
        """
        self.build_layers(*inputs)
        self.step  # noqa: B018  (made now, so that its errors are raised before any step)

    def build_layers(self, *inputs: TensorLike) -> None:
        """Build every Keras layer, and apply the plan."""
        if not self.built:
            # What the call writes is dropped, as where Keras builds a network: random states, statistics, metrics.
            with keras.StatelessScope():
                try:
                    self.network(*keras.tree.map_structure(lambda column: column[:1], inputs))
                except Exception:  # Rows may belong together, as the nodes of a graph.
                    self.network(*inputs)
        self.precision.apply()

    @property
    def in_processes(self) -> bool:
        """Whether it trains together with other processes."""
        return self._parallel is not None and self._parallel.spans_processes

    @property
    def joint(self) -> Any:
        """The devices that this process and others train joint batches on; None where there are none."""
        return joint_devices(self._parallel)

    @property
    def own_loss(self) -> bool:
        """Whether the network is a Keras one that computes its loss itself."""
        return self.loss_fn is None and isinstance(self.network, keras.Layer)

    def check_trains(self, where: str) -> None:
        """Check that the Model can be trained.

        `where`: The caller, for errors.

        Raises: ValueError if there is no optimizer, and the network is not a Cell that can be its own train step, on
        several devices if the Model was made for them; or it has steps of its own, which Keras's loops run.
        """
        own = own_steps(self.network)
        if own:
            raise checks.fail_value(
                where, f"the step must be mixtrain's, and {type(self.network).__name__} has its own", own,
                "model.fit(...), or the network without them",
            )
        network, trained = self.network, getattr(vars(self).get("step"), "weights", None)  # Of when the step was made.
        if isinstance(network, keras.Model) and network.built and not (trained or network.trainable_weights):
            raise checks.fail_value(
                where, "the network must have trainable weights", network.trainable_weights, "layer.trainable = True"
            )
        if self.optimizer is None and (self.loss_fn is not None or self.own_loss):
            raise checks.fail_value(
                where, "the Model must have an optimizer to train", None, "Model(network, loss_fn, optimizer)"
            )
        if self.optimizer is None and isinstance(self._parallel, DataParallel) and self.step.parallel is None:
            raise checks.fail_value(
                where, "a network that is its own train step must be a TrainOneStepCell made inside data_parallel",
                self.network, "Model(network, loss_fn, optimizer), or the Model outside of data_parallel",
            )

    def check_alone(self, where: str) -> None:
        """Check that this process may run steps alone. Raises: ValueError if other processes have parts of them."""
        if self.joint is not None:
            raise checks.fail_value(
                where, "the devices of the keras.distribution must be those of this process", "those of several",
                "the same call in a script of one process",
            )

    @property
    def _returns_loss(self) -> bool:
        """Whether the network is a Cell that returns its loss, or trains itself."""
        return self.loss_fn is None and not self.own_loss

    @functools.cached_property
    def network_loss(self) -> NetworkLoss:
        """The network with its loss."""
        return NetworkLoss(self.network, self.loss_fn, self._loss_weights)

    @functools.cached_property
    def step(self) -> Step:
        """The step that trains on a batch; without an optimizer, the network itself."""
        if self.optimizer is None:
            # Made now, so that its errors are raised here.
            step = step_of(self.network) if self._returns_loss else ForeignStep(self.network_loss.network)
            if isinstance(step, ForeignStep):
                refuse_delayed("Model", self.precision.plan)
            return step
        self.precision.apply()
        if self.manager_by_default and self.manager is None:
            # Layers that were created by building the network may have a dtype policy of their own.
            self.manager = default_manager(self.precision.plan, self.optimizer)
            if self.manager is None:
                warn_unscaled("Model", self.precision.plan, self.optimizer)
        if self._watched and self.manager is None:
            self.manager = watching_manager(self.optimizer)
        with putting_in_force(self._parallel):
            loss = self.network if self._returns_loss else self.network_loss
            step = scaled_step(loss, self.optimizer, self.manager, self._update)
        step.observe(self.observer)
        step.accumulate(self._accumulate_steps)
        return step

    @functools.cached_property
    def train_network(self) -> Network:
        """The step as the cell that scripts see; without an optimizer, the network itself, with its loss if any."""
        if isinstance(self.step, TrainStep) and self.optimizer is not None:
            return faces.face("train_cell", self.step)
        return self.network if self._returns_loss else faces.face("loss_cell", self.network_loss)

    @functools.cached_property
    def eval_network(self) -> Network:
        """The cell that scripts see, whose outputs the metrics are computed from."""
        network = self._user_eval_network
        return faces.face("eval_cell", self.network_loss) if network is None else network

    @property
    def evaluated(self) -> NetworkLoss | Network:
        """What is evaluated: the network with its loss, or an eval network of the user's."""
        return self.network_loss if self._user_eval_network is None else self._user_eval_network

    @property
    def scaled(self) -> bool:
        """Whether the three outputs of a step are ``(loss, overflow, loss_scale)``."""
        return self.step.scale is not None

    @property
    def finds_scale(self) -> bool:
        """Whether a run finds its first loss scale on the first batch, as nobody chose one, and none has yet."""
        manager = self.manager
        asked = isinstance(manager, DynamicLossScaleManager) and manager.finds_scale
        by_default = self.manager_by_default and not saturates(self.precision.plan)
        if manager is None or not self.scaled or not (asked or by_default):
            return False
        return int(backend.to_numpy(self.step.state.applied_steps)) == 0

    @property
    def loss_scale(self) -> float:
        """The loss scale of the next step; 1 without loss scaling."""
        return float(backend.to_numpy(self.scale_tensor))

    @property
    def scale_tensor(self) -> Tensor | None:
        """`loss_scale` as a scalar tensor, without waiting for the device."""
        scale = self.step.scale
        return backend.to_tensor(np.float32(1)) if scale is None else backend.snapshot(scale.variable)

    def keeping_float32(self, paths: Sequence[str]) -> contextlib.AbstractContextManager[None]:
        """Return a context manager under which layers of `examined` compute in float32, by their paths; "" for all."""
        layers = [node.layer for node in tree_of(self.examined).walk() if node.path in paths]
        return under_plan(self.network, self.precision.keeping_float32(layers))

    def in_float32(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager under which the network computes at O0; the user's `to_float` calls still apply."""
        return under_plan(self.network, plan_precision(self.network, "O0"))

    @property
    def with_loss(self) -> NetworkLoss | Network:
        """The network with its loss, as the step runs it."""
        return self.step.loss if self.optimizer is not None or self._returns_loss else self.network_loss

    @property
    def examined(self) -> Network:
        """The network that diagnostics run layer by layer: the user's, without train step and loss."""
        if self.optimizer is not None or isinstance(self.with_loss, NetworkLoss):
            return self.network
        return getattr(self.with_loss, "backbone_network", self.with_loss)


def checked_accumulation(steps: int, optimizer: Optimizer, on_overflow: str) -> int:
    """Return the number of batches per update; raise an error if another argument excludes several."""
    if checks.integer("Model", "accumulate_steps", steps, at_least=1, example=4) == 1:
        return steps
    own = getattr(optimizer, "gradient_accumulation_steps", None)
    for wrong, needed, write in (
        (optimizer is None, "an optimizer", "Model(network, loss_fn, optimizer, accumulate_steps=4)"),
        (own, "an optimizer without gradient_accumulation_steps", f"accumulate_steps={own} alone"),
        (on_overflow == "retry", 'on_overflow="skip"', 'on_overflow="skip", or accumulate_steps=1'),
    ):
        if wrong:
            raise checks.fail_value("Model", f"accumulate_steps needs {needed}", steps, write)
    return steps


def warn_of_changed_weights(where: str, step: Step) -> None:
    """Warn if weights were frozen, or made trainable, after a train step chose its weights."""
    if step.driver is None:
        return
    layers = [step.loss] if isinstance(step, ForeignStep) else step.layers
    trainable = step.driver.select(trainable_variables(layers))
    before, now = ({id(weight) for weight in weights} for weights in (step.weights, trainable))
    changed = [weight for weight in (*step.weights, *trainable) if (id(weight) in before) != (id(weight) in now)]
    if changed:
        names = checks.join_names(variable_names(changed))
        warnings.warn(
            f"{where}: expected `trainable` and `requires_grad` as they were when Model was created; got changes of "
            f"{names}, which compiled steps ignore. Write Model(...) after setting them.",
            stacklevel=3,
        )


def _check_network(name: str, network: Network) -> None:
    if not isinstance(network, keras.Layer) and not is_cell(network):
        raise checks.fail_type(
            "Model", f"{name} must be a mixtrain.nn.Cell or a keras.Model", network, "a class with nn.Cell as its base"
        )
