"""What a Keras callback gets as ``self.model``: the Keras model itself, or a Cell seen as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import keras
import numpy as np

from mixtrain import checks, engine

_MISSING = object()


class ModelView:
    """A Keras callback's model for the time of a run.

    Args:
        model: What the callback gets.
        optimizer: The optimizer in use.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.model = model
        self._optimizer = optimizer
        self._before: Any = None
        self._lent = False

    def lend_optimizer(self) -> None:
        """Let ``model.optimizer`` be the optimizer in use; a model that mixtrain trains need not be compiled."""
        self._before = getattr(self.model, "optimizer", _MISSING)
        self._lent = self._before is not self._optimizer and self._optimizer is not None
        if self._lent:
            self.model.optimizer = self._optimizer

    def take_back_optimizer(self) -> None:
        """Put ``model.optimizer`` back as it was."""
        if not self._lent:
            return
        if self._before is _MISSING:
            del self.model.optimizer
        else:
            self.model.optimizer = self._before
        self._lent = False


class CellModel:
    """A Cell, or a Keras layer that is no model, as Keras callbacks expect a model.

    Args:
        network: The network.

    Attributes:
        stop_training: Set by callbacks to stop the run.
        optimizer: The optimizer in use, during the run.
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self.stop_training = False
        self.optimizer: Any = None

    def __call__(self, *inputs: Any) -> Any:
        return self.network(*inputs)

    @property
    def weights(self) -> list[Any]:
        """The network's variables."""
        if isinstance(self.network, keras.Layer):
            return list(self.network.weights)
        return list(self.network.get_parameters())

    def get_weights(self) -> list[np.ndarray]:
        """Return the values of the variables, as copies."""
        return [np.array(engine.to_numpy(variable)) for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the values of the variables, in the order of `get_weights`."""
        for variable, value in zip(self.weights, weights, strict=True):
            variable.assign(value)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a Cell has no Keras file format."""
        self._refuse("save")

    def save_weights(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a Cell has no Keras file format."""
        self._refuse("save_weights")

    def load_weights(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a Cell has no Keras file format."""
        self._refuse("load_weights")

    def _refuse(self, method: str) -> NoReturn:
        raise checks.fail_type(
            f"model.{method}", "only a keras.Model is saved in Keras's format", self.network,
            "mixtrain's ModelCheckpoint in place of Keras's",
        )


def model_view(network: Any, optimizer: Any) -> ModelView:
    """Return what Keras callbacks get as their model.

    Args:
        network: A Cell, a Keras layer, or a Keras model, which they get itself.
        optimizer: The optimizer in use.
    """
    return ModelView(network if isinstance(network, keras.Model) else CellModel(network), optimizer)
