"""`WithLossCell` and `WithEvalCell`: a network with its loss, for training and for evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.nn.cell import Cell, KerasCell
from mixtrain.precision.cast import cast_floats


def loss_caller(loss_fn: Any) -> Callable[[Any, Any], Any]:
    """Return ``loss(outputs, label)`` for a loss Cell, a Keras loss (object, function or name) or another function.

    Raises:
        TypeError: `loss_fn` cannot be called.
        ValueError: No Keras loss has this name.
    """
    by_name = isinstance(loss_fn, str)
    if by_name:
        loss_fn = keras.losses.get(loss_fn)
    if isinstance(loss_fn, keras.losses.Loss):
        return lambda outputs, label: loss_fn(label, outputs)
    if isinstance(loss_fn, type) or not callable(loss_fn):
        raise checks.fail_type(
            "WithLossCell", "loss_fn must be a Cell, a Keras loss or a function", loss_fn, "loss_fn=nn.MSELoss()"
        )
    if by_name or getattr(keras.losses, getattr(loss_fn, "__name__", ""), None) is loss_fn:
        return lambda outputs, label: keras.ops.mean(loss_fn(label, outputs))
    return loss_fn  # type: ignore[no-any-return]


def extra_losses(network: Any) -> list[Any]:
    """Return the losses that Keras layers of a network add by themselves (`add_loss`, regularisers)."""
    if isinstance(network, KerasCell):
        return list(network.keras_layer.losses)
    if not isinstance(network, Cell):
        return []
    held = [cell for _, cell in network.cells_and_names() if isinstance(cell, KerasCell)]
    return [loss for cell in held for loss in cell.keras_layer.losses]


class WithLossCell(Cell):
    """A network with its loss; the loss is computed in float32 whatever the network returns.

    Args:
        backbone: The network, a Cell or Keras layer; takes the data.
        loss_fn: Takes ``(outputs, label)``; a Cell, a Keras loss or its name, or a function.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = WithLossCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
        >>> float(net(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]])))
        4.0

    Source: MindSpore, `mindspore.nn.WithLossCell`.
    """

    def __init__(self, backbone: Any, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn
        object.__setattr__(self, "_loss", loss_caller(loss_fn))

    def construct(self, data: Any, label: Any) -> Any:
        """Return the loss of ``(data, label)``."""
        outputs = cast_floats(self._backbone(data), float32)
        loss = self._loss(outputs, label)
        for extra in extra_losses(self._backbone):
            loss = loss + keras.ops.cast(extra, loss.dtype)
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

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = WithEvalCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
        >>> loss, outputs, label = net(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]]))
        >>> float(loss)
        4.0

    Source: MindSpore, `mindspore.nn.WithEvalCell`.
    """

    def __init__(self, network: Any, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        object.__setattr__(self, "_loss", None if loss_fn is None else loss_caller(loss_fn))

    def construct(self, data: Any, label: Any) -> tuple[Any, Any, Any]:
        """Return ``(loss, outputs, label)``; the loss is 0 where there is no loss function."""
        outputs = cast_floats(self._network(data), float32)
        loss = keras.ops.zeros(()) if self._loss is None else self._loss(outputs, label)
        return loss, outputs, label
