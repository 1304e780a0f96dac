"""Probabilities at the end of a network: which layers compute them, and which pass them on to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import keras

from mixtrain.network.output_calls import CallSite, output_calls
from mixtrain.network.value_preserving import name_of, names_of, preserves_values
from mixtrain.network.walk import children_of, is_cell
from mixtrain.precision.families import family_of, rule_giver
from mixtrain.typing import Layer, Network

# Keys are names of classes (Cells, Keras layers and operations) and functions, in lower case and without "_".
_COMPUTED: Final = {
    "softmax": "softmax", "softmaxv2": "softmax", "softmax2d": "softmax", "softmin": "softmin",
    "logsoftmax": "log_softmax", "logsoftmaxv2": "log_softmax", "sparsemax": "sparsemax",
    "sigmoid": "sigmoid", "logsigmoid": "log_sigmoid", "hardsigmoid": "hard_sigmoid", "hsigmoid": "hard_sigmoid",
    "sparsesigmoid": "sparse_sigmoid",
}


def probability_of(layer: Layer) -> str | None:
    """Return the kind of probabilities that a layer computes last ("softmax", "sigmoid", ...), or None."""
    layer = rule_giver(layer)
    names = names_of(layer.__class__)
    return next((_COMPUTED[name] for name in names if name in _COMPUTED), None) or _by_activation(layer)


def _by_activation(layer: Layer) -> str | None:
    activation = getattr(layer, "activation", None)
    activation = getattr(activation, "keras_layer", activation)
    if activation is None:
        return None
    # A network may have an attribute `activation` for its hidden layers. Only a layer without sublayers ends in it.
    others = [child for child in children_of(layer).values() if child is not activation]
    if others and family_of(layer) != "recurrent":
        return None
    if isinstance(activation, keras.Operation) or is_cell(activation):
        return probability_of(activation)
    return _COMPUTED.get(name_of(activation))


class FinalProbabilities:
    """The layers that compute probabilities among the outputs of a network, or pass them on.

    `network`: A Cell, Keras layer or model. `*others`: Layers inside of it whose outputs leave the network too.
    """

    def __init__(self, network: Network, *others: Layer) -> None:
        self._computed: dict[int, str] = {}
        self._passed: dict[int, str] = {}
        self._traced: dict[tuple[int, int], str | None] = {}
        for ending in (network, *others):
            self._returned_by(ending)

    def computed_by(self, layer: Layer) -> bool:
        return id(layer) in self._computed

    def reason(self, layer: Layer) -> str | None:
        """Return why a layer has to compute in float32, or None if no probabilities require it."""
        if id(layer) in self._computed:
            return f"a {self._computed[id(layer)]} that ends the network"
        passed = self._passed.get(id(layer))
        return None if passed is None else f"passes on the {passed} that ends the network"

    # The kinds below are the name of a function; "" for a layer that passes its inputs on; None for anything else.
    def _returned_by(self, layer: Layer) -> str | None:
        kind = probability_of(layer)
        if kind is not None:
            self._computed[id(layer)] = kind
            return kind
        if preserves_values(rule_giver(layer)):
            return ""
        ends = output_calls(layer)
        return self._joined([self._returned_by_call(call) for call in ends]) if ends else None

    def _returned_by_call(self, call: CallSite) -> str | None:
        """Return the kind of a call's outputs, following calls that pass their inputs on back to their sources."""
        if call.key not in self._traced:
            self._traced[call.key] = self._trace(call)
        return self._traced[call.key]

    def _trace(self, call: CallSite) -> str | None:
        if isinstance(call.layer, keras.layers.InputLayer):
            return ""
        kind = self._returned_by(call.layer)
        if kind != "":
            return kind
        kind = self._joined([self._returned_by_call(source) for source in call.sources()])
        if kind:
            self._passed[id(call.layer)] = kind
        return kind

    @staticmethod
    def _joined(kinds: Sequence[str | None]) -> str | None:
        """Return the kind of several outputs together: probabilities if one of them is."""
        kind = next(filter(None, kinds), None)
        return kind if kind is not None else None if None in kinds else ""
