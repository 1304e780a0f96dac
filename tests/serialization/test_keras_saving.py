"""A Keras network trained in half is written in Keras's own formats, plain float32, and comes back at any level."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain import backend
from mixtrain.precision.levels import AmpLevel
from tests.backends import ON_KERAS_3_10, quick_every

IMAGES = np.random.default_rng(0).normal(size=(8, 6, 6, 1)).astype(np.float32)
LABELS = np.arange(8, dtype=np.int32) % 3


def functional() -> keras.Model:
    """Return a network with a normalization, which O2 keeps in float32, and a nested model."""
    layers = keras.layers
    head = keras.Sequential([keras.Input((4,)), layers.Dense(5, activation="relu"), layers.Dense(3)], name="head")
    images = keras.Input((6, 6, 1))
    x = layers.BatchNormalization()(layers.Conv2D(4, 3)(images))
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(x))
    return keras.Model(images, head(layers.LayerNormalization()(x)))


def model_of(network: Any, level: AmpLevel, half: str = "float16") -> mixtrain.Model:
    return mixtrain.Model(
        network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.SGD(0.1),
        amp_level=level, cast_model_type=half, loss_scale_manager=mixtrain.DynamicLossScaleManager(1024.0),
    )


def trained(level: AmpLevel, half: str = "float16") -> mixtrain.Model:
    """Return a model after two steps."""
    keras.utils.set_random_seed(3)
    model = model_of(functional(), level, half)
    model.train(2, [(IMAGES, LABELS)], verbose=0)
    return model


@pytest.fixture(scope="module")
def half_trained() -> mixtrain.Model:
    """Return a model after two steps at O2."""
    return trained("O2")


def predicted_by(model: mixtrain.Model) -> np.ndarray:
    return backend.to_numpy(model.predict(IMAGES))


def policies(network: keras.Model) -> list[str]:
    """Return each layer's policy, in nested models too."""
    layers = [layer for layer in network._flatten_layers() if not isinstance(layer, keras.Model)]
    return [layer.dtype_policy.name for layer in layers]


@pytest.mark.slow
def test_the_file_is_a_plain_float32_model_of_the_same_weights(
    half_trained: mixtrain.Model, tmp_path: pathlib.Path
) -> None:
    network = half_trained.predict_network
    before = policies(network)
    assert "mixed_float16" in before
    predicted = predicted_by(half_trained)
    half_trained.save(tmp_path / "net.keras")
    assert policies(network) == before, "the plan is in force again"
    np.testing.assert_array_equal(predicted_by(half_trained), predicted)

    loaded = keras.models.load_model(tmp_path / "net.keras")
    assert set(policies(loaded)) == {"float32"}
    for one, other in zip(network.weights, loaded.weights, strict=True):
        assert other.dtype == "float32" or "seed" in other.path
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(loaded.predict(IMAGES, verbose=0), predicted, atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("level", "half"), [("O0", "float16"), ("O3", "bfloat16")])
def test_a_file_of_an_o2_run_trains_at_another_level(
    half_trained: mixtrain.Model, tmp_path: pathlib.Path, level: AmpLevel, half: str
) -> None:
    half_trained.save(tmp_path / "net.keras")
    again = model_of(keras.models.load_model(tmp_path / "net.keras"), level, half)
    expected = predicted_by(half_trained)
    np.testing.assert_allclose(predicted_by(again), expected, atol=5e-3 if level == "O0" else 4e-2)
    dense = again.predict_network.get_layer("head").layers[-1]
    assert dense.compute_dtype == ("float32" if level == "O0" else "bfloat16")
    assert np.isfinite(again.train(1, [(IMAGES, LABELS)], verbose=0)["loss"]).all()


@pytest.mark.slow
def test_a_file_of_a_float32_run_trains_at_o2(tmp_path: pathlib.Path) -> None:
    whole = trained("O0")
    whole.save(tmp_path / "net.keras")
    again = model_of(keras.models.load_model(tmp_path / "net.keras"), "O2")
    np.testing.assert_allclose(predicted_by(again), predicted_by(whole), atol=5e-3)
    assert "mixed_float16" in policies(again.predict_network)
    assert np.isfinite(again.train(1, [(IMAGES, LABELS)], verbose=0)["loss"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".weights.h5", ".keras"])
def test_weights_go_from_one_level_to_another_and_to_keras(
    half_trained: mixtrain.Model, tmp_path: pathlib.Path, suffix: str
) -> None:
    path = str(tmp_path / f"net{suffix}")
    (half_trained.save_weights if suffix == ".weights.h5" else half_trained.save)(path)
    network = half_trained.predict_network
    for load, fresh in _loaders():
        load(path)
        for one, other in zip(network.weights, fresh.weights, strict=True):
            np.testing.assert_array_equal(one, other)


def _loaders() -> list[tuple[Callable[[str], None], keras.Model]]:
    plain, planned = functional(), functional()
    return [(plain.load_weights, plain), (model_of(planned, "O3").load_weights, planned)]


def test_keras_own_save_of_a_planned_network_writes_no_policy_of_the_plan(
    half_trained: mixtrain.Model, tmp_path: pathlib.Path
) -> None:
    network = half_trained.predict_network
    network.save(tmp_path / "net.keras")
    network.save_weights(tmp_path / "net.weights.h5")
    loaded = keras.models.load_model(tmp_path / "net.keras")
    result = loaded.predict(IMAGES, verbose=0).astype(np.float32)
    np.testing.assert_allclose(result, predicted_by(half_trained), atol=5e-3)
    assert set(policies(loaded)) == {"float32"} and "mixed_float16" in policies(network)
    assert set(policies(keras.models.clone_model(network))) == {"float32"}
    functional().load_weights(tmp_path / "net.weights.h5")


def test_a_policy_of_the_users_own_is_written_as_it_is(tmp_path: pathlib.Path) -> None:
    layers = [keras.Input((4,)), keras.layers.Dense(2, dtype="mixed_bfloat16"), keras.layers.Dense(2)]
    network = keras.Sequential(layers)
    model = mixtrain.Model(network, amp_level="O3", cast_model_type="float16")
    model.precision_report()
    model.save(tmp_path / "net.keras")
    loaded = keras.models.load_model(tmp_path / "net.keras")
    assert [layer.dtype_policy.name for layer in loaded.layers] == ["mixed_bfloat16", "float32"]


@pytest.mark.slow
def test_saving_does_not_compile_the_step_anew(tmp_path: pathlib.Path) -> None:
    class Saver(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            model.save(tmp_path / f"{epoch}.keras")

    traces = []

    class Counting(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            traces.append(str(x.dtype))
            return x

        def get_config(self) -> dict[str, Any]:
            return super().get_config()

    model = model_of(keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), Counting()]), "O2")
    batches = [(np.ones((4, 4), np.float32), LABELS[:4])]
    model.train(1, batches, verbose=0)
    before = len(traces)
    model.train(4, batches, callbacks=[Saver()], initial_epoch=1, verbose=0)
    assert len(traces) == before and len(list(tmp_path.iterdir())) == 3


@quick_every(2)
@pytest.mark.tensorflow
# Keras 3.10 warns of what it loaded itself.
@pytest.mark.filterwarnings(f"{'ignore' if ON_KERAS_3_10 else 'error'}:The structure of `inputs`")
@pytest.mark.parametrize("way", ["mixtrain", "keras"])
def test_an_exported_graph_infers_in_float32(half_trained: mixtrain.Model, tmp_path: pathlib.Path, way: str) -> None:
    tf = pytest.importorskip("tensorflow")
    network = half_trained.predict_network
    half_trained.save(tmp_path / "net.keras")
    plain = keras.models.load_model(tmp_path / "net.keras")
    folder = str(tmp_path / "graph")
    if way == "mixtrain":
        mixtrain.export(network, IMAGES[:1], file_name=folder, file_format="SAVED_MODEL")
    else:
        plain.export(folder, verbose=False)
    serve = tf.saved_model.load(folder).signatures["serving_default"]
    (result,) = serve(tf.constant(IMAGES)).values()
    operations = serve.graph.get_operations()
    np.testing.assert_allclose(result, plain(IMAGES), atol=1e-6)
    assert result.dtype == tf.float32
    assert not [op.name for op in operations for output in op.outputs if output.dtype in (tf.float16, tf.bfloat16)]
    assert "mixed_float16" in policies(network), "the plan is in force again"


def test_what_cannot_be_saved_is_refused_with_what_to_write(
    half_trained: mixtrain.Model, tmp_path: pathlib.Path
) -> None:
    cell = mixtrain.Model(nn.Dense(2, 1))
    with pytest.raises(TypeError, match=r"Model.save: .*save_checkpoint\(model.predict_network"):
        cell.save(tmp_path / "net.keras")
    with pytest.raises(TypeError, match="Model.load_weights: .*load_param_into_net"):
        cell.load_weights(tmp_path / "net.weights.h5")
    with pytest.raises(ValueError, match=r"filepath must end in .keras; got 'net.h5'"):
        half_trained.save("net.h5")
    with pytest.raises(ValueError, match=r"must end in .weights.h5; got 'net.keras'"):
        half_trained.save_weights("net.keras")
    with pytest.raises(FileNotFoundError, match=r"Model.load_weights: .*none.weights.h5"):
        half_trained.load_weights(tmp_path / "none.weights.h5")
    with pytest.raises(ValueError, match=r"Write model.build\(train_dataset\)"):
        mixtrain.Model(keras.Sequential([keras.layers.Dense(2)])).save(tmp_path / "net.keras")
    there = tmp_path / "there.keras"
    there.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"overwrite=True"):
        half_trained.save(there, overwrite=False)
    assert there.read_bytes() == b"mine" and list(tmp_path.iterdir()) == [there]
