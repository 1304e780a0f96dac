"""What a Keras callback gets as ``self.model``: the Keras model itself, or a Cell seen as one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.optim.optimizer import Optimizer
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.read import read_checkpoint
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.keras_optimizer_view import OptimizerView

_MISSING = object()


class ModelView:
    """A Keras callback's model for the time of a run.

    Args:
        model: What the callback gets.
        optimizer: The optimizer in use.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.model = model
        self._optimizer = OptimizerView(optimizer) if isinstance(optimizer, Optimizer) else optimizer
        self._before: Any = None
        self._lent = False
        self._epoch_before: Any = None

    def lend_optimizer(self) -> None:
        """Let ``model.optimizer`` be the optimizer in use; a model that mixtrain trains need not be compiled."""
        self._before = getattr(self.model, "optimizer", _MISSING)
        # An evaluation has none: a model that has its own keeps it, any other gets None, which callbacks look for.
        self._lent = self._before is not self._optimizer and (self._optimizer is not None or self._before is _MISSING)
        if self._lent:
            self.model.optimizer = self._optimizer
        self._epoch_before = getattr(self.model, "_initial_epoch", None)
        self.model._initial_epoch = None

    def take_back_optimizer(self) -> None:
        """Put ``model.optimizer`` back as it was."""
        self.model._initial_epoch = self._epoch_before
        if not self._lent:
            return
        if self._before is _MISSING:
            del self.model.optimizer
        else:
            self.model.optimizer = self._before
        self._lent = False

    @property
    def epochs_done(self) -> int:
        """How many epochs a callback of Keras's says were trained before: it has put back a run interrupted then."""
        return int(getattr(self.model, "_initial_epoch", None) or 0)


class CellModel:
    """A Cell, or a Keras layer that is no model, as Keras callbacks expect a model.

    Args:
        network: The network.
        train_network: What trains it, whose state its files hold too; None in an evaluation.

    Attributes:
        stop_training: Set by callbacks to stop the run.
        optimizer: The optimizer in use, during the run.
        built: True.
        name: The network's class.
        train_function: None: the compiled step is not Keras's.
    """

    def __init__(self, network: Any, train_network: Any = None) -> None:
        self.network = network
        self.stop_training = False
        self.optimizer: Any = None
        self.built = True
        self.name = type(network).__name__
        self.train_function = None
        self._saved = network if train_network is None else train_network
        self._initial_epoch: int | None = None

    def __call__(self, *inputs: Any) -> Any:
        return self.network(*inputs)

    @property
    def weights(self) -> list[Any]:
        """The network's variables."""
        if isinstance(self.network, keras.Layer):
            return list(self.network.weights)
        return list(self.network.get_parameters())

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of them that are trained."""
        return [variable for variable in self.weights if variable.trainable]

    @property
    def trainable_weights(self) -> list[Any]:
        """The same."""
        return self.trainable_variables

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The others."""
        return [variable for variable in self.weights if not variable.trainable]

    @property
    def metrics(self) -> list[Any]:
        """None: metrics are the Model's; their values are in the logs."""
        return []

    @property
    def metrics_names(self) -> list[str]:
        """What Keras computes in training."""
        return ["loss"]

    def count_params(self) -> int:
        """Return how many numbers the variables hold."""
        return sum(int(np.prod(variable.shape)) for variable in self.weights)

    @property
    def layers(self) -> list[Any]:
        """What has weights to draw: the network as one."""
        return [self.network if isinstance(self.network, keras.Layer) else self]

    def get_weights(self) -> list[np.ndarray]:
        """Return the values of the variables, as copies."""
        return [np.array(backend.to_numpy(variable)) for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the values of the variables, in the order of `get_weights`."""
        for variable, value in zip(self.weights, weights, strict=True):
            variable.assign(value)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a Cell has no Keras file format."""
        raise checks.fail_type(
            "model.save", "only a keras.Model is saved in Keras's format", self.network,
            "mixtrain's ModelCheckpoint in place of Keras's, or save_weights_only=True",
        )

    def save_weights(self, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write a mixtrain checkpoint of the network and what trains it under the name given.

        Args:
            filepath: The file.
            overwrite: Whether it may be there already.

        Raises:
            FileExistsError: It is, and may not.
        """
        path = os.fspath(filepath)
        if os.path.exists(path) and not overwrite:
            raise FileExistsError(f"model.save_weights: expected a new file; got {path!r}. Write overwrite=True.")
        os.replace(write_checkpoint(self._saved, f"{path}.ckpt", False, None), path)

    def load_weights(self, filepath: str | os.PathLike[str]) -> None:
        """Read what `save_weights` wrote.

        Args:
            filepath: The file.
        """
        load_param_into_net(self._saved, read_checkpoint(os.fspath(filepath)))


def model_view(network: Any, optimizer: Any, train_network: Any = None) -> ModelView:
    """Return what Keras callbacks get as their model.

    Args:
        network: A Cell, a Keras layer, or a Keras model, which they get itself.
        optimizer: The optimizer in use.
        train_network: What trains the network; None in an evaluation.
    """
    return ModelView(network if isinstance(network, keras.Model) else CellModel(network, train_network), optimizer)
