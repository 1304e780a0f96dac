"""A user's Keras layer whose code does not work in half precision says how to keep it in float32."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model

X, Y = np.ones((4, 4), np.float32), np.zeros((4, 1), np.float32)


class Spectrum(keras.layers.Layer):
    """Mixes by a Fourier transform, which has no half precision."""

    def call(self, inputs: Any) -> Any:
        if inputs.dtype != "float32":  # What the backends raise has their words.
            raise TypeError(f"no Fourier transform of {inputs.dtype}")
        return keras.ops.fft2((inputs, keras.ops.zeros_like(inputs)))[0]


class Block(keras.layers.Layer):
    """A layer with the other inside."""

    def __init__(self, inner: keras.layers.Layer) -> None:
        super().__init__()
        self.inner = inner

    def call(self, inputs: Any) -> Any:
        return self.inner(inputs)


def network(layer: keras.layers.Layer) -> Any:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), layer, keras.layers.Dense(1)])


def train(net: Any, level: Any = "O2") -> float:
    return Model(net, "mse", keras.optimizers.SGD(0.001), amp_level=level).train(1, [(X, Y)], verbose=0)["loss"][0]


def test_the_error_names_the_layer_its_rule_and_the_line_to_write_once() -> None:
    for layer, path in ((Spectrum(name="mix"), "mix"), (Block(Spectrum(name="mix")), "block")):
        with pytest.raises(TypeError, match="no Fourier transform of") as caught:
            train(network(layer))
        words = str(caught.value)
        assert words.count("mixtrain.to_float(layer, mixtrain.float32).") == 1
        assert f"(Spectrum {path}" in words and "computes in float16: O2, the level's default." in words


@pytest.mark.slow
def test_the_line_works_and_gives_almost_the_numbers_of_float32() -> None:
    layer = Spectrum()
    kept = train(network(mixtrain.to_float(layer, mixtrain.float32)))
    np.testing.assert_allclose(kept, train(network(Spectrum()), "O0"), rtol=0.01)


def test_a_lambda_is_the_users_code_too() -> None:
    def half_only(inputs: Any) -> Any:
        if inputs.dtype == "float16":
            raise ValueError("half the range")
        return inputs

    with pytest.raises(ValueError, match=r"half the range\n\(Lambda double computes in float16"):
        train(network(keras.layers.Lambda(half_only, name="double")))


@pytest.mark.parametrize("error", [KeyError("rows"), UnicodeError("a kind of ValueError"), RuntimeError("busy")])
def test_other_errors_of_a_layer_come_as_they_are(error: Exception) -> None:
    class Failing(keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            if inputs.dtype == "float16":
                raise error
            return inputs

    with pytest.raises(Exception, match=str(error.args[0])) as caught:
        train(network(Failing()))
    assert "to_float" not in str(caught.value)


def test_a_call_with_wrong_arguments_is_no_matter_of_precision() -> None:
    block = network(Spectrum()).layers[1]
    Model(keras.Sequential([keras.Input((4,)), block, keras.layers.Dense(1)]), "mse", "sgd", amp_level="O2")
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'") as caught:
        block.call(X, axis=1)
    assert "to_float" not in str(caught.value)


def test_layers_of_keras_and_layers_in_float32_are_not_wrapped() -> None:
    net = network(Spectrum())
    mixtrain.to_float(net.layers[1], mixtrain.float32)
    Model(net, "mse", "sgd", amp_level="O2")
    assert not any("call" in vars(layer) for layer in net.layers[:2])
