"""`PlanInputs`: what a plan depends on, to skip planning again while it is unchanged."""

from __future__ import annotations

import keras

from mixtrain.network.walk import sublayers, tree_of
from mixtrain.precision.own_policy import own_policy
from mixtrain.trace_version import Versions
from mixtrain.typing import Network


class PlanInputs:
    """Snapshot of the layers of a network with their rules and dtype policies, taken when a plan is made."""

    def __init__(self, network: Network) -> None:
        layers = [node.layer for node in tree_of(network).walk()]
        self._default = keras.config.dtype_policy()
        self._versions = Versions(layers, plans=False)
        keras_layers = [layer for layer in layers if isinstance(layer, keras.Layer)]
        self._layers = [[layer, _state(layer), own_policy(layer)] for layer in keras_layers]
        self.built = all(layer.built for layer in keras_layers)

    def unchanged(self) -> bool:
        """Whether a plan made now would be the same: no layer was added or built, and no rule or policy changed."""
        return (
            self._versions.unchanged() and not self.keras_layers_changed(also_built=True)
            and keras.config.dtype_policy() is self._default
        )

    def keras_layers_changed(self, *, also_built: bool = False) -> bool:
        """Whether the sublayers or the policy of a Keras layer changed; a Cell counts its changes in its version."""
        for entry in self._layers:
            layer, previous, policy = entry
            if (layer.built, layer.dtype_policy, sublayers(layer)) != previous:
                built, current_policy, below = _state(layer)
                if own_policy(layer) is not policy or below != previous[2] or (also_built and built is not previous[0]):
                    return True
                # Applying or undoing a plan replaced the layer's policy, but not the user's own. Recording the new one
                # keeps the comparison above cheap.
                entry[1] = (previous[0], current_policy, below)
        return False


def _state(layer: keras.Layer) -> tuple[bool, keras.dtype_policies.DTypePolicy, list[keras.Layer]]:
    """Return what a plan depends on in a Keras layer."""
    return layer.built, layer.dtype_policy, list(sublayers(layer))
