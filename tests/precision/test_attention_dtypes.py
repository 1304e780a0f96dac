"""Attention gets half queries, keys and values: a device's fused (flash) attention takes no others."""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, backend
from mixtrain.backend.info import DeviceInfo
from tests.backends import ON_TENSORFLOW, quick_every

LEVELS = {
    "O2": ("O2", "float16"),
    "O2 bfloat16": ("O2", "bfloat16"),
    "O3": ("O3", "float16"),
    "auto": ("auto", "float16"),
    "auto bfloat16": ("auto", "bfloat16"),
}
LAYERS = {
    "multi-head": lambda: keras.layers.MultiHeadAttention(2, 8),
    "grouped query": lambda: keras.layers.GroupQueryAttention(8, 4, 2),
}


@quick_every(13)
@pytest.mark.parametrize("attention", LAYERS)
@pytest.mark.parametrize("name", LEVELS)
def test_queries_keys_and_values_are_half_where_attention_is_computed(
    name: str, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    level, half = LEVELS[name]
    # "auto" is O2 on a GPU.
    monkeypatch.setattr(backend, "describe_device", lambda: DeviceInfo("GPU", "a GPU", fast_bfloat16=True))
    tokens = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(10, 16)(tokens)
    x = keras.layers.LayerNormalization()(keras.layers.Add()([x, LAYERS[attention]()(x, x)]))
    network = keras.Model(tokens, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling1D()(x)))
    model = Model(
        network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.SGD(0.1),
        amp_level=level, cast_model_type=half, loss_scale_manager=DynamicLossScaleManager(16),
    )
    dtypes: list[str] = []

    def spied(function: Any) -> Any:
        def call(query: Any, key: Any, value: Any, **options: Any) -> Any:
            dtypes.extend(keras.backend.standardize_dtype(tensor.dtype) for tensor in (query, key, value))
            return function(query=query, key=key, value=value, **options)

        return call

    # The module of operations in which Keras's layers look it up.
    operations = sys.modules[keras.ops.dot_product_attention.__module__.rpartition(".")[0]]
    monkeypatch.setattr(operations, "dot_product_attention", spied(operations.dot_product_attention))
    if not ON_TENSORFLOW:
        import jax

        monkeypatch.setattr(jax.nn, "dot_product_attention", spied(jax.nn.dot_product_attention))
    draw = np.random.default_rng(0)
    batch = draw.integers(0, 10, (4, 6), np.int32), draw.integers(0, 3, 4, np.int32)
    losses = model.train(1, [batch], verbose=0)["loss"]
    assert np.all(np.isfinite(losses))
    assert len(dtypes) >= 3 and set(dtypes) == {half}
