"""Rebuilding the functions that Keras compiled for its own `fit`, `evaluate` and `predict` when a plan changes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Final

import keras

from mixtrain.typing import Layer, Network

# For each planned network: the ids of its layers, and the Keras models among them.
_NETWORKS: Final[weakref.WeakKeyDictionary[Network, tuple[frozenset[int], tuple[weakref.ref[keras.Model], ...]]]] = (
    weakref.WeakKeyDictionary()
)


def record_network(network: Network, layers: Iterable[Layer]) -> None:
    layers = list(layers)
    models = tuple(weakref.ref(layer) for layer in layers if isinstance(layer, keras.Model))
    if models:
        _NETWORKS[network] = frozenset(map(id, layers)), models


def rebuild_functions(changed: set[int]) -> None:
    """Let Keras rebuild the functions that it compiled for models with a layer of these ids.

    Keras traces such a function once; without a rebuild it would go on computing in the earlier precision.
    """
    for layers, models in list(_NETWORKS.values()):
        if layers.isdisjoint(changed):
            continue
        for model in filter(None, (reference() for reference in models)):
            for name in ("train", "test", "predict"):
                if getattr(model, f"{name}_function", None) is not None:
                    getattr(model, f"make_{name}_function")(force=True)
