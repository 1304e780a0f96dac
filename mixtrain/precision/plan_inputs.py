"""What a plan was made from: looked at again, it tells whether planning again could come to another plan."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.network.walk import sublayers, tree_of
from mixtrain.precision.own_policy import own_policy
from mixtrain.trace_version import Versions


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
        self._versions = Versions(layers, plans=False)
        in_keras = [layer for layer in layers if isinstance(layer, keras.Layer)]
        self._layers = [[layer, _seen(layer), own_policy(layer)] for layer in in_keras]
        self.built = all(layer.built for layer in in_keras)

    def hold(self) -> bool:
        """Whether a plan made now would be the same: no layer was added, built, or given another rule or policy."""
        return (
            self._versions.hold()
            and not self._keras_layers_changed(also_built=True)
            and keras.config.dtype_policy() is self._default
        )

    def keras_layers_changed(self) -> bool:
        """Whether a Keras layer has other layers below it or another policy: unlike a Cell, it does not tell."""
        return self._keras_layers_changed(also_built=False)

    def _keras_layers_changed(self, *, also_built: bool) -> bool:
        for entry in self._layers:
            layer, seen, policy = entry
            if (layer.built, layer.dtype_policy, sublayers(layer)) != seen:
                now = _seen(layer)
                if own_policy(layer) is not policy or now[2] != seen[2] or (also_built and now[0] is not seen[0]):
                    return True
                # A plan that was put in force, or undone, gave the layer another policy, which is not its own.
                entry[1] = (seen[0], *now[1:])
        return False


def _seen(layer: keras.Layer) -> tuple[bool, Any, list[keras.Layer]]:
    """Return what is looked at of a Keras layer."""
    return layer.built, layer.dtype_policy, list(sublayers(layer))
