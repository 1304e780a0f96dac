"""`WithLossCell` and `WithEvalCell`: a network with its loss as a cell, for training and for evaluation."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks, faces
from mixtrain.cell.cell import Cell, KerasCell
from mixtrain.step.network_loss import BatchOutputs, NetworkLoss
from mixtrain.typing import LossFn, Network, Tensor, Tree


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
        return self._loss.evaluated(columns, training=self.training)[0]

    def with_outputs(self, *columns: Tree) -> tuple[Tensor, BatchOutputs]:
        """Return the loss of a batch, and the tensors that metrics are computed from."""
        with self._loss.recording_outputs() as batches:
            loss = self(*columns)
        return loss, batches[-1]

    @property
    def backbone_network(self) -> Network:
        """The network."""
        return getattr(self._backbone, "keras_layer", self._backbone)


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
        return self._loss.evaluated(columns, training=self.training)  # type: ignore[no-any-return]


faces.register("loss_cell", lambda loss: WithLossCell(loss.network, loss.loss_fn, loss_weights=loss.loss_weights))
faces.register("eval_cell", lambda loss: WithEvalCell(loss.network, loss.loss_fn, loss_weights=loss.loss_weights))
