"""What users of `tf.distribute` and `keras.distribution` have set is taken as it is, and does what it should."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import FixedLossScaleManager, Model, backend, nn
from mixtrain.distribution import data_parallel
from tests.backends import ON_TENSORFLOW
from tests.distribution.networks import batches, mlp, values_of

FAULTY = 3


def data() -> list[Any]:
    """Return batches, one of which overflows on the second of two devices alone."""
    result = batches(*[4] * 6)
    result[FAULTY][0][3, 0] = np.inf
    return result


@contextlib.contextmanager
def users_choice() -> Iterator[Any]:
    """Spread what is made inside over two devices by the words of the backend or of Keras."""
    if ON_TENSORFLOW:
        import tensorflow as tf

        with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
            yield tf.distribute.get_strategy()
        return
    chosen = keras.distribution.DataParallel(devices=["cpu:0", "cpu:1"])
    keras.distribution.set_distribution(chosen)
    try:
        yield chosen
    finally:
        keras.distribution.set_distribution(None)


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")
def test_a_strategy_of_the_users_trains_as_data_parallel_does(sink: bool) -> None:
    result = []
    for spread in (contextlib.nullcontext(), data_parallel(2), users_choice()):
        mixtrain.set_seed(0)
        with spread:
            network = mlp(keras.layers.LayerNormalization())
            model = Model(
                network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.Adam(0.01),
                loss_scale_manager=FixedLossScaleManager(8),
            )
        history = model.train(1, data(), dataset_sink_mode=sink, verbose=0)
        result.append((history["loss"], values_of(network)))
        assert history["skipped_steps"] == [1]
    one, ours, theirs = result
    assert all(np.array_equal(a, b) for a, b in zip(ours[1], theirs[1], strict=True))
    assert ours[0] == theirs[0] == pytest.approx(one[0], abs=1e-6)
    assert max(float(np.abs(a - b).max()) for a, b in zip(one[1], theirs[1], strict=True)) < 1e-5


@pytest.mark.slow
@pytest.mark.tensorflow
def test_keras_scaler_lets_a_replica_that_overflows_alone_poison_all_weights() -> None:
    """Keras 3.15 looks at the gradients of the first replica before they are added up: why ours come after the sum."""
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
        scaler = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0)
        network.compile(scaler, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = data()[FAULTY]
    network.fit(x, y, batch_size=4, verbose=0)
    assert not any(np.isfinite(value).any() for value in values_of(network)), "fixed: say so in the guide"
    assert float(backend.to_numpy(scaler.dynamic_scale)) == 8.0


def test_a_strategy_and_data_parallel_contradict() -> None:
    with users_choice(), pytest.raises(ValueError, match="devices must be chosen in one way"), data_parallel(2):
        pass


@pytest.mark.tensorflow
def test_a_model_is_trained_outside_of_the_scope() -> None:
    with users_choice():
        model = Model(mlp(), "mse", keras.optimizers.SGD(0.1))
        with pytest.raises(ValueError, match="must run outside of the scope of a strategy"):
            model.train(1, [(np.ones((4, 6), np.float32), np.ones((4, 3), np.float32))], verbose=0)


@pytest.mark.tensorflow
@pytest.mark.parametrize("masters", [True, False])
def test_weights_that_a_strategy_mirrors_are_not_stored_in_half(masters: bool) -> None:
    with users_choice():
        network = mlp()
        with pytest.raises(ValueError, match="must not be mirrored by a strategy of tf.distribute"):
            Model(network, "mse", keras.optimizers.SGD(0.1), amp_level="O3", master_weights=masters)
    assert {layer.dtype_policy.name for layer in network.layers} == {"float32"}


@pytest.mark.tensorflow
def test_other_strategies_are_refused() -> None:
    import tensorflow as tf

    network = mlp()
    with tf.distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]).scope():
        with pytest.raises(ValueError, match="must be a MirroredStrategy of this process; got CentralStorage"):
            Model(network, "mse", keras.optimizers.SGD(0.1))


class Own(nn.TrainOneStepCell):
    """A train step of the user's own."""

    def construct(self, *inputs: Any) -> Any:
        return self.network(*inputs)


def test_train_steps_of_the_users_own_are_refused() -> None:
    net = nn.Dense(6, 3)
    loss, optimizer = nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)
    with data_parallel(2):
        with pytest.raises(ValueError, match="Own: a step on several devices must be the library's own"):
            Own(loss, optimizer)
        model = Model(loss)
    with pytest.raises(ValueError, match="must be a TrainOneStepCell made inside data_parallel"):
        model.train(1, batches(4), verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("keras", marks=pytest.mark.tensorflow), "cell"])
def test_layers_that_are_synchronized_normalize_by_the_joint_batch(kind: str) -> None:
    def trained(spread: Any) -> tuple[Any, list[np.ndarray]]:
        mixtrain.set_seed(0)
        with spread:
            if kind == "keras":
                network: Any = mlp(keras.layers.BatchNormalization(synchronized=True))
            else:
                network = nn.SequentialCell(nn.SyncBatchNorm(6), nn.Dense(6, 3))
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model = Model(network, loss, keras.optimizers.SGD(0.1))
        history = model.train(1, batches(*[4] * 5), verbose=0)
        step = model.train_network
        return history["loss"], [backend.to_numpy(one) for one in (*step.weights, *step.network_state())]

    (loss, one), *others = map(trained, [contextlib.nullcontext(), data_parallel(2), users_choice()])
    for theirs, values in others:
        assert loss == pytest.approx(theirs, abs=1e-6)
        assert max(float(np.abs(a - b).max()) for a, b in zip(one, values, strict=True) if a.dtype.kind == "f") < 1e-6
