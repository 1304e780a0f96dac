"""What a Keras network computes its loss from, and the columns that it is called with."""

from __future__ import annotations

from typing import Any

import keras
import pytest

from mixtrain.step.own_loss import computed_loss, inputs_of


def test_keras_keeps_the_loss_that_a_model_was_compiled_with_under_the_name_that_is_lent() -> None:
    """A private name of Keras's: should it move, `super().compute_loss` would leave the loss function out."""
    network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    assert network._compile_loss is None
    network.compile("sgd", "mse")
    kept = network._compile_loss
    assert kept is not None
    result = computed_loss(network, lambda outputs, label: outputs + label, (0.0, 3.0), 4.0, training=True)
    assert float(result) == 7.0
    assert network._compile_loss is kept


def test_a_compute_loss_that_returns_nothing_is_an_error() -> None:
    class Forgetful(keras.Sequential):
        def compute_loss(self, *args: Any, **kwargs: Any) -> None:
            return None

    with pytest.raises(ValueError, match="Forgetful.compute_loss must return a scalar"):
        computed_loss(Forgetful(), None, (0.0,), 1.0, training=True)


@pytest.mark.parametrize(
    ("call", "taken"),
    [
        (lambda self, x: x, 1),
        (lambda self, x, training=None, mask=None: x, 1),
        (lambda self, x, training: x, 1),
        (lambda self, x, scale=2.0: x, 1),
        (lambda self, x, y: x, 3),
        (lambda self, *columns: columns, 3),
    ],
)
def test_a_network_is_called_with_the_data_unless_it_requires_more(call: Any, taken: int) -> None:
    network = type("Network", (keras.layers.Layer,), {"call": call})()
    assert list(inputs_of(network, "xyw")) == list("xyw"[:taken])
