"""Networks that XLA does not compile: trained in the plain graph where nobody asked for XLA, else refused in a word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import quick_only_some
from tests.train.test_step_groups import Watching, groups

__all__ = ["groups"]
pytestmark = pytest.mark.tensorflow
ON_CPU = pytest.mark.skipif(backend.describe_device().kind != "CPU", reason="the backend chooses XLA on a CPU")
L = keras.layers
_draw = np.random.default_rng(0)
X = _draw.uniform(0, 1, (12, 8, 8, 3)).astype(np.float32)
Y = _draw.uniform(0, 1, (12, 2)).astype(np.float32)
DATA = [(X[at : at + 2], Y[at : at + 2]) for at in range(0, 12, 2)]


def _network(middle: Callable[[Any], Any]) -> keras.Model:
    """Return a network of a middle part and a layer whose float16 products are XLA's."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((8, 8, 3))
    x = L.SeparableConv2D(4, 3, name="separable")(middle(inputs))
    return keras.Model(inputs, L.Dense(2)(L.GlobalAveragePooling2D()(x)))


def beside_a_branch() -> keras.Model:
    def middle(inputs: Any) -> Any:
        x = L.BatchNormalization()(inputs)
        wide = L.UpSampling2D(interpolation="bilinear")(x)
        return L.Add()([L.MaxPooling2D()(wide), L.MaxPooling2D(3, strides=1, padding="same")(x)])

    return _network(middle)


def bicubic_resizing() -> keras.Model:
    return _network(L.Resizing(6, 6, interpolation="bicubic", name="resized"))


def bicubic_upsampling() -> keras.Model:
    return _network(lambda inputs: L.UpSampling2D(interpolation="bicubic")(L.Conv2D(3, 1)(inputs)))


def elastic() -> keras.Model:
    return _network(L.RandomElasticTransform(seed=3, factor=1.0))


REFUSED = quick_only_some([
    (beside_a_branch, "O2", "host"), (bicubic_resizing, "O2", "sink"), (beside_a_branch, "O2", "groups"),
    (beside_a_branch, "O2", "sink"), (beside_a_branch, "O3", "host"), (bicubic_upsampling, "O1", "host"),
    (elastic, "O1", "groups"),
], (0, 1))


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What the log has said of XLA's refusals since it was last asked."""
    caplog.set_level(logging.INFO, "mixtrain")

    def refusals() -> list[str]:
        results = [record.message for record in caplog.records if "XLA does not compile" in record.message]
        caplog.clear()
        return results

    yield refusals


def _model(network: keras.Model, level: str = "O2", **options: Any) -> Model:
    return Model(
        network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(0.1, momentum=0.9), metrics={"mse"},
        amp_level=level, loss_scale_manager=DynamicLossScaleManager(8.0, scale_window=4), **options,
    )


def _trained(make: Callable[[], keras.Model], level: str, feed: str) -> tuple[Any, list[np.ndarray]]:
    """Train for two epochs; return every step's loss and scale, and the variables."""
    network, watch = make(), Watching()
    model = _model(network, level)
    data = NumpySlicesDataset((X, Y), shuffle=False).batch(2) if feed == "sink" else DATA
    model.train(2, data, callbacks=[watch], dataset_sink_mode=feed == "sink", verbose=0)
    return (watch.losses, watch.scales), [backend.to_numpy(variable) for variable in network.variables]


@pytest.mark.slow
@ON_CPU
@pytest.mark.parametrize(("make", "level", "feed"), REFUSED, ids=lambda value: getattr(value, "__name__", value))
def test_what_xla_refuses_trains_in_the_plain_graph_with_its_numbers(
    make: Any, level: str, feed: str, log: Any, request: pytest.FixtureRequest
) -> None:
    if feed == "groups":
        request.getfixturevalue("groups")
    seen, variables = _trained(make, level, feed)
    assert len(log()) == 1
    mixtrain.set_context(jit_level="O0")
    expected, expected_variables = _trained(make, level, feed)
    assert seen == expected and len(seen[0]) == 12
    for one, other in zip(variables, expected_variables, strict=True):
        np.testing.assert_array_equal(one, other)
    assert log() == []


@pytest.mark.slow
@ON_CPU
def test_evaluation_and_prediction_fall_back_once_each(log: Any) -> None:
    network = bicubic_resizing()
    model = _model(network)
    results = [model.eval(DATA)["mse"] for _ in range(2)]
    assert len(log()) == 1
    outputs = [backend.to_numpy(model.predict(X[:2])) for _ in range(2)]
    assert len(log()) == 1
    mixtrain.set_context(jit_level="O0")
    assert results == [model.eval(DATA)["mse"]] * 2
    for output in outputs:
        np.testing.assert_array_equal(output, backend.to_numpy(model.predict(X[:2])))


@pytest.mark.slow
@ON_CPU
def test_the_note_names_the_layer_and_the_reason_in_one_line(log: Any) -> None:
    _model(bicubic_resizing()).train(1, DATA, verbose=0)
    (note,) = log()
    assert note.startswith("compile: XLA off (XLA does not compile ") and "/resized" in note and "ResizeBicubic" in note
    assert "\n" not in note and len(note) < 300


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_xla_that_a_user_asked_for_is_refused_with_what_to_write(sink: bool) -> None:
    mixtrain.set_context(jit_level="O1")
    network = bicubic_resizing()
    before = [backend.to_numpy(variable) for variable in network.variables]
    data = NumpySlicesDataset((X, Y), shuffle=False).batch(2) if sink else DATA
    message = r'set_context\(jit_level="O1"\): .*XLA does not compile .*/resized.*Write set_context\(jit_level="auto"\)'
    with pytest.raises(ValueError, match=message):
        _model(network).train(1, data, dataset_sink_mode=sink, verbose=0)
    for variable, value in zip(network.variables, before, strict=True):
        np.testing.assert_array_equal(backend.to_numpy(variable), value)


@ON_CPU
@pytest.mark.parametrize("sink", [False, True])
def test_what_is_wrong_with_the_data_is_said_of_the_data(sink: bool, log: Any) -> None:
    """XLA refuses columns that do not fit, too; the plain graph says what is wrong with them, and XLA stays on."""
    inputs = keras.Input((None, None, 3))
    network = keras.Model(inputs, L.Dense(2)(L.GlobalAveragePooling2D()(L.SeparableConv2D(4, 3)(inputs))))
    labels = np.zeros((12, 5), np.float32)
    data = NumpySlicesDataset((X, labels), shuffle=False).batch(2) if sink else [(X[:2], labels[:2])]
    with pytest.raises(ValueError, match="shape"):
        _model(network).train(1, data, dataset_sink_mode=sink, verbose=0)
    assert log() == []


@pytest.mark.slow
def test_a_function_under_jit_falls_back_too(log: Any) -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        backend.call_python(lambda values: seen.append(values.tolist()), [x])
        return x * 2

    half = mixtrain.Tensor([1.0], mixtrain.float16)
    run = mixtrain.jit(function)
    assert [backend.to_numpy(run(half)).tolist() for _ in range(2)] == [[2.0]] * 2
    assert seen == [[1.0]] * 2
    assert len(log()) == (backend.describe_device().kind == "CPU")
    with pytest.raises(ValueError, match=r'jit\(jit_level="O1"\): .*jit without jit_level'):
        mixtrain.jit(function, jit_level="O1")(half)
