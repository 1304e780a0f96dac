"""A Keras model with steps of its own trains, evaluates and predicts with `Model` as with Keras, at every level."""

from __future__ import annotations

import gc
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, LossScaleExhausted, Model
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import ON_TENSORFLOW, quick_only_some
from tests.keras.test_train_step import BAD, Autoencoder, X, adam, model

layers, ops = keras.layers, keras.ops
LEVELS: dict[str, dict[str, Any]] = {
    "O0": {}, "O2": {"amp_level": "O2"}, "O2 bfloat16": {"amp_level": "O2", "cast_model_type": "bfloat16"}
}


def compiled(**options: Any) -> Autoencoder:
    network = model(**options)
    network.compile(adam())
    return network


def fit(trained: Any, x: Any = X, **options: Any) -> list[float]:
    history = trained.fit(x, epochs=2, batch_size=8, shuffle=False, verbose=0, **options)
    return history.history["loss"]  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_it_trains_after_the_users_compile_as_in_keras(level: str) -> None:
    expected, ours = fit(compiled()), fit(Model(compiled(), **LEVELS[level]))
    assert ours == expected if level == "O0" else np.allclose(ours, expected, rtol=1e-2)


@pytest.mark.slow
def test_it_is_compiled_with_what_model_is_given_and_trains_in_mindspores_style() -> None:
    expected = fit(compiled())
    batches = [(batch,) for batch in np.split(X, 4)]
    for dataset in (batches, NumpySlicesDataset(X, shuffle=False).batch(8)):
        network = model()
        data = Model(Taking(network), optimizer=adam())
        assert data.train(2, dataset, verbose=0)["loss"] == pytest.approx(expected, rel=1e-6)


def Taking(network: Autoencoder) -> Autoencoder:  # noqa: N802
    """Return a network whose batches are tuples of one column."""
    original = network.train_step
    if ON_TENSORFLOW:
        object.__setattr__(network, "train_step", lambda data: original(data[0]))
    else:
        object.__setattr__(network, "train_step", lambda state, data: original(state, data[0]))
    return network


def test_a_step_that_overflows_changes_nothing_and_the_scale_is_told() -> None:
    bad, good = compiled(), compiled()
    managers = [DynamicLossScaleManager(1024, 2, 1000) for _ in range(2)]
    first, second = (
        Model(each, amp_level="O2", loss_scale_manager=manager)
        for each, manager in zip((bad, good), managers, strict=True)
    )
    history = first.fit(BAD, epochs=2, batch_size=8, shuffle=False, verbose=0)
    fit(second)
    assert history["skipped_steps"] == [1, 1] and history["loss_scale"] == [512, 256]
    assert first.loss_scale_manager is managers[0] and managers[0].get_loss_scale() == 256
    for ours, theirs in zip(bad.get_weights(), good.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_steps_that_overflow_without_end_are_an_error() -> None:
    manager = DynamicLossScaleManager(1024, 2, 1000)
    trained = Model(compiled(), amp_level="O2", loss_scale_manager=manager, bad_step_max=2)
    with pytest.raises(LossScaleExhausted, match="3 steps in a row overflowed, the last of them step 3"):
        trained.fit(np.full_like(X, 1e30), batch_size=8, verbose=0)


class Counted(keras.Model):
    """Overrides what Keras's evaluation calls."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.dense = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return super().compute_metrics(x, y, y_pred, sample_weight) | {"twice": 2 * ops.mean(ops.abs(y_pred - y))}

    def predict_step(self, *arguments: Any) -> Any:
        result = super().predict_step(*arguments)
        return result + 1 if ON_TENSORFLOW else (result[0] + 1, result[1])


def counted() -> Counted:
    keras.utils.set_random_seed(0)
    return Counted()


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_metrics_and_predictions_of_its_own_are_those_of_keras(level: str) -> None:
    y = X[:, :1]
    theirs = counted()
    theirs.compile("sgd", "mse", metrics=["mae"])
    kept = theirs.fit(X, y, epochs=2, batch_size=8, shuffle=False, verbose=0, validation_data=(X, y)).history
    scaling = {"loss_scale_manager": DynamicLossScaleManager(256)} if level == "O2" else {}
    ours = Model(counted(), "mse", "sgd", metrics=["mae"], **LEVELS[level], **scaling)
    options: dict[str, Any] = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0}
    history = ours.fit(X, y, **options, validation_data=(X, y)).history
    assert set(kept) <= set(history) and {"twice", "val_twice"} <= set(kept)
    close = {"rtol": 1e-6 if level == "O0" else 3e-2, "atol": 0 if level == "O0" else 1e-2}
    for name, values in kept.items():
        np.testing.assert_allclose(history[name], values, **close, err_msg=name)
    expected = theirs.evaluate(X, y, verbose=0, return_dict=True)
    assert ours.evaluate(X, y, verbose=0, return_dict=True) == pytest.approx(expected, rel=close["rtol"])
    assert ours.eval([(X, y)]) == pytest.approx(expected, rel=close["rtol"])
    np.testing.assert_allclose(ours.predict(X, verbose=0), theirs.predict(X, verbose=0), **close)


class Shifted(keras.Sequential):
    """Overrides what Keras's prediction calls, and nothing of training."""

    def predict_step(self, *arguments: Any) -> Any:
        result = super().predict_step(*arguments)
        return result + 1 if ON_TENSORFLOW else (result[0] + 1, result[1])


@pytest.mark.slow
def test_a_predict_step_of_its_own_predicts_and_leaves_training_to_mixtrain() -> None:
    network = Shifted([keras.Input((8,)), layers.Dense(1)])
    trained = Model(network, "mse", "sgd", amp_level="O2", cast_model_type="bfloat16")
    trained.train(1, [(X, X[:, :1])], dataset_sink_mode=True, verbose=0)
    plain = ops.convert_to_numpy(ops.cast(network(X), "float32"))
    np.testing.assert_allclose(trained.predict(X, verbose=0), plain + 1, atol=1e-2)


class Named(keras.Sequential):
    """Names its results itself."""

    def get_metrics_result(self) -> Any:
        return {"mine": super().get_metrics_result()["loss"]}


class Task(keras.Sequential):
    """Like a task of KerasHub: its own `fit`, `evaluate` and `predict` preprocess, if it has a preprocessor."""

    preprocessor: Any = None

    def preprocess_samples(self, x: Any) -> Any:
        return ops.convert_to_numpy(self.preprocessor(x))

    def fit(self, x: Any, *arguments: Any, **options: Any) -> Any:
        return super().fit(self.preprocess_samples(x), *arguments, **options)

    def evaluate(self, x: Any, *arguments: Any, **options: Any) -> Any:
        return super().evaluate(self.preprocess_samples(x), *arguments, **options)

    def predict(self, x: Any, *arguments: Any, **options: Any) -> Any:
        return super().predict(self.preprocess_samples(x), *arguments, **options)


class Half(layers.Layer):
    """Takes one half of the columns; it is built when it is first called, which `Task` does."""

    def build(self, shape: Any) -> None:
        self.columns = shape[-1] // 2

    def call(self, x: Any) -> Any:
        return x[:, : self.columns]


@pytest.mark.parametrize("kind", quick_only_some([Named, Task]))
def test_results_and_preprocessing_of_its_own_are_those_of_keras(kind: Any) -> None:
    def made() -> Any:
        keras.utils.set_random_seed(0)
        network = kind([keras.Input((8,)), layers.Dense(1)])
        network.preprocessor = Half() if kind is Task else None
        return network

    x = np.concatenate([X, X], axis=1) if kind is Task else X
    options: dict[str, Any] = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0}
    theirs, ours = made(), Model(made(), "mse", "sgd", amp_level="O0")
    theirs.compile("sgd", "mse")
    assert ours.fit(x, X[:, :1], **options).history == theirs.fit(x, X[:, :1], **options).history
    assert ours.evaluate(x, X[:, :1], verbose=0) == theirs.evaluate(x, X[:, :1], verbose=0)
    np.testing.assert_array_equal(ours.predict(x, verbose=0), theirs.predict(x, verbose=0))
    assert len([row.path for row in ours.precision_report().rows if row.path]) == 1


@pytest.mark.slow
@pytest.mark.skipif(not ON_TENSORFLOW, reason="Keras keeps the state of one optimizer on JAX")
@pytest.mark.parametrize("level", LEVELS)
def test_a_gan_with_two_optimizers_trains_as_in_keras(level: str) -> None:
    import tensorflow as tf

    class Gan(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.critic = keras.Sequential([keras.Input((8,)), layers.Dense(6, "tanh"), layers.Dense(1)])
            self.generator = keras.Sequential([keras.Input((2,)), layers.Dense(6, "tanh"), layers.Dense(8)])
            self.noise = tf.constant(np.random.default_rng(1).standard_normal((8, 2)), tf.float32)

        def compile(self, critic: Any, generator: Any) -> None:
            super().compile()
            self.critic_optimizer, self.generator_optimizer = critic, generator

        def train_step(self, data: Any) -> Any:
            results = {}
            for name, sign in (("critic", 1.0), ("generator", -1.0)):
                optimizer, part = getattr(self, f"{name}_optimizer"), getattr(self, name)
                with tf.GradientTape() as tape:
                    fake = self.generator(self.noise)
                    loss = tf.reduce_mean(self.critic(fake)) - (tf.reduce_mean(self.critic(data)) if sign > 0 else 0.0)
                    scaled = optimizer.scale_loss(sign * loss)
                weights = part.trainable_weights
                optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
                results[f"{name}_loss"] = loss
            return results

    def gan() -> Gan:
        keras.utils.set_random_seed(0)
        network = Gan()
        network.compile(adam(), keras.optimizers.SGD(0.1, momentum=0.9))
        return network

    def histories(trained: Any) -> dict[str, list[float]]:
        return trained.fit(X, epochs=3, batch_size=8, shuffle=False, verbose=0).history  # type: ignore[no-any-return]

    expected, ours = histories(gan()), histories(Model(gan(), **LEVELS[level]))
    for name, values in expected.items():
        np.testing.assert_allclose(ours[name], values, rtol=1e-6 if level == "O0" else 5e-2, atol=1e-2)
    with pytest.raises(ValueError, match="a manager scales the loss of one optimizer, and Gan has"):
        Model(gan(), amp_level="O2", loss_scale_manager=DynamicLossScaleManager()).fit(X, verbose=0)


def test_callbacks_of_mixtrain_and_keras_run_and_stop_it(capsys: pytest.CaptureFixture[str]) -> None:
    class Stop(mixtrain.Callback):
        def on_train_step_end(self, run_context: mixtrain.RunContext) -> None:
            if run_context.original_args().cur_step_num == 6:
                run_context.request_stop()

    class Logs(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            kept.append(dict(logs))

    kept: list[dict[str, Any]] = []
    trained = Model(compiled(), amp_level="O2")
    scales = mixtrain.LossScaleMonitor()
    trained.fit(X, epochs=5, batch_size=8, callbacks=[mixtrain.LossMonitor(2), Stop(), Logs(), scales])
    assert capsys.readouterr().out.count("loss is") == 3
    assert [logs["loss_scale"] for logs in kept] == [2**15, 2**15] and len(scales.records) == 6


@pytest.mark.slow
def test_the_network_gets_its_own_optimizer_and_steps_back_when_the_model_ends(tmp_path: pathlib.Path) -> None:
    network = compiled()
    optimizer = network.optimizer
    trained = Model(network, amp_level="O2")
    fit(trained)
    assert isinstance(network.optimizer, keras.optimizers.LossScaleOptimizer) and trained.optimizer is optimizer
    del trained
    gc.collect()
    assert network.optimizer is optimizer and int(optimizer.iterations) == 8
    assert {layer.compute_dtype for layer in network._flatten_layers()} == {"float32"}
    assert "train_step" not in vars(network)
    fit(network)
    assert int(optimizer.iterations) == 16


@pytest.mark.slow
def test_a_saved_network_is_one_of_plain_keras(tmp_path: pathlib.Path) -> None:
    trained = Model(counted(), "mse", "sgd", amp_level="O2")
    trained.fit(X, X[:, :1], verbose=0)
    trained.save(tmp_path / "network.keras")
    again = keras.models.load_model(tmp_path / "network.keras", custom_objects={"Counted": Counted})
    assert type(again.optimizer) is keras.optimizers.SGD
    np.testing.assert_allclose(again.get_weights()[0], trained.get_weights()[0])


@pytest.mark.slow
def test_the_plan_says_what_keras_does_not_offer_and_the_report_has_the_run(tmp_path: pathlib.Path) -> None:
    trained = Model(compiled(), amp_level="O2", explain_overflow=True)
    note = "trained by Keras's loop, for train_step of "
    assert note in str(trained.precision_report())
    assert str(trained.precision_report()).endswith("dataset_sink_mode and explain_overflow without effect")
    fit(trained)
    trained.report(tmp_path / "report.html")
    assert "8 in 2 epochs" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_compile_at_a_level_in_float16_leaves_the_users_optimizer_unwrapped() -> None:
    """The policy of the plan, mixed_float16, would have Keras wrap it for good."""
    network = compiled()
    trained = Model(network, amp_level="O2")
    fit(trained)
    network.compile(keras.optimizers.SGD(0.1))
    fit(trained)
    del trained
    gc.collect()
    assert type(network.optimizer) is keras.optimizers.SGD


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_steps_are_traced_once_for_several_runs(level: str) -> None:
    traces: list[int] = []

    class Normed(Counted):
        def __init__(self) -> None:
            super().__init__()
            self.norm = layers.LayerNormalization()

        def call(self, x: Any) -> Any:
            traces.append(1)
            return super().call(self.norm(x))

    keras.utils.set_random_seed(0)
    network = Normed()
    network(X)
    trained = Model(network, "mse", "sgd", **LEVELS[level])
    counts = []
    for _ in range(3):
        trained.fit(X, X[:, :1], batch_size=8, verbose=0)
        trained.evaluate(X, X[:, :1], batch_size=8, verbose=0)
        counts.append(len(traces))
    assert counts[0] == counts[1] == counts[2]


class OnlyInTheStep(Autoencoder):
    """Has no `call` of use, and a layer without variables that nothing has called."""

    def __init__(self) -> None:
        super().__init__()
        self.noise = keras.Sequential([layers.GaussianNoise(0.0), layers.Rescaling(2.0)])

    def call(self, x: Any, training: bool = False) -> Any:
        raise NotImplementedError


@pytest.mark.slow
@pytest.mark.skipif(not ON_TENSORFLOW, reason="the step is one of TensorFlow")
def test_layers_without_variables_need_not_be_built() -> None:
    from tests.keras.test_train_step import OnTensorFlow

    class Network(OnlyInTheStep, OnTensorFlow):
        pass

    keras.utils.set_random_seed(0)
    network = Network()
    network.compile(adam())
    assert fit(Model(network)) == fit(compiled())
    network.late = keras.Sequential([layers.Dense(2)])
    with pytest.raises(ValueError, match="the layers must be built before a plan is made.*call each part once"):
        Model(network).evaluate(X, verbose=0)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.filterwarnings(r"ignore:`build\(\)` was called on layer")  # By Keras, which looks at all parts.
def test_a_layer_that_nothing_calls_stays_unbuilt_as_in_keras() -> None:
    ours, theirs = compiled(), compiled()
    for network in (ours, theirs):
        network.late = layers.Dense(2)
    trained = Model(ours, amp_level="O2", cast_model_type="bfloat16")
    first, second = fit(trained), fit(trained)
    np.testing.assert_allclose([*first, *second], [*fit(theirs), *fit(theirs)], rtol=1e-2)
    assert not ours.late.built and trained.predict(X, verbose=0).shape == (32, 8)


REFUSED: dict[str, Callable[[], Any]] = {
    "accumulate_steps is of mixtrain's own step": lambda: Model(compiled(), accumulate_steps=2),
    "master_weights is of mixtrain's own step": lambda: Model(compiled(), amp_level="O3", master_weights=False),
    "on_overflow is of mixtrain's own step": lambda: Model(compiled(), on_overflow="retry"),
    "the step must be mixtrain's": lambda: Model(compiled()).check([(X,)]),
    "is resumed by Keras": lambda: Model(compiled()).train(1, [(X,)], resume="somewhere"),
    "does not tell what this callback needs": lambda: Model(compiled()).fit(X, callbacks=[mixtrain.OverflowMonitor()]),
    "the Model must have an optimizer to train": lambda: Model(model()).fit(X),
    "loss must be as for its compile": lambda: Model(compiled(), mixtrain.nn.MSELoss(), adam()),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_keras_does_not_do_is_refused(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()


class Contrastive(keras.Model):
    """Two views of a batch; no `call`, and parts that only a step builds."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([layers.Dense(6, "relu"), layers.LayerNormalization(), layers.Dense(4)])
        self.head = layers.Dense(3)

    def train_step(self, data: Any) -> dict[str, Any]:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            one, other = (self.head(self.encoder(view)) for view in (data, data + 0.1))
            similar = ops.matmul(ops.normalize(ops.cast(one, "float32")), ops.transpose(ops.cast(other, "float32")))
            loss = ops.mean(keras.losses.sparse_categorical_crossentropy(ops.arange(8), similar, from_logits=True))
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables, strict=True))
        return {"loss": loss}


def contrastive() -> Contrastive:
    keras.utils.set_random_seed(0)
    network = Contrastive()
    network.compile(keras.optimizers.Adam(0.01))
    return network


def of_pipeline(network: Contrastive, **level: Any) -> list[float]:
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensor_slices(X).batch(8)
    return Model(network, **level).fit(batches, epochs=2, shuffle=False, verbose=0).history["loss"]  # type: ignore[no-any-return]


FORMS: dict[str, Callable[..., list[float]]] = {
    "arrays": lambda network, **level: fit(Model(network, **level)),
    "batches": lambda network, **level: Model(Taking(network), **level).train(
        2, [(batch,) for batch in np.split(X, 4)], verbose=0)["loss"],
    "pipeline": of_pipeline,
}


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", FORMS)
def test_layers_that_only_a_step_builds_are_built_as_keras_builds_them(level: str, form: str) -> None:
    """Keras on JAX refuses them itself."""
    ours, theirs = contrastive(), contrastive()
    result, expected = FORMS[form](ours, **LEVELS[level]), fit(theirs)
    np.testing.assert_allclose(result, expected, rtol=1e-6 if level == "O0" else 2e-2)
    weights, others = ours.get_weights(), theirs.get_weights()
    assert len(weights) == len(others) == 8
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 if level == "O0" else 1e-2)


@pytest.mark.tensorflow
@pytest.mark.slow
def test_a_step_that_reads_values_runs_eagerly_with_a_loss_scale_too() -> None:
    import tensorflow as tf

    read: list[float] = []

    class Printing(keras.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data
            with tf.GradientTape() as tape:
                outputs = self(x, training=True)
                loss = self.compute_loss(x, y, outputs)
                scaled = self.optimizer.scale_loss(loss)
            weights = self.trainable_weights
            self.optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
            read.append(float(loss))
            return {**self.compute_metrics(x, y, outputs), "loss": loss}

    entry = keras.Input((8,))
    network = Printing(entry, layers.Dense(1)(entry))
    network.compile("sgd", "mse", metrics=["mae"], run_eagerly=True)
    history = Model(network, amp_level="O2").fit(X, X[:, :1], batch_size=8, epochs=2, shuffle=False, verbose=0)
    assert len(read) == 8 and read[7] < read[0] and history["mae"][1] < history["mae"][0]


@pytest.mark.tensorflow
def test_a_step_that_updates_by_another_optimizer_is_warned_of_or_refused_where_steps_are_to_be_skipped() -> None:
    import tensorflow as tf

    class Captured(keras.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                loss = ops.mean(ops.square(self(data, training=True)))
            weights = self.trainable_weights
            self.other[0].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"loss": loss}

    def network() -> Captured:
        entry = keras.Input((8,))
        result = Captured(entry, layers.Dense(1)(entry))
        optimizer = keras.optimizers.SGD(0.01)
        result.other = (optimizer,)
        result.compile(optimizer)
        return result

    with pytest.warns(UserWarning, match="must update weights by the model's optimizer; got none of its updates"):
        Model(network(), amp_level="O2").fit(X, verbose=0)
    with pytest.raises(RuntimeError, match="must update weights by the model's optimizer"):
        Model(network(), amp_level="O2", loss_scale_manager=DynamicLossScaleManager()).fit(X, verbose=0)
