"""Planted faults of float8 products: each is named, with the tensor, the counts and a cure that cures."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import FixedLossScaleManager, Model

L = keras.layers
CURE = "scale by each batch, to_float(mixtrain.float8)"


def network_of(kind: str) -> keras.Model:
    """Return a network whose middle layer multiplies in float8: by Keras's own layer, or by a plan."""
    keras.utils.set_random_seed(1)
    layers = [L.Dense(16, "relu", name="d1"), L.Dense(16, name="d2"), L.Dense(1, name="d3")]
    network = keras.Sequential([keras.Input((16,)), *layers])
    if kind == "quantized":
        layers[1].quantize("float8")
    else:
        mixtrain.to_float(layers[1], mixtrain.float8_delayed)
    return network


def scales_of(model: Model, kind: str) -> dict[str, Any]:
    layer = model.predict_network.get_layer("d2")
    if kind == "quantized":
        return {name: getattr(layer, name) for name in ("inputs_scale", "kernel_scale", "inputs_amax_history")}
    return {name.partition(".")[2]: value for name, value in model._networks.step.histories.items()}


def batches(size: float = 1.0) -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(0)
    x = (draw.standard_normal((64, 16)) * size).astype(np.float32)
    y = (x @ draw.standard_normal((16, 1)) * 0.3).astype(np.float32)
    return [(x[start : start + 16], y[start : start + 16]) for start in range(0, 64, 16)]


def told(model: Model, data: Any, **options: Any) -> list[str]:
    """Train an epoch; return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.train(1, data, verbose=0, **options)
    return [str(warning.message) for warning in caught]


def model_of(kind: str, level: str = "O2", **options: Any) -> Model:
    return Model(
        network_of(kind), "mse", keras.optimizers.SGD(0.0), amp_level=level,
        cast_model_type=None if level == "O0" else "bfloat16", explain_overflow=True, **options,
    )


ROWS = [
    (kind, level, sink) for kind in ("quantized", "plan") for level in ("O0", "O2") for sink in (False, True)
]
rows = pytest.mark.parametrize(
    ("kind", "level", "sink"),
    [row if row == ("quantized", "O0", True) else pytest.param(*row, marks=pytest.mark.slow) for row in ROWS],
)


@pytest.mark.slow
@rows
def test_healthy_scales_are_not_told_of(kind: str, level: str, sink: bool) -> None:
    model = model_of(kind, level)
    assert [text for _ in range(2) for text in told(model, batches(), dataset_sink_mode=sink)] == []


@pytest.mark.slow
@rows
def test_a_scale_of_0_is_named_with_the_layer(kind: str, level: str, sink: bool) -> None:
    model = model_of(kind, level, loss_scale_manager=FixedLossScaleManager(8.0))
    told(model, batches(), dataset_sink_mode=sink)
    scales_of(model, kind)["inputs_scale"].assign(np.float32(0))
    texts = told(model, batches(), dataset_sink_mode=sink)
    # A compiler may drop the NaN of 0 / 0 that it makes, where values are clipped: then no step is skipped.
    texts += [str(record) for record in model.overflows]
    (text, *_) = [text for text in texts if "the float8 scale of" in text]
    assert "d2" in text and f"of its inputs is 0: assign 1 to it, or {CURE}" in text
    mixtrain.to_float(model.predict_network.get_layer("d2"), mixtrain.float8)
    if kind == "plan":
        assert told(model, batches(), dataset_sink_mode=sink) == [] and model.overflows == []


@rows
def test_values_that_are_clipped_are_counted(kind: str, level: str, sink: bool) -> None:
    model = model_of(kind, level)
    told(model, batches(), dataset_sink_mode=sink)
    texts = told(model, batches(1000.0), dataset_sink_mode=sink)
    (text,) = [text for text in texts if "clipped" in text]
    assert "d2, step 1" in text and "of 256 values of its inputs are clipped to" in text and CURE in text


@rows
def test_a_dead_history_is_named(kind: str, level: str, sink: bool) -> None:
    model = model_of(kind, level)
    told(model, batches(), dataset_sink_mode=sink)
    scales = scales_of(model, kind)
    scales["inputs_scale"].assign(np.float32(1e30))
    history = np.zeros(1024, np.float32)
    history[5] = 4.48e32
    scales["inputs_amax_history"].assign(history)
    texts = told(model, batches(), dataset_sink_mode=sink)
    (text,) = [text for text in texts if "become 0" in text]
    assert "values of its inputs become 0 in float8, whose scale is for values up to 4.48e+32" in text and CURE in text
