"""`NetworkLoss`: the loss of a network in float32, for training and evaluation."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras

from mixtrain import backend, boundary, checks
from mixtrain.dtype import float32, wider
from mixtrain.network.walk import is_cell, outermost_keras_layers
from mixtrain.precision.cast import widen_halves
from mixtrain.step.output_losses import LossCall, OutputLosses, loss_caller
from mixtrain.step.own_loss import added_loss, computed_loss, computes_loss, inputs_of, no_loss
from mixtrain.typing import Layer, LossFn, Network, Tensor, Tree


def extra_losses(network: Network) -> list[Tensor]:
    """Return the losses that Keras layers of a network add by themselves (`add_loss`, regularizers), float32 scalars.

    A shared layer counts once, and so does a layer inside another one.
    """
    # The `losses` of a Keras layer include those of its sublayers.
    losses = {id(loss): loss for layer in outermost_keras_layers(network) for loss in layer.losses}
    return [keras.ops.sum(keras.ops.cast(loss, wider(loss.dtype, float32))) for loss in losses.values()]


def output_names(network: Network) -> list[str]:
    """Return the output names of a Keras functional model, the keys where it returns a dict; [] for other networks."""
    names = getattr(network, "output_names", None)
    if not isinstance(names, (list, tuple)):
        return []
    outputs = getattr(network, "output", None)
    if isinstance(outputs, dict) and set(outputs) != set(names):
        # `output_names` are those of layers. Keras's `compile` goes by the keys, in this order.
        return list(outputs) if isinstance(outputs, collections.OrderedDict) else sorted(outputs)
    # Outputs of one layer have one name: only their order tells them apart.
    return list(names) if len({*names}) == len(names) else []


class BatchOutputs(NamedTuple):
    """The tensors of a forward pass that metrics are computed from.

    Attributes:
        outputs: The outputs of the network, floating-point ones in float32.
        label: The labels; None if the batch has none.
        weights: The sample weights, or None.
        masks: For each output the mask that Keras's layers attached to it, or None.
        output_losses: With several outputs, the unweighted loss of each, by Keras's name for it.
    """

    outputs: Tree
    label: Tree
    weights: Tree | None
    masks: list[Tensor | None]
    output_losses: dict[str, Tensor]


def masks_of(outputs: Tree) -> list[Tensor | None]:
    """Return for each of a network's outputs the mask from Keras's layers, or None."""
    return [backend.mask_of(output) for output in keras.tree.flatten(outputs)]


class NetworkLoss:
    """The loss of a network, for training and evaluation.

    A Keras model that overrides `compute_loss` computes its own. Otherwise the loss is `loss_fn` plus the losses that
    Keras layers add. A Keras network without `loss_fn` has only the latter; a Cell without `loss_fn` has none.

    `network`: A Cell or Keras layer; takes the data. `loss_fn`: A Cell, a Keras loss or its name, or a function of
    ``(outputs, label)`` or ``(y_true, y_pred)``; for several outputs a dict of these by output name, or a list. None
    for a Keras network that has its own loss. `loss_weights`: What the losses are multiplied by, in the form of
    `loss_fn`; None for 1.

    The attributes `network`, `loss_fn` and `loss_weights` are what was passed.

    Raises: TypeError if `loss_fn` is not one of these, or the names of a function's parameters contradict each other.
    """

    def __init__(self, network: Network, loss_fn: LossFn | None, loss_weights: Any = None) -> None:
        self.network, self.loss_fn, self.loss_weights = network, loss_fn, loss_weights
        self._layer = getattr(network, "keras_layer", network)
        self._in_keras = isinstance(self._layer, keras.Layer)
        self._computes = computes_loss(self._layer)
        # A Cell has the mode that it was set to. Keras's loop says nothing to a `call` that does not take it.
        self._takes_mode = not is_cell(network) and "training" in inspect.signature(type(network).call).parameters
        self._loss: LossCall | None = None
        if loss_fn is not None:
            names = output_names(self._layer)
            self._loss = loss_caller(loss_fn, loss_weights, names, keras_network=self._in_keras)
        self._batches: list[BatchOutputs] | None = None

    @contextlib.contextmanager
    def recording_outputs(self) -> Iterator[list[BatchOutputs]]:
        """Collect a `BatchOutputs` of each forward pass in the context, in the list that it yields."""
        self._batches = []
        try:
            yield self._batches
        finally:
            self._batches = None

    @property
    def layers(self) -> list[Layer]:
        """The layers that compute the loss: the network, and a loss that is a Cell."""
        return [self.network, *filter(is_cell, [self.loss_fn])]

    @property
    def sums_rows(self) -> bool:
        """Whether the loss is known to be a sum over the rows of a batch.

        Raises: ValueError if some of the losses of several outputs are sums and some are means.
        """
        losses = keras.tree.flatten(self.loss_fn)
        sums = {getattr(loss, "reduction", "mean") == "sum" for loss in losses if loss is not None}
        if len(sums) > 1:
            raise checks.fail_value(
                "Model", "losses that several devices add up must all be sums over rows, or all means", "some of each",
                'reduction="sum" in all of them, or in none',
            )
        return True in sums

    def __call__(self, *columns: Tree) -> Tensor:
        """Return the loss of a batch to differentiate, float32."""
        return self.evaluated(columns, training=True)[0]

    def with_outputs(self, *columns: Tree, training: bool = True) -> tuple[Tensor, BatchOutputs]:
        """Return the loss of a batch, and the tensors that metrics are computed from."""
        batches: list[BatchOutputs] = []
        loss, _, _ = self.evaluated(columns, training=training, batches=batches)
        return loss, batches[-1]

    def evaluated(
        self, columns: Sequence[Tree], *, training: bool, batches: list[BatchOutputs] | None = None
    ) -> tuple[Tensor, Tree, Tree]:
        """Return ``(loss, outputs, label)`` of a batch, float32; without a loss, 0 for it.

        `columns`: The columns of the batch: data, label and, with a Keras loss, sample weights. `training`: Whether the
        loss is differentiated. `batches`: Receives what metrics are computed from; by default the list of
        `recording_outputs`, if any.
        """
        batches = self._batches if batches is None else batches
        terms: dict[str, Tensor] = {}  # The loss of each of several outputs.
        loss_fn = self._loss
        if isinstance(loss_fn, OutputLosses):
            loss_fn = functools.partial(loss_fn, terms=terms)
        data, label, weights = columns[0], columns[1] if len(columns) > 1 else None, columns[2:]
        own = self._in_keras and self._loss is None
        inputs = inputs_of(self._layer, columns) if own else (data,)
        mode = {"training": training} if self._takes_mode else {}
        outputs = widen_halves(self.network(*inputs, **mode))
        loss: Tensor = None
        if self._computes:
            value = computed_loss(self._layer, loss_fn, columns, outputs, training=training)
            loss = keras.ops.cast(value, wider(value.dtype, float32))
        elif own:
            loss = added_loss(self._layer, outputs, extra_losses(self.network))
            if loss is None and training:
                raise no_loss(self._layer, outputs)
        elif loss_fn is not None:
            loss = functools.reduce(keras.ops.add, extra_losses(self.network), loss_fn(outputs, label, *weights))
        loss = keras.ops.zeros(()) if loss is None else loss
        if batches is not None:
            tensors = (outputs, label, weights[0] if weights else None)
            values: tuple[Any, Any, Any] = boundary.to_backend_tensors(tensors)
            batches.append(BatchOutputs(*values, masks_of(values[0]), terms if len(terms) > 1 else {}))
        return loss, outputs, label
