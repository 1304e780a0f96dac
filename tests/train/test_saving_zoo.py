"""Networks of the zoo, trained at one level, written in Keras's formats, read by Keras, trained on at another."""

from __future__ import annotations

import json
import pathlib
import zipfile
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import nn
from tests.precision import zoo_more, zoo_networks
from tests.precision.zoo import ZOO, Entry, model_of

# What Keras's loader must be told of: the networks' own classes, nothing of this library's.
CLASSES = {
    kind.__name__: kind
    for kind in (zoo_networks.Subclassed, zoo_networks.Mixer, zoo_networks.Gain, zoo_networks.Block, zoo_networks.Gate,
                 zoo_more.Raw, zoo_more.Holder, zoo_more.Inner)
}
NAMES = ["sequential", "several_ends", "subclassed", "nested", "recurrent", "custom", "raw_variables"]
ENTRIES = [entry for entry in ZOO if entry.name in NAMES]
EXPORTED = [entry for entry in ZOO if entry.name in ("nested", "recurrent", "image_normalizations")]
CASES = [(entry, *pair) for entry in ENTRIES for pair in (("O0", "O2 bfloat16"), ("O2 bfloat16", "O0"))]


def _name(value: Any) -> str:
    return value.name if isinstance(value, Entry) else value.split()[0]


def trained(entry: Entry, column: str) -> tuple[mixtrain.Model, Any]:
    """Return a Model after one step, and its network; the step is not compiled."""
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    network = entry.make()
    model = model_of(network, column)
    model.train(1, [entry.batch()], verbose=0)
    return model, network


def float32_outputs(network: Any, inputs: Any) -> list[np.ndarray]:
    """Return what a network predicts without any plan."""
    applied = mixtrain.amp.applied_plan(network)
    if applied is not None:
        applied.undo()
    return [np.asarray(output) for output in keras.tree.flatten(network(inputs, training=False))]


def dtypes_in(config: Any) -> set[str]:
    """Return the names of all dtype policies in a configuration."""
    if isinstance(config, list):
        return {name for value in config for name in dtypes_in(value)}
    if not isinstance(config, dict):
        return set()
    own = {config["config"]["name"]} if config.get("class_name") == "DTypePolicy" else set()
    return own.union(*(dtypes_in(value) for value in config.values()))


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "column", "after"), CASES, ids=_name)
def test_a_network_comes_back_from_keras_s_file_and_trains_on_at_another_level(
    entry: Entry, column: str, after: str, tmp_path: pathlib.Path
) -> None:
    model, network = trained(entry, column)
    inputs, label = entry.batch()
    model.save(tmp_path / "ours.keras")
    network.save(tmp_path / "keras.keras")
    model.save_weights(tmp_path / "net.weights.h5")
    fresh = entry.make()
    fresh.load_weights(tmp_path / "net.weights.h5")
    expected = float32_outputs(network, inputs)
    for file in ("ours.keras", "keras.keras"):
        written = zipfile.ZipFile(tmp_path / file).read("config.json").decode()
        assert "mixtrain" not in written
        assert dtypes_in(json.loads(written)) <= {"float32"}
        loaded = keras.models.load_model(tmp_path / file, custom_objects=CLASSES)
        for one, other in zip(float32_outputs(loaded, inputs), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(float32_outputs(fresh, inputs), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    again = model_of(loaded, after)
    assert np.isfinite(again.train(1, [(inputs, label)], verbose=0)["loss"]).all()
    half = {dtype.name for dtype in again.precision_report().compute_dtypes()}
    assert half == {"float32"} if after == "O0" else "bfloat16" in half


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("entry", EXPORTED, ids=_name)
def test_an_exported_graph_predicts_what_the_float32_network_predicts(entry: Entry, tmp_path: pathlib.Path) -> None:
    tf = pytest.importorskip("tensorflow")
    model, network = trained(entry, "O2 bfloat16")
    inputs, _ = entry.batch()
    mixtrain.export(network, inputs, file_name=tmp_path / "graph", file_format="SAVED_MODEL")
    assert "mixed_bfloat16" in {layer.dtype_policy.name for layer in network._flatten_layers()}, "the plan is in force"
    del model  # with whom the plan ends
    assert {layer.dtype_policy.name for layer in network._flatten_layers()} == {"float32"}
    serve = tf.saved_model.load(str(tmp_path / "graph")).signatures["serving_default"]
    (result,) = serve(tf.constant(inputs)).values()
    np.testing.assert_allclose(result, float32_outputs(network, inputs)[0], atol=1e-6)
    operations = serve.graph.get_operations()
    assert tf.bfloat16 not in {output.dtype for operation in operations for output in operation.outputs}


def half_cell() -> tuple[Any, np.ndarray, np.ndarray, mixtrain.Model]:
    """Return a network of cells, inputs, what it makes of them in float32, and a Model of it in half precision."""
    cell, images = nn.SequentialCell(nn.Dense(4, 8), nn.LayerNorm((8,)), nn.Dense(8, 3)), np.ones((2, 4), np.float32)
    expected = cell(mixtrain.Tensor(images)).asnumpy()
    model = mixtrain.Model(cell, nn.MSELoss(), nn.SGD(cell.trainable_params(), 0.1), amp_level="O2")
    assert not np.array_equal(model.predict(images).asnumpy(), expected)
    return cell, images, expected, model


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_cell_is_exported_in_float32_too(tmp_path: pathlib.Path) -> None:
    tf = pytest.importorskip("tensorflow")
    cell, images, expected, _ = half_cell()
    mixtrain.export(cell, images, file_name=tmp_path / "graph", file_format="SAVED_MODEL")
    serve = tf.saved_model.load(str(tmp_path / "graph")).signatures["serving_default"]
    (result,) = serve(tf.constant(images)).values()
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_keras_s_own_format_is_refused_for_a_cell(tmp_path: pathlib.Path) -> None:
    *_, model = half_cell()
    with pytest.raises(TypeError, match=r"(?s)Model.save: .*save_checkpoint\(model.predict_network"):
        model.save(tmp_path / "cell.keras")
