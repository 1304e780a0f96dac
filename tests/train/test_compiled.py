"""What a compiled Keras model brings to a Model."""

from __future__ import annotations

import keras

from mixtrain.train.compiled import brought_by, is_compiled


def compiled(**options: object) -> keras.Model:
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    network.compile(**options)
    return network


def test_a_compiled_model_brings_the_very_objects_that_it_was_given() -> None:
    """Keras keeps them under a private name: should it move, this fails."""

    def loss(y_true: object, y_pred: object) -> object:
        return y_pred

    metric, optimizer = keras.metrics.MeanAbsoluteError(), keras.optimizers.SGD(0.1)
    network = compiled(optimizer=optimizer, loss=loss, loss_weights=[2.0], metrics=[metric], weighted_metrics=["mse"])
    found = brought_by(network)
    assert found.loss_fn is loss and found.optimizer is optimizer and found.metrics[0] is metric
    assert found.loss_weights == [2.0] and found.weighted_metrics == ["mse"]


def test_the_loss_scaling_that_keras_wrapped_an_optimizer_in_is_left_to_a_manager() -> None:
    optimizer = keras.optimizers.SGD(0.1)
    network = compiled(optimizer=keras.optimizers.LossScaleOptimizer(optimizer), loss="mse")
    assert brought_by(network).optimizer is optimizer


def test_a_model_with_nothing_to_train_brings_no_optimizer() -> None:
    network = compiled(optimizer="sgd", loss="mse")
    network.trainable = False
    assert brought_by(network).optimizer is None


def test_networks_that_are_not_compiled_bring_nothing() -> None:
    assert not is_compiled(keras.layers.Dense(1))
    assert not is_compiled(keras.Sequential([keras.layers.Dense(1)]))
    assert is_compiled(compiled(optimizer="sgd"))
