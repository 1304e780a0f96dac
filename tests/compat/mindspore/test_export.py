"""Exported networks compute what predict computes; MindSpore's formats and backends that write none are refused."""

from __future__ import annotations

import builtins
import os
import pathlib
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain.errors import UnsupportedBackendError
from mixtrain.serialization import export, load
from tests.backends import ON_TENSORFLOW, quick_every


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.bn = nn.BatchNorm2d(2)
        self.drop = nn.Dropout(p=0.5)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(32, 3)

    def construct(self, x: Any) -> Any:
        return self.fc(self.flatten(self.drop(self.bn(self.conv(x)))))


IMAGES = np.random.default_rng(1).normal(size=(5, 1, 4, 4)).astype(np.float32)


def served(folder: pathlib.Path, *inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a SavedModel computes, by output."""
    tf = pytest.importorskip("tensorflow")
    run = tf.saved_model.load(str(folder)).signatures["serving_default"]
    outputs = run(**{f"input_{index}": tf.constant(value) for index, value in enumerate(inputs)})
    return {name: value.numpy() for name, value in outputs.items()}


@quick_every(2)
@pytest.mark.tensorflow
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_a_saved_model_equals_predict_in_float32_for_any_batch(tmp_path: pathlib.Path, level: str) -> None:
    net = Net()
    expected = mixtrain.Model(net).predict(IMAGES).numpy()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    model = mixtrain.Model(net, nn.MSELoss(), optimizer, amp_level=level, loss_scale_manager=None)
    net.set_train()
    export(net, IMAGES[:2], file_name=str(tmp_path / "net"), file_format="SAVED_MODEL")
    result = served(tmp_path / "net", IMAGES)
    assert list(result) == ["output_0"]
    np.testing.assert_allclose(result["output_0"], expected, atol=1e-6)
    assert all(cell.training for _, cell in net.cells_and_names()), "back in training mode"
    assert model.precision_report().level == level


@pytest.mark.tensorflow
def test_inputs_may_be_described_by_tensors_of_unknown_sizes(tmp_path: pathlib.Path) -> None:
    net = Net()
    described = mixtrain.Tensor(shape=[None, *IMAGES.shape[1:]], dtype=mixtrain.float32)
    export(net, described, file_name=str(tmp_path / "net"), file_format="SAVED_MODEL")
    expected = mixtrain.Model(net).predict(IMAGES).numpy()
    np.testing.assert_allclose(served(tmp_path / "net", IMAGES)["output_0"], expected, atol=1e-6)


@pytest.mark.tensorflow
def test_a_keras_model_a_function_and_a_network_of_a_fixed_batch_are_written_too(tmp_path: pathlib.Path) -> None:
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2), keras.layers.Dropout(0.5)])
    x = np.ones((3, 4), np.float32)
    export(net, x, file_name=str(tmp_path / "keras"), file_format="SAVED_MODEL")
    np.testing.assert_allclose(served(tmp_path / "keras", x)["output_0"], net(x).numpy(), atol=1e-6)
    export(lambda a, b: (a + b, a * b), x, 2 * x, file_name=str(tmp_path / "two"), file_format="SAVED_MODEL")
    assert {name: value[0, 0] for name, value in served(tmp_path / "two", x, x).items()} == {
        "output_0": 2.0, "output_1": 1.0,
    }
    fixed = str(tmp_path / "one")
    export(lambda a: keras.ops.ones((4 // int(a.shape[0]),)), x, file_name=fixed, file_format="SAVED_MODEL")
    assert served(tmp_path / "one", x)["output_0"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"file_format": "MINDIR"}, ValueError, "SAVED_MODEL.*ONNX"),
        ({"file_format": "AIR"}, ValueError, "SAVED_MODEL.*ONNX"),
        ({"file_format": "PTH"}, ValueError, "SAVED_MODEL, ONNX"),
        ({"file_format": "SAVED_MODEL", "enc_key": b"0"}, TypeError, "enc_key"),
        ({"file_format": "SAVED_MODEL", "file_name": 3}, TypeError, "file_name must be a str"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    tmp_path: pathlib.Path, arguments: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        export(nn.Dense(4, 2), np.ones((1, 4)), **{"file_name": str(tmp_path / "a"), **arguments})
    assert os.listdir(tmp_path) == []


def test_an_input_and_a_network_are_needed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="example of each input"):
        export(nn.Dense(1, 1), file_name="a", file_format="SAVED_MODEL")
    with pytest.raises(TypeError, match="net must be a Cell"):
        export(3, np.ones(1), file_name="a", file_format="SAVED_MODEL")


@pytest.mark.tensorflow
def test_onnx_without_its_extra_names_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name in ("onnx", "tf2onnx"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"mixtrain\[onnx\]"):
        export(nn.Dense(4, 2), np.ones((1, 4), np.float32), file_name=str(tmp_path / "a"), file_format="ONNX")


@pytest.mark.tensorflow
def test_an_onnx_model_equals_predict(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tf2onnx")
    reference = pytest.importorskip("onnx.reference")
    net = Net()
    export(net, IMAGES[:2], file_name=str(tmp_path / "net"), file_format="ONNX")
    run = reference.ReferenceEvaluator(str(tmp_path / "net.onnx"))
    result = run.run(None, {run.input_names[0]: IMAGES})[0]
    np.testing.assert_allclose(result, mixtrain.Model(net).predict(IMAGES).numpy(), atol=1e-5)


@pytest.mark.skipif(ON_TENSORFLOW, reason="about backends that write no files")
@pytest.mark.parametrize("kind", ["SAVED_MODEL", "ONNX"])
def test_another_backend_says_where_to_export(tmp_path: pathlib.Path, kind: Any) -> None:
    net = nn.Dense(4, 2)
    with pytest.raises(UnsupportedBackendError, match="^export: expected TensorFlow.*jax.*save_checkpoint"):
        export(net, np.ones((1, 4), np.float32), file_name=str(tmp_path / "a"), file_format=kind)
    assert os.listdir(tmp_path) == []


def test_mindspores_graphs_are_not_loaded() -> None:
    with pytest.raises(ValueError, match="lenet.mindir.*load_checkpoint"):
        load("lenet.mindir")
