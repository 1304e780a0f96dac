"""What a plan was made from: looked at again, it tells whether planning again could come to another plan."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.network.walk import sublayers, tree_of
from mixtrain.precision.own_policy import own_policy
from mixtrain.trace_version import version_of


class PlanInputs:
    """A network's layers, with their users' rules and dtype policies, as they were when a plan was made.

    Args:
        network: A Cell, Keras layer or Keras model.

    Attributes:
        built: Whether every Keras layer has its variables.
    """

    def __init__(self, network: Any) -> None:
        layers = [node.layer for node in tree_of(network).walk()]
        self._default = keras.config.dtype_policy()
        self._stamps = [(layer, version_of(layer).stamp) for layer in layers]
        in_keras = [layer for layer in layers if isinstance(layer, keras.Layer)]
        self._layers = [(layer, own_policy(layer), layer.built, list(sublayers(layer))) for layer in in_keras]
        self.built = all(layer.built for layer in in_keras)

    def hold(self) -> bool:
        """Whether a plan made now would be the same: no layer was added, built, or given another rule or policy."""
        for layer, stamp in self._stamps:
            if version_of(layer).stamp != stamp:
                return False
        for layer, _, built, _ in self._layers:
            if layer.built is not built:
                return False
        return not self.keras_layers_changed() and keras.config.dtype_policy() is self._default

    def keras_layers_changed(self) -> bool:
        """Whether a Keras layer has other layers below it or another policy: unlike a Cell, it does not tell."""
        for layer, policy, _, below in self._layers:
            if own_policy(layer) is not policy or sublayers(layer) != below:
                return True
        return False
