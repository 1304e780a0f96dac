"""Probabilities that end a network: which layers compute them, and which pass them on to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import keras

from mixtrain.network.ends import Place, ends_of
from mixtrain.network.passing import name_of, names_of, passes_on
from mixtrain.network.walk import children_of, is_cell
from mixtrain.precision.families import family_of, rule_giver

# By the names of classes (Cells, Keras's layers and operations) and functions, in lower case and without "_".
_COMPUTED: Final = {
    "softmax": "softmax", "softmaxv2": "softmax", "softmax2d": "softmax", "softmin": "softmin",
    "logsoftmax": "log_softmax", "logsoftmaxv2": "log_softmax", "sparsemax": "sparsemax",
    "sigmoid": "sigmoid", "logsigmoid": "log_sigmoid", "hardsigmoid": "hard_sigmoid", "hsigmoid": "hard_sigmoid",
    "sparsesigmoid": "sparse_sigmoid",
}


def probability_of(layer: Any) -> str | None:
    """Return which probabilities a layer's last computation gives ("softmax", "sigmoid", ...), or None.

    Args:
        layer: A Cell, Keras layer or operation: one of these itself, or one with such an activation.
    """
    layer = rule_giver(layer)
    names = names_of(layer.__class__)
    return next((_COMPUTED[name] for name in names if name in _COMPUTED), None) or _by_activation(layer)


def _by_activation(layer: Any) -> str | None:
    activation = getattr(layer, "activation", None)
    activation = getattr(activation, "keras_layer", activation)
    if activation is None:
        return None
    # A network may keep an activation for its hidden layers: only one that has no other layers ends in it.
    others = [child for child in children_of(layer).values() if child is not activation]
    if others and family_of(layer) != "recurrent":
        return None
    if isinstance(activation, keras.Operation) or is_cell(activation):
        return probability_of(activation)
    return _COMPUTED.get(name_of(activation))


class FinalProbabilities:
    """The layers that compute the probabilities among a network's outputs, or pass them on.

    Args:
        network: A Cell, Keras layer or model.
    """

    def __init__(self, network: Any) -> None:
        self._computed: dict[int, str] = {}
        self._passed: dict[int, str] = {}
        self._traced: dict[tuple[int, int], str | None] = {}
        self._given_by(network)

    def computed_by(self, layer: Any) -> bool:
        """Whether a layer computes such probabilities."""
        return id(layer) in self._computed

    def reason(self, layer: Any) -> str | None:
        """Return why a layer is to compute in float32, or None where no probabilities ask for it."""
        if id(layer) in self._computed:
            return f"a {self._computed[id(layer)]} that ends the network"
        passed = self._passed.get(id(layer))
        return None if passed is None else f"passes on the {passed} that ends the network"

    def _given_by(self, layer: Any) -> str | None:
        """Return which probabilities a layer gives; "" where it passes on what it is given, None otherwise."""
        found = probability_of(layer)
        if found is not None:
            self._computed[id(layer)] = found
            return found
        if passes_on(rule_giver(layer)):
            return ""
        ends = ends_of(layer)
        return self._joined([self._given(place) for place in ends]) if ends else None

    def _given(self, place: Place) -> str | None:
        """Return which probabilities a call gives, going back through calls that pass them on."""
        if place.key not in self._traced:
            self._traced[place.key] = self._trace(place)
        return self._traced[place.key]

    def _trace(self, place: Place) -> str | None:
        if isinstance(place.layer, keras.layers.InputLayer):
            return ""
        given = self._given_by(place.layer)
        if given != "":
            return given
        found = self._joined([self._given(source) for source in place.sources()])
        if found:
            self._passed[id(place.layer)] = found
        return found

    @staticmethod
    def _joined(given: Sequence[str | None]) -> str | None:
        """Return what several calls give together: probabilities where one gives them."""
        found = next(filter(None, given), None)
        return found if found is not None else None if None in given else ""
