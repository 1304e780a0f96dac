"""`CompiledNetworks`: the compiled calls of a Model's networks, built and in the mode of each call."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import keras

from mixtrain import boundary, checks, execution
from mixtrain.distribution.joint_batches import joint_batches, own_rows
from mixtrain.network.walk import is_cell
from mixtrain.precision.cast import widen_halves
from mixtrain.precision.plan_inputs import PlanInputs
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.network_loss import NetworkLoss
from mixtrain.step.output_losses import is_keras_loss
from mixtrain.trace_version import Versions
from mixtrain.train.columns import network_inputs
from mixtrain.train.diagnosis import OverflowDiagnosis
from mixtrain.train.evaluation import Evaluation, EvaluationMetrics, with_masks
from mixtrain.train.feed import Feed
from mixtrain.train.later import Later
from mixtrain.train.networks import Networks
from mixtrain.train.range_sampler import RangeSampler
from mixtrain.train.stepper import Stepper
from mixtrain.train.trial import is_finite_at
from mixtrain.typing import Layer, TensorLike, Tree


class NetworkMode:
    """Sets the mode of the Cells among layers, which a Keras network gets with each call.

    The cells below them are collected again only if one of them has changed.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._roots = [layer for layer in layers if is_cell(layer)]
        self._collect_cells()

    def _collect_cells(self) -> None:
        self._cells = [cell for root in self._roots for _, cell in root.cells_and_names()]
        self._versions = Versions(self._cells, plans=False)

    def set(self, training: bool) -> None:
        """Switch all cells to training or inference."""
        if not self._versions.unchanged():
            self._collect_cells()
        for cell in self._cells:
            if cell.training is not training:
                for root in self._roots:
                    root.set_train(training)
                return


class CompiledNetworks:
    """The compiled calls of a Model's networks, each created on first use."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._steppers: dict[frozenset[str], Stepper] = {}
        # The inputs of the plan when the networks were last prepared for a call.
        self._ready_to_evaluate: PlanInputs | None = None
        self._ready_to_predict: PlanInputs | None = None

    # ---- training ---------------------------------------------------------------------------------------------
    @property
    def stepper(self) -> Stepper:
        """The train network, compiled."""
        return self.stepper_for(frozenset())

    def stepper_for(self, needs: frozenset[str]) -> Stepper:
        """Return the train network, compiled so that each step returns the tensors that callbacks need."""
        if needs not in self._steppers:
            networks = self._networks
            self._steppers[needs] = Stepper(
                networks.step, needs=needs, prepare=networks.precision.enforce
            )
        return self._steppers[needs]

    @functools.cached_property
    def train_mode(self) -> NetworkMode:
        """The mode of the train network."""
        return NetworkMode(self._networks.step.layers)

    @functools.cached_property
    def range_sampler(self) -> RangeSampler:
        """Counts the values of a batch in a compiled program."""
        return RangeSampler(self._networks)

    @functools.cached_property
    def diagnosis(self) -> OverflowDiagnosis:
        """Explains the overflow of a batch."""
        return OverflowDiagnosis(self._networks, self._is_finite_at)

    def _is_finite_at(self, batch: Sequence[Tree], loss_scale: float) -> bool | None:
        """Whether the step that was compiled last is finite on a batch at a loss scale; it is undone.

        None where a step cannot tell: one that runs eagerly, or with other batches or processes.
        """
        step, graph_mode = self._networks.step, execution.current.graph_mode
        alone = step.window is None and not (step.parallel is not None and step.parallel.spans_processes)
        if not (step.scale is not None and self._steppers and alone and graph_mode):
            return None
        return is_finite_at([*self._steppers.values()][-1], step.scale.variable, tuple(batch), loss_scale)

    # ---- evaluation -------------------------------------------------------------------------------------------
    @functools.cached_property
    def evaluating(self) -> CompiledCall:
        """The eval network, compiled."""
        evaluated = self._networks.evaluated
        return CompiledCall(with_masks(evaluated), *self._evaluated_layers, prepare=self._networks.precision.enforce)

    @property
    def _evaluated_layers(self) -> list[Layer]:
        evaluated = self._networks.evaluated
        return evaluated.layers if isinstance(evaluated, NetworkLoss) else [evaluated]

    @functools.cached_property
    def _eval_mode(self) -> NetworkMode:
        return NetworkMode(self._evaluated_layers)

    def evaluation(self, where: str, feed: Feed, metrics: EvaluationMetrics, *, weighted: bool = False) -> Evaluation:
        """Return an evaluation on a dataset, with the networks prepared for it.

        Raises: ValueError if there are neither metrics nor a loss to evaluate.
        """
        networks = self._networks
        no_eval_network = isinstance(networks.evaluated, NetworkLoss)
        no_loss = networks.loss_fn is None and no_eval_network and not networks.own_loss
        if not metrics.named and (metrics.indexes is None or no_loss):
            raise checks.fail_value(
                where, "evaluation needs metrics or a loss_fn", None,
                'Model(network, loss_fn, optimizer, metrics={"accuracy"})',
            )
        if networks.precision.inputs is not self._ready_to_evaluate:
            networks.build(*network_inputs(networks, feed.example(), training=False))
            self._ready_to_evaluate = networks.precision.inputs
        in_keras = isinstance(networks.network, keras.Layer)
        by_rows = no_eval_network and is_keras_loss(networks.loss_fn, keras_network=in_keras)
        return Evaluation(
            feed, self.evaluating, Later(lambda: networks.eval_network), self._eval_mode.set, metrics,
            weighted=no_eval_network and (weighted or networks.sample_weight or networks.own_loss),
            by_rows=by_rows, in_keras=by_rows and in_keras,
        )

    # ---- prediction -------------------------------------------------------------------------------------------
    @functools.cached_property
    def predicting(self) -> CompiledCall:
        """The network with its outputs in float32, compiled."""
        network = self._networks.network
        mode = {"training": False} if isinstance(network, keras.Layer) else {}

        def predict(*inputs: TensorLike) -> Tree:
            return boundary.to_backend_tensors(widen_halves(network(*inputs, **mode)))

        return CompiledCall(predict, network, prepare=self._networks.precision.enforce)

    @functools.cached_property
    def _predict_mode(self) -> NetworkMode:
        return NetworkMode([self._networks.network])

    def predict(self, inputs: Tree) -> Tree:
        """Run the network in inference mode.

        `inputs`: The network's inputs, backend tensors (N, ...).

        Returns: Its outputs, backend tensors, floats in float32.
        """
        networks = self._networks
        plan_inputs = networks.precision.inputs
        if plan_inputs is not self._ready_to_predict:
            if not plan_inputs.built:
                networks.build(*inputs)
            self._ready_to_predict = networks.precision.inputs
        self._predict_mode.set(False)
        if networks.joint is None:
            return self.predicting.run(*inputs)
        batch = next(joint_batches([tuple(inputs)], "Model.predict", networks.joint))
        return own_rows(self.predicting.run(*batch), batch, networks.joint)
