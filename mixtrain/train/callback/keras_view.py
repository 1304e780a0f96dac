"""The ``self.model`` of Keras callbacks: the Keras model itself, or a view of a Cell as one, and its optimizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.network.walk import is_optimizer_cell
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.read import read_checkpoint
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.run_context import CallbackArguments
from mixtrain.typing import Layer, Network, Optimizer, TensorLike, Tree, Variable

_MISSING = object()


class OptimizerView:
    """A mixtrain optimizer with the interface of a Keras optimizer: its rate is read and set as an attribute."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.built = True
        self.name = type(optimizer).__name__

    @property
    def learning_rate(self) -> Any:
        """The variable of the learning rate, or the value of a schedule for the next step."""
        rate = self.optimizer.learning_rate
        return rate if isinstance(rate, keras.Variable) else self.optimizer._next_lr()

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        rate = self.optimizer.learning_rate
        if not isinstance(rate, keras.Variable):
            raise checks.fail_type(
                self.name, "a callback can set the rate only where it is a number", rate, "learning_rate=0.1"
            )
        rate.assign(value)

    @property
    def iterations(self) -> Any:
        """The number of applied steps, a scalar int tensor."""
        return keras.ops.reshape(self.optimizer.global_step, ())

    @property
    def variables(self) -> list[Variable]:
        return list(self.optimizer.state_variables())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optimizer"], name)


class ModelView:
    """The model of a Keras callback during a run."""

    def __init__(self, model: Network, optimizer: Optimizer) -> None:
        self.model = model
        self._optimizer = OptimizerView(optimizer) if is_optimizer_cell(optimizer) else optimizer
        self._previous_optimizer: Any = None
        self._replaced = False
        self._previous_epoch: Any = None

    def set_optimizer(self) -> None:
        """Set ``model.optimizer`` to the optimizer in use; a model that mixtrain trains need not be compiled."""
        self._previous_optimizer = previous = getattr(self.model, "optimizer", _MISSING)
        # An evaluation has no optimizer: a model keeps its own, or gets None, because callbacks read the attribute.
        self._replaced = previous is not self._optimizer and (self._optimizer is not None or previous is _MISSING)
        if self._replaced:
            self.model.optimizer = self._optimizer
        # Keras's `BackupAndRestore` stores the number of restored epochs in this attribute of `keras.Model`.
        self._previous_epoch = getattr(self.model, "_initial_epoch", None)
        self.model._initial_epoch = None

    def restore_optimizer(self) -> None:
        self.model._initial_epoch = self._previous_epoch
        if not self._replaced:
            return
        if self._previous_optimizer is _MISSING:
            del self.model.optimizer
        else:
            self.model.optimizer = self._previous_optimizer
        self._replaced = False

    @property
    def restored_epochs(self) -> int:
        """Epochs of an interrupted run that a Keras callback has restored."""
        return int(getattr(self.model, "_initial_epoch", None) or 0)


class CellModel:
    """A Cell, or a Keras layer that is not a model, with the interface of a Keras model that callbacks use.

    With `train_network`, which an evaluation has not, its state is saved too. Callbacks set `stop_training` to stop the
    run.
    """

    def __init__(self, network: Network, train_network: Network | None = None) -> None:
        self.network = network
        self.stop_training = False
        self.optimizer: Optimizer | None = None
        self.built = True
        self.name = type(network).__name__
        self.train_function = None
        self._saved_network = network if train_network is None else train_network
        self._initial_epoch: int | None = None

    def __call__(self, *inputs: TensorLike) -> Tree:
        return self.network(*inputs)

    @property
    def weights(self) -> list[Variable]:
        if isinstance(self.network, keras.Layer):
            return list(self.network.weights)
        return list(self.network.get_parameters())

    @property
    def trainable_variables(self) -> list[Variable]:
        return [variable for variable in self.weights if variable.trainable]

    trainable_weights = trainable_variables

    @property
    def non_trainable_weights(self) -> list[Variable]:
        return [variable for variable in self.weights if not variable.trainable]

    @property
    def metrics(self) -> list[Any]:
        """Empty: metrics belong to the Model; their values are in the logs."""
        return []

    @property
    def metrics_names(self) -> list[str]:
        """The names of the values computed in training."""
        return ["loss"]

    def count_params(self) -> int:
        return sum(int(np.prod(variable.shape)) for variable in self.weights)

    @property
    def layers(self) -> list[Layer]:
        """The network as a single layer, for callbacks that plot weights."""
        return [self.network if isinstance(self.network, keras.Layer) else self]

    def get_weights(self) -> list[np.ndarray]:
        return [np.array(backend.to_numpy(variable)) for variable in self.weights]

    def set_weights(self, weights: Sequence[TensorLike]) -> None:
        for variable, value in zip(self.weights, weights, strict=True):
            variable.assign(value)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: a Cell has no Keras file format."""
        raise checks.fail_type(
            "model.save", "only a keras.Model is saved in Keras's format", self.network,
            "mixtrain's ModelCheckpoint in place of Keras's, or save_weights_only=True",
        )

    def save_weights(self, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write a mixtrain checkpoint of the network and its train network; no suffix is added to the name."""
        path = os.fspath(filepath)
        if os.path.exists(path) and not overwrite:
            raise FileExistsError(f"model.save_weights: expected a new file; got {path!r}. Write overwrite=True.")
        os.replace(write_checkpoint(self._saved_network, f"{path}.ckpt", False, None), path)

    def load_weights(self, filepath: str | os.PathLike[str]) -> None:
        load_param_into_net(self._saved_network, read_checkpoint(os.fspath(filepath)))


def model_view(arguments: CallbackArguments) -> ModelView:
    """Return the model of Keras callbacks; a Keras model is passed as it is, without its train network."""
    network = arguments.get("network")
    if not isinstance(network, keras.Model):
        network = CellModel(network, arguments.get("train_network"))
    return ModelView(network, arguments.get("optimizer"))
