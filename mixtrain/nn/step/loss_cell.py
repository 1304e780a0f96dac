"""`WithLossCell` and `WithEvalCell`: a network with its loss, for training and for evaluation."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.dtype import float32
from mixtrain.network.walk import tree_of
from mixtrain.nn.cell import Cell, KerasCell
from mixtrain.nn.step.output_losses import loss_caller
from mixtrain.precision.cast import cast_floats


def extra_losses(network: Any) -> list[Any]:
    """Return the losses that Keras layers of a network add by themselves (`add_loss`, regularisers), float32 scalars.

    A layer that is held twice is counted once, and so is one inside another that is held.
    """
    if not isinstance(network, Cell):
        return []
    held: list[KerasCell] = [cell for _, cell in network.cells_and_names() if isinstance(cell, KerasCell)]
    layers = {id(cell.keras_layer): cell.keras_layer for cell in held}
    inside = {id(node.layer) for layer in layers.values() for node in tree_of(layer).walk() if node.layer is not layer}
    found = {id(loss): loss for key, layer in layers.items() if key not in inside for loss in layer.losses}
    return [keras.ops.sum(keras.ops.cast(loss, float32)) for loss in found.values()]


def output_names(network: Any) -> list[str]:
    """Return the names of a Keras functional model's outputs; [] for what has none."""
    names = getattr(getattr(network, "keras_layer", network), "output_names", None)
    return list(names) if isinstance(names, (list, tuple)) else []


class WithLossCell(Cell):
    """A network with its loss; the loss is computed in float32 whatever the network returns.

    Args:
        backbone: The network, a Cell or Keras layer; takes the data.
        loss_fn: Takes ``(outputs, label)``; a Cell, a Keras loss or its name, or a function; for several outputs a dict
            of these by output name, or a list.
        loss_weights: What the losses are multiplied by, in the form of `loss_fn`; None for 1.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = WithLossCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
        >>> float(net(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]])))
        4.0

    Source: MindSpore, `mindspore.nn.WithLossCell`.
    """

    def __init__(self, backbone: Any, loss_fn: Any, *, loss_weights: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn
        caller = loss_caller(loss_fn, loss_weights, output_names(self._backbone))
        object.__setattr__(self, "_loss", caller)

    def construct(self, data: Any, label: Any, *sample_weight: Any) -> Any:
        """Return the loss of ``(data, label)``, or of ``(data, label, sample_weight)`` with a Keras loss."""
        outputs = cast_floats(self._backbone(data), float32)
        loss = self._loss(outputs, label, *sample_weight)
        for extra in extra_losses(self._backbone):
            loss = loss + extra
        return loss

    @property
    def backbone_network(self) -> Any:
        """The network."""
        return getattr(self._backbone, "keras_layer", self._backbone)


class WithEvalCell(Cell):
    """A network with its loss for evaluation.

    Args:
        network: The network, a Cell or Keras layer.
        loss_fn: As in `WithLossCell`; None for no loss.
        add_cast_fp32: Accepted for MindSpore scripts; outputs are float32 in any case.
        loss_weights: As in `WithLossCell`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = WithEvalCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
        >>> loss, outputs, label = net(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]]))
        >>> float(loss)
        4.0

    Source: MindSpore, `mindspore.nn.WithEvalCell`.
    """

    def __init__(
        self, network: Any, loss_fn: Any, add_cast_fp32: bool = False, *, loss_weights: Any = None
    ) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        names = output_names(self._network)
        caller = None if loss_fn is None else loss_caller(loss_fn, loss_weights, names)
        object.__setattr__(self, "_loss", caller)

    def construct(self, data: Any, label: Any, *sample_weight: Any) -> tuple[Any, Any, Any]:
        """Return ``(loss, outputs, label)``; the loss is 0 where there is no loss function."""
        outputs = cast_floats(self._network(data), float32)
        if self._loss is None:
            return keras.ops.zeros(()), outputs, label
        loss = self._loss(outputs, label, *sample_weight)
        for extra in extra_losses(self._network):
            loss = loss + extra
        return loss, outputs, label
