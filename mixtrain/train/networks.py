"""The networks of a Model: its plan applied, its train cell and its eval cell built, Keras layers built first."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import keras

from mixtrain import boundary, checks
from mixtrain.amp.train_network import (
    LEVEL_DEFAULT,
    check_manager,
    default_manager,
    host_driven,
    make_train_cell,
    warn_unscaled,
)
from mixtrain.cell.cell import Cell, KerasCell
from mixtrain.dtype import float32
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.network.walk import is_cell
from mixtrain.precision.cast import cast_floats
from mixtrain.precision.plan_inputs import PlanInputs
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.loss_cell import WithEvalCell, WithLossCell
from mixtrain.step.output_losses import is_keras_loss
from mixtrain.step.own_loss import computes_loss, inputs_of, refuse_overridden
from mixtrain.step.train_cell import TrainOneStepCell, TrainOneStepWithLossScaleCell
from mixtrain.train.columns import check_columns_of_loss, check_columns_of_own_loss
from mixtrain.train.evaluation import Evaluation, EvaluationMetrics, with_masks
from mixtrain.train.feed import Feed
from mixtrain.train.plan_in_force import PlanInForce, PrecisionOptions
from mixtrain.train.stepper import Stepper


@dataclasses.dataclass(frozen=True)
class LossOptions:
    """What a Model does with its loss and the columns that the loss takes.

    Attributes:
        weights: What the losses are multiplied by, as `WithLossCell` takes it.
        sample_weight: Whether a batch's third column weighs its samples.
    """

    weights: Any = None
    sample_weight: bool = False


class Networks:
    """What one Model trains, evaluates and predicts with.

    Args:
        network: A Cell or Keras model.
        loss_fn: Takes ``(outputs, label)``, or None.
        optimizer: A mixtrain or Keras optimizer, or None.
        eval_network: Returns what metrics are computed from; None for the network with its loss.
        options: How precision is planned.
        manager: The loss-scale manager, None for none, or the level's default.
        loss: What is done with the loss besides.

    Attributes:
        network: What was given; it predicts.
        loss_fn: The loss, or None.
        optimizer: The optimizer, or None.
        manager: The manager in use, or None.
        precision: The plan.
    """

    def __init__(
        self,
        network: Any,
        loss_fn: Any,
        optimizer: Any,
        eval_network: Any,
        options: PrecisionOptions,
        manager: Any,
        loss: LossOptions = LossOptions(),
    ) -> None:
        _check_network("network", network)
        if eval_network is not None:
            _check_network("eval_network", eval_network)
        self.network = network
        self._cell = KerasCell(network) if isinstance(network, keras.Layer) else network
        self.loss_fn = loss_fn
        self._loss = _checked(loss, loss_fn, network)
        self.optimizer = optimizer
        if optimizer is not None:
            refuse_overridden(network, "train_step")
        self._given_eval = eval_network
        self.precision = PlanInForce(network, options)
        # What `predict` has looked at, and the cells that it tells their mode.
        self._seen: PlanInputs | None = None
        self._cells: list[Cell] = []
        self._by_default = manager is LEVEL_DEFAULT
        if manager is LEVEL_DEFAULT:
            manager = default_manager(self.precision.plan, optimizer) if optimizer is not None else None
        self.manager: LossScaleManager | None = manager
        if optimizer is not None:
            check_manager("Model", manager, optimizer)
        elif manager is not None:
            raise checks.fail_value(
                "Model", "loss_scale_manager needs an optimizer", manager, "Model(network, loss_fn, optimizer, ...)"
            )
        elif isinstance(network, TrainOneStepCell) and options.amp_level != "O0":
            raise checks.fail_value(
                "Model", "amp_level of a network that is its own train step must be O0", options.amp_level,
                f'amp.auto_mixed_precision(network, "{options.amp_level}") before the train step is made of it',
            )

    @property
    def of_cells(self) -> bool:
        """Whether the network is a Cell: those who see its outputs see Tensors."""
        return not isinstance(self.network, keras.Layer)

    def enter(self) -> None:
        """Put this Model's plan in force, should another Model, or `to_float`, have changed the network."""
        self.precision.enter()

    @property
    def built(self) -> bool:
        """Whether every Keras layer has its variables."""
        return self.precision.inputs.built

    def build(self, *inputs: Any) -> None:
        """Give every Keras layer its variables by running the network on one sample, and make the cells.

        Args:
            *inputs: What the network takes, tensors (N, ...).
        """
        if not self.built:
            self.network(*keras.tree.map_structure(lambda column: column[:1], inputs))
        self.enter()
        self.train_network  # noqa: B018  (made now, so that its errors come before any step)

    def check_columns(self, where: str, columns: int, *, training: bool) -> None:
        """Check how many columns a batch has, in training or in an evaluation.

        Raises:
            ValueError: Too few or too many for the loss.
        """
        if self._own_loss:
            check_columns_of_own_loss(where, columns, self.network)
        elif self.loss_fn is not None:
            check_columns_of_loss(where, columns, weighted=self._loss.sample_weight, training=training)

    def build_for(self, batch: tuple[Any, ...]) -> None:
        """Do `build` with what the network takes of a training batch: all columns where a Cell returns its own loss."""
        if self._own_loss:
            self.build(*inputs_of(self.network, batch))
        else:
            self.build(*(batch if self.loss_fn is None else batch[:1]))

    @property
    def _own_loss(self) -> bool:
        """Whether the network is a Keras one that brings its loss itself."""
        return self.loss_fn is None and isinstance(self.network, keras.Layer)

    def check_trains(self, where: str) -> None:
        """Check that a call of `train` or `fit` would train something.

        Args:
            where: Who asks, for errors.

        Raises:
            TypeError: The network is a Keras model with a train step of its own.
            ValueError: There is no optimizer, and the network is not a Cell that may be its own train step.
        """
        refuse_overridden(self.network, "train_step")
        if self.optimizer is None and (self.loss_fn is not None or self._own_loss):
            raise checks.fail_value(
                where, "the Model must have an optimizer to train", None, "Model(network, loss_fn, optimizer)"
            )

    @functools.cached_property
    def train_network(self) -> Cell:
        """The cell that trains on a batch; without an optimizer the network itself."""
        with_loss = self._cell if self.loss_fn is None and not self._own_loss else self._loss_cell()
        if self.optimizer is None:
            return with_loss
        self.enter()
        if self._by_default and self.manager is None:
            # Layers that a network makes when it is built may have a policy of their own.
            self.manager = default_manager(self.precision.plan, self.optimizer)
            if self.manager is None:
                warn_unscaled("Model", self.precision.plan, self.optimizer)
        return make_train_cell(with_loss, self.optimizer, self.manager)

    def _loss_cell(self) -> Cell:
        return WithLossCell(self._cell, self.loss_fn, loss_weights=self._loss.weights)

    @functools.cached_property
    def eval_network(self) -> Cell:
        """The cell that metrics are computed from."""
        given = self._given_eval
        if given is None:
            return WithEvalCell(self._cell, self.loss_fn, loss_weights=self._loss.weights)
        return KerasCell(given) if isinstance(given, keras.Layer) else given  # type: ignore[no-any-return]

    def evaluation(self, where: str, feed: Feed, metrics: EvaluationMetrics) -> Evaluation:
        """Return an evaluation on a dataset, the networks ready for it.

        Raises:
            ValueError: There are neither metrics nor a loss to evaluate.
        """
        own = self._given_eval is None
        if own:
            refuse_overridden(self.network, "test_step")
        no_loss = self.loss_fn is None and own and not self._own_loss
        if not metrics.named and (metrics.indexes is None or no_loss):
            raise checks.fail_value(
                where, "evaluation needs metrics or a loss_fn", None,
                'Model(network, loss_fn, optimizer, metrics={"accuracy"})',
            )
        first = feed.first()
        self.build(*(inputs_of(self.network, first) if self._own_loss else first[:1]))
        in_keras = isinstance(self.network, keras.Layer)
        return Evaluation(
            feed, self.evaluating, self.eval_network, metrics,
            weighted=own and (self._loss.sample_weight or self._own_loss),
            by_rows=own and is_keras_loss(self.loss_fn, keras_network=in_keras),
        )

    @property
    def predict_network(self) -> Cell:
        """The network as a cell."""
        return self._cell  # type: ignore[no-any-return]

    @property
    def scaled(self) -> bool:
        """Whether a step's three outputs are ``(loss, overflow, loss_scale)``."""
        return isinstance(self.train_network, TrainOneStepWithLossScaleCell)

    @property
    def host_manager(self) -> Any:
        """A manager that is moved from Python, with how to set the scale; None for all others."""
        if self.manager is None or not host_driven(self.manager):
            return None
        train = self.train_network
        return (self.manager, train.set_sense_scale) if isinstance(train, TrainOneStepWithLossScaleCell) else None

    @functools.cached_property
    def stepper(self) -> Stepper:
        """The train network, compiled."""
        return Stepper(self.train_network, scaled=self.scaled, prepare=self.precision.hold)

    @functools.cached_property
    def evaluating(self) -> CompiledCall:
        """The eval network, compiled."""
        network = self.eval_network
        return CompiledCall(with_masks(network), network, prepare=self.precision.hold)

    @functools.cached_property
    def predicting(self) -> CompiledCall:
        """The network with its outputs in float32, compiled."""
        network = self.predict_network

        def predict(*inputs: Any) -> Any:
            return boundary.settled(cast_floats(network(*inputs), float32))

        return CompiledCall(predict, network, prepare=self.precision.hold)

    def predict(self, inputs: tuple[Any, ...]) -> Any:
        """Run the network in inference mode.

        Args:
            inputs: What it takes, backend tensors (N, ...).

        Returns:
            Its outputs, backend tensors, floats in float32.
        """
        found = self.precision.inputs
        if found is not self._seen:
            refuse_overridden(self.network, "predict_step")
            if not found.built:
                self.build(*inputs)
            self._seen, self._cells = self.precision.inputs, [cell for _, cell in self._cell.cells_and_names()]
        for cell in self._cells:
            if cell.training:
                self._cell.set_train(False)
                break
        return self.predicting.run(*inputs)

    @property
    def with_loss(self) -> Any:
        """The network with its loss, as the train cell runs it."""
        train = self.train_network
        return train.network if isinstance(train, TrainOneStepCell) else train

    @property
    def examined(self) -> Any:
        """The network that is looked into when its numbers go wrong: what was given, without train step and loss."""
        if self.optimizer is not None:
            return self.network
        with_loss = self.with_loss
        return with_loss.backbone_network if isinstance(with_loss, WithLossCell) else with_loss


def _checked(loss: LossOptions, loss_fn: Any, network: Any) -> LossOptions:
    """Refuse options of a loss that there is not; a `compute_loss` of the network's own takes sample weights."""
    checks.boolean("Model", "sample_weight", loss.sample_weight)
    weighs = loss.sample_weight and not computes_loss(network)
    for name, value in (("loss_weights", loss.weights), ("sample_weight", weighs or None)):
        if loss_fn is None and value is not None:
            raise checks.fail_value("Model", f"{name} needs a loss_fn", value, "Model(network, loss_fn, optimizer)")
    return loss


def _check_network(name: str, network: Any) -> None:
    if not isinstance(network, keras.Layer) and not is_cell(network):
        raise checks.fail_type(
            "Model", f"{name} must be a mixtrain.nn.Cell or a keras.Model", network, "a class with nn.Cell as its base"
        )
