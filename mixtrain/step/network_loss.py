"""`NetworkLoss`: the loss of a network in float32, for training and evaluation."""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras

from mixtrain import backend, boundary, checks
from mixtrain.dtype import float32
from mixtrain.network.walk import is_cell, outermost_keras_layers
from mixtrain.precision.cast import cast_floats
from mixtrain.step.output_losses import LossCall, OutputLosses, loss_caller
from mixtrain.step.own_loss import added_loss, computed_loss, computes_loss, inputs_of, no_loss
from mixtrain.typing import Layer, LossFn, Network, Tensor, Tree


def extra_losses(network: Network) -> list[Tensor]:
    """Return the losses that Keras layers of a network add by themselves (`add_loss`, regularizers), float32 scalars.

    A shared layer counts once, and so does a layer inside another one.
    """
    # The `losses` of a Keras layer include those of its sublayers.
    losses = {id(loss): loss for layer in outermost_keras_layers(network) for loss in layer.losses}
    return [keras.ops.sum(keras.ops.cast(loss, float32)) for loss in losses.values()]


def output_names(network: Network) -> list[str]:
    """Return the output names of a Keras functional model, the keys where it returns a dict; [] for other networks."""
    names = getattr(network, "output_names", None)
    if not isinstance(names, (list, tuple)):
        return []
    outputs = getattr(network, "output", None)
    if isinstance(outputs, dict) and set(outputs) != set(names):
        # `output_names` are those of layers. Keras's `compile` goes by the keys, in this order.
        return list(outputs) if isinstance(outputs, collections.OrderedDict) else sorted(outputs)
    return list(names)


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


def _batch_outputs(columns: Sequence[Tree], outputs: Tree, label: Tree, losses: dict[str, Tensor]) -> BatchOutputs:
    weights = columns[2] if len(columns) > 2 else None
    values: tuple[Any, Any, Any] = boundary.to_backend_tensors((outputs, label, weights))
    masks = [backend.mask_of(output) for output in keras.tree.flatten(values[0])]
    return BatchOutputs(*values, masks, losses if len(losses) > 1 else {})


class NetworkLoss:
    """The loss of a network, for training and evaluation.

    A Keras model that overrides `compute_loss` computes its own. Otherwise the loss is `loss_fn` plus the losses that
    Keras layers add. A Keras network without `loss_fn` has only the latter; a Cell without `loss_fn` has none.

    Args:
        network: A Cell or Keras layer; takes the data.
        loss_fn: A Cell, a Keras loss or its name, or a function of ``(outputs, label)`` or ``(y_true, y_pred)``; for
            several outputs a dict of these by output name, or a list. None for a Keras network that has its own loss.
        loss_weights: What the losses are multiplied by, in the form of `loss_fn`; None for 1.

    Attributes:
        network: As passed.
        loss_fn: As passed.
        loss_weights: As passed.

    Raises:
        TypeError: `loss_fn` is not one of these, or the names of a function's parameters contradict each other.
    """

    def __init__(self, network: Network, loss_fn: LossFn | None, loss_weights: Any = None) -> None:
        self.network, self.loss_fn, self.loss_weights = network, loss_fn, loss_weights
        self._layer = getattr(network, "keras_layer", network)
        self._in_keras = isinstance(self._layer, keras.Layer)
        self._computes = computes_loss(self._layer)
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

        Raises:
            ValueError: Some of the losses of several outputs are sums and some are means.
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
        return self._run(columns, {}, training=True)[0]

    def with_outputs(self, *columns: Tree) -> tuple[Tensor, BatchOutputs]:
        """Return the loss of a batch to differentiate, and the tensors that metrics are computed from."""
        losses: dict[str, Tensor] = {}
        loss, outputs, label = self._run(columns, losses, training=True)
        return loss, _batch_outputs(columns, outputs, label, losses)

    def evaluation(self, *columns: Tree) -> tuple[tuple[Tensor, Tree, Tree], BatchOutputs]:
        """Return ``(loss, outputs, label)`` of a batch in inference mode, and what metrics are computed from."""
        losses: dict[str, Tensor] = {}
        results = self._run(columns, losses, training=False)
        return results, _batch_outputs(columns, *results[1:], losses)

    def evaluated(self, columns: Sequence[Tree], *, training: bool) -> tuple[Tensor, Tree, Tree]:
        """Return ``(loss, outputs, label)`` of a batch, float32; without a loss, 0 for it.

        Args:
            columns: The columns of the batch: data, label and, with a Keras loss, sample weights.
            training: Whether the loss is differentiated.
        """
        losses: dict[str, Tensor] = {}
        loss, outputs, label = self._run(columns, losses, training=training)
        if self._batches is not None:
            self._batches.append(_batch_outputs(columns, outputs, label, losses))
        return loss, outputs, label

    def _run(self, columns: Sequence[Tensor], losses: dict[str, Any], *, training: bool) -> tuple[Tensor, Tree, Tree]:
        """Return what `evaluated` does; `losses` receives the loss of each of several outputs."""
        loss_fn = self._loss
        if isinstance(loss_fn, OutputLosses):
            loss_fn = functools.partial(loss_fn, terms=losses)
        data, label, weights = columns[0], columns[1] if len(columns) > 1 else None, columns[2:]
        own = self._in_keras and self._loss is None
        inputs = inputs_of(self._layer, columns) if own else (data,)
        # A Cell has the mode that it was set to.
        mode = {} if is_cell(self.network) else {"training": training}
        outputs = cast_floats(self.network(*inputs, **mode), float32)
        if self._computes:
            loss = computed_loss(self._layer, loss_fn, columns, outputs, training=training)
            return keras.ops.cast(loss, float32), outputs, label
        if own:
            loss = added_loss(self._layer, outputs, extra_losses(self.network))
            if loss is None and training:
                raise no_loss(self._layer, outputs)
            return keras.ops.zeros(()) if loss is None else loss, outputs, label
        if loss_fn is None:
            return keras.ops.zeros(()), outputs, label
        loss = loss_fn(outputs, label, *weights)
        for extra in extra_losses(self.network):
            loss = loss + extra
        return loss, outputs, label
