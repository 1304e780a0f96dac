"""`WithLossCell` and `WithEvalCell`: a network with its loss, for training and for evaluation."""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras

from mixtrain import backend, boundary, checks
from mixtrain.cell.cell import Cell, KerasCell
from mixtrain.dtype import float32
from mixtrain.network.walk import tree_of
from mixtrain.precision.cast import cast_floats
from mixtrain.step.output_losses import LossCall, OutputLosses, loss_caller
from mixtrain.step.own_loss import added_loss, computed_loss, computes_loss, inputs_of, no_loss
from mixtrain.typing import LossFn, Network, Tensor, Tree


def extra_losses(network: Network) -> list[Tensor]:
    """Return the losses that Keras layers of a network add by themselves (`add_loss`, regularizers), float32 scalars.

    A shared layer counts once, and so does a layer inside another one.
    """
    if not isinstance(network, Cell):
        return []
    cells: list[KerasCell] = [cell for _, cell in network.cells_and_names() if isinstance(cell, KerasCell)]
    layers = {id(cell.keras_layer): cell.keras_layer for cell in cells}
    # The `losses` of a Keras layer include those of its sublayers.
    inner = {id(node.layer) for layer in layers.values() for node in tree_of(layer).walk() if node.layer is not layer}
    losses = {id(loss): loss for key, layer in layers.items() if key not in inner for loss in layer.losses}
    return [keras.ops.sum(keras.ops.cast(loss, float32)) for loss in losses.values()]


def output_names(network: Network) -> list[str]:
    """Return the output names of a Keras functional model, the keys where it returns a dict; [] for other networks."""
    layer = getattr(network, "keras_layer", network)
    names = getattr(layer, "output_names", None)
    if not isinstance(names, (list, tuple)):
        return []
    outputs = getattr(layer, "output", None)
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


class NetworkLoss:
    """The loss of a network, for training and evaluation.

    A Keras model that overrides `compute_loss` computes its own. Otherwise the loss is `loss_fn` plus the losses that
    Keras layers add. A Keras network without `loss_fn` has only the latter; a Cell without `loss_fn` has none.

    Args:
        network: The network as a cell.
        loss_fn: As in `WithLossCell`, or None.
        loss_weights: As in `WithLossCell`.
    """

    def __init__(self, network: Network, loss_fn: LossFn | None, loss_weights: Any) -> None:
        self._network = network
        self._layer = getattr(network, "keras_layer", network)
        self._in_keras = isinstance(self._layer, keras.Layer)
        self._computes = computes_loss(self._layer)
        self._loss: LossCall | None = None
        if loss_fn is not None:
            names = output_names(network)
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

    def __call__(self, columns: Sequence[Tensor], *, training: bool) -> tuple[Tensor, Tree, Tree]:
        """Return ``(loss, outputs, label)`` of a batch, float32; without a loss, 0 for it.

        Args:
            columns: The columns of the batch: data, label and, with a Keras loss, sample weights.
            training: Whether the loss is differentiated.
        """
        losses: dict[str, Tensor] = {}
        loss, outputs, label = self._run(columns, losses, training=training)
        if self._batches is not None:
            weights = columns[2] if len(columns) > 2 else None
            values: tuple[Any, Any, Any] = boundary.to_backend_tensors((outputs, label, weights))
            masks = [backend.mask_of(output) for output in keras.tree.flatten(values[0])]
            self._batches.append(BatchOutputs(*values, masks, losses if len(losses) > 1 else {}))
        return loss, outputs, label

    def _run(self, columns: Sequence[Tensor], losses: dict[str, Any], *, training: bool) -> tuple[Tensor, Tree, Tree]:
        """Run a forward pass as `__call__` does; `losses` receives the loss of each of several outputs."""
        loss_fn = self._loss
        if isinstance(loss_fn, OutputLosses):
            loss_fn = functools.partial(loss_fn, terms=losses)
        data, label, weights = columns[0], columns[1] if len(columns) > 1 else None, columns[2:]
        own = self._in_keras and self._loss is None
        outputs = cast_floats(self._network(*(inputs_of(self._layer, columns) if own else (data,))), float32)
        if self._computes:
            loss = computed_loss(self._layer, loss_fn, columns, outputs, training=training)
            return keras.ops.cast(loss, float32), outputs, label
        if own:
            loss = added_loss(self._layer, outputs, extra_losses(self._network))
            if loss is None and training:
                raise no_loss(self._layer, outputs)
            return keras.ops.zeros(()) if loss is None else loss, outputs, label
        if loss_fn is None:
            return keras.ops.zeros(()), outputs, label
        loss = loss_fn(outputs, label, *weights)
        for extra in extra_losses(self._network):
            loss = loss + extra
        return loss, outputs, label


class WithLossCell(Cell):
    """A network with its loss; the loss is computed in float32 whatever the network returns.

    Args:
        backbone: The network, a Cell or Keras layer; takes the data.
        loss_fn: A Cell, a Keras loss or its name, or a function of ``(outputs, label)`` or ``(y_true, y_pred)``; for
            several outputs a dict of these by output name, or a list. None for a Keras network that has its own loss.
        loss_weights: What the losses are multiplied by, in the form of `loss_fn`; None for 1.

    Raises:
        TypeError: `loss_fn` is not one of these, or the names of a function's parameters contradict each other.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = WithLossCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
        >>> float(net(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]])))
        4.0
    """

    def __init__(self, backbone: Network, loss_fn: LossFn | None, *, loss_weights: Any = None) -> None:
        super().__init__(auto_prefix=False)
        if loss_fn is None and not isinstance(backbone, (keras.Layer, KerasCell)):
            raise checks.fail_type(
                "WithLossCell", "loss_fn must be a Cell, a Keras loss or a function", loss_fn, "loss_fn=nn.MSELoss()"
            )
        self._backbone = backbone
        self._loss_fn = loss_fn
        self._loss = NetworkLoss(self._backbone, loss_fn, loss_weights)

    def construct(self, *columns: Tree) -> Tensor:
        """Return the loss of ``(data, label)``, or of ``(data, label, sample_weight)`` with a Keras loss."""
        return self._loss(columns, training=self.training)[0]

    def with_outputs(self, *columns: Tree) -> tuple[Tensor, BatchOutputs]:
        """Return the loss of a batch, and the tensors that metrics are computed from."""
        with self._loss.recording_outputs() as batches:
            loss = self(*columns)
        return loss, batches[-1]

    @property
    def backbone_network(self) -> Network:
        """The network."""
        return getattr(self._backbone, "keras_layer", self._backbone)


def sums_rows(network: Network) -> bool:
    """Whether the loss of a network is known to be a sum over the rows of a batch.

    Raises:
        ValueError: Some of the losses of several outputs are sums and some are means.
    """
    losses = keras.tree.flatten(network._loss_fn) if isinstance(network, WithLossCell) else []
    sums = {getattr(loss, "reduction", "mean") == "sum" for loss in losses if loss is not None}
    if len(sums) > 1:
        raise checks.fail_value(
            "Model", "losses that several devices add up must all be sums over rows, or all means", "some of each",
            'reduction="sum" in all of them, or in none',
        )
    return True in sums


class WithEvalCell(Cell):
    """A network with its loss for evaluation.

    Args:
        network: The network, a Cell or Keras layer.
        loss_fn: As in `WithLossCell`; None for a Keras network's own loss, and no loss of a Cell.
        add_cast_fp32: Accepted for MindSpore scripts; outputs are always float32.
        loss_weights: As in `WithLossCell`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = WithEvalCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
        >>> loss, outputs, label = net(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]]))
        >>> float(loss)
        4.0
    """

    def __init__(
        self, network: Network, loss_fn: LossFn | None, add_cast_fp32: bool = False, *, loss_weights: Any = None
    ) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self._loss = NetworkLoss(self._network, loss_fn, loss_weights)

    def construct(self, *columns: Tree) -> tuple[Tensor, Tree, Tree]:
        """Return ``(loss, outputs, label)``; the loss of a Cell without a loss function is 0."""
        return self._loss(columns, training=self.training)  # type: ignore[no-any-return]

    def with_outputs(self, *columns: Tree) -> tuple[tuple[Tensor, Tree, Tree], BatchOutputs]:
        """Return ``(loss, outputs, label)`` of a batch, and the tensors that metrics are computed from."""
        with self._loss.recording_outputs() as batches:
            results = self(*columns)
        return results, batches[-1]
