"""`nn.Graph`: OneFlow's way to write a step, checked against steps written by hand."""

from __future__ import annotations

import copy
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain import amp, ops
from mixtrain.precision.dtypes import computed_dtypes
from tests.backends import ON_TENSORFLOW, quick_every

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 8).astype(np.int32)


def dense_network(seed: int = 0) -> nn.SequentialCell:
    r = np.random.default_rng(seed)
    first, second = (r.standard_normal(shape).astype(np.float32) / 3 for shape in ((5, 6), (3, 5)))
    return nn.SequentialCell(
        nn.Dense(6, 5, weight_init=mixtrain.Tensor(first), bias_init="zeros"), nn.ReLU(),
        nn.Dense(5, 3, weight_init=mixtrain.Tensor(second), bias_init="zeros"),
    )


class TrainGraph(nn.Graph):
    """A step that returns its logits and its loss."""

    def __init__(
        self, network: Any, optimizer: Any, scaler: Any = None, amp_mode: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self.network = network
        self.loss_fn = nn.CrossEntropyLoss()
        self.add_optimizer(optimizer, **options)
        if amp_mode:
            self.config.enable_amp(True)
        if scaler is not None:
            self.set_grad_scaler(scaler)

    def build(self, x: Any, y: Any) -> Any:
        logits = self.network(x)
        loss = self.loss_fn(logits, y)
        self.backward(loss)
        return logits, loss


class EvalGraph(nn.Graph):
    """The network alone."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def build(self, x: Any) -> Any:
        return self.network(x)


def weights_of(network: Any) -> list[np.ndarray]:
    weights = network.get_parameters() if isinstance(network, nn.Cell) else network.weights
    return [np.array(mixtrain.backend.to_numpy(weight)) for weight in weights]


@quick_every(2)
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_a_training_graph_does_what_a_train_cell_does(mode: int) -> None:
    ours, theirs = dense_network(), dense_network()
    before = mixtrain.get_context("mode")
    mixtrain.set_context(mode=mode)
    try:
        graph = TrainGraph(ours, nn.Momentum(ours.trainable_params(), 0.1, 0.9))
        with_loss = nn.WithLossCell(theirs, nn.CrossEntropyLoss())
        step = nn.TrainOneStepCell(with_loss, nn.Momentum(theirs.trainable_params(), 0.1, 0.9)).set_train()
        for _ in range(3):
            logits, loss = graph(X, Y)
            assert float(loss) == float(step(mixtrain.Tensor(X), mixtrain.Tensor(Y)))
    finally:
        mixtrain.set_context(mode=before)
    assert tuple(logits.shape) == (8, 3)
    for actual, expected in zip(weights_of(ours), weights_of(theirs), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.slow
def test_a_graph_is_compiled_once_and_anew_for_a_changed_precision() -> None:
    network = dense_network()
    runs = []

    class Counting(TrainGraph):
        def build(self, x: Any, y: Any) -> Any:
            runs.append(1)
            return super().build(x, y)

    graph = Counting(network, nn.SGD(network.trainable_params(), 0.1), amp_mode=True)
    graph(X, Y)
    traced = len(runs)
    assert traced == (1 if ON_TENSORFLOW else 2)  # JAX's first trace finds the variables.
    for _ in range(2):
        graph(X, Y)
    other = EvalGraph(network)
    other(X)
    graph(x=X, y=Y)
    assert len(runs) == traced
    network[2].to_float(mixtrain.float32)
    graph(X, Y)
    assert len(runs) == 2 * traced


@pytest.mark.slow
def test_amp_is_the_plan_of_o2_in_the_graph_alone() -> None:
    network, copied = dense_network(), dense_network()
    graph = TrainGraph(network, nn.SGD(network.trainable_params(), 0.1), amp_mode=True)
    seen = []
    network[1].register_forward_hook(lambda cell, inputs, output: seen.append(output.dtype.name))
    logits, loss = graph(X, Y)
    assert set(seen) == {"float16"} and logits.dtype.name == "float32" and loss.dtype.name == "float32"
    amp.auto_mixed_precision(copied, "O2")
    step = nn.TrainOneStepCell(nn.WithLossCell(copied, nn.CrossEntropyLoss()), nn.SGD(copied.trainable_params(), 0.1))
    assert float(step.set_train()(mixtrain.Tensor(X), mixtrain.Tensor(Y))) == float(loss)
    assert computed_dtypes(network) == {"float32"} and network.training is False
    assert list(graph.precision_report()) == ["network"]
    assert "2" in str(graph.precision_report()["network"]) and not EvalGraph(network).precision_report()
    assert [row.compute_dtype.name for row in graph.precision_report()["network"].rows] == ["float16"] * 4


def test_bfloat16_and_a_plan_that_was_in_force_before() -> None:
    network = dense_network()
    amp.auto_mixed_precision(network, "O3")

    class Bfloat(TrainGraph):
        def __init__(self) -> None:
            super().__init__(network, nn.SGD(network.trainable_params(), 0.1))
            self.config.enable_amp(dtype=mixtrain.bfloat16)

    seen = []
    network[1].register_forward_hook(lambda cell, inputs, output: seen.append(output.dtype.name))
    Bfloat()(X, Y)
    network(mixtrain.Tensor(X))
    assert list(dict.fromkeys(seen)) == ["bfloat16", "float16"]


class Overflowing(nn.Cell):
    """A network with batch norm whose gradient overflows float16 where the batch is marked."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.dense = nn.Dense(6, 3)

    def construct(self, x: Any, factor: Any) -> Any:
        return self.dense(self.norm(x)) * factor


class MarkedGraph(TrainGraph):
    def build(self, x: Any, y: Any, factor: Any) -> Any:
        logits = self.network(x, factor)
        loss = self.loss_fn(logits, y)
        self.backward(loss)
        return loss


@pytest.mark.slow
def test_an_overflow_skips_weights_slots_statistics_and_lowers_the_scale() -> None:
    network = Overflowing()
    optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
    scaler = amp.GradScaler(init_scale=2.0**7, growth_factor=2.0, backoff_factor=0.5, growth_interval=1)
    graph = MarkedGraph(network, optimizer, scaler)

    def state() -> list[np.ndarray]:
        return [np.array(value.asnumpy()) for value in (*network.get_parameters(), *optimizer.state_variables())]

    one, nan = np.float32(1), np.float32(np.nan)
    scales = []
    for factor in (one, one, nan, one):
        before = state()
        loss = graph(X, Y, factor)
        changed = [not np.array_equal(a, b) for a, b in zip(before, state(), strict=True)]
        assert any(changed) is not bool(np.isnan(factor)) and np.isnan(float(loss)) == np.isnan(factor)
        scales.append(scaler.get_scale())
    assert scales == [256.0, 512.0, 256.0, 512.0]
    assert int(optimizer.global_step.asnumpy()[0]) == 3


@pytest.mark.slow
def test_a_scaled_graph_equals_an_unscaled_one_that_left_the_bad_batch_out() -> None:
    networks = [dense_network(), dense_network()]
    bad = X.copy()
    bad[0, 0] = np.inf
    scaled = TrainGraph(
        networks[0], nn.Momentum(networks[0].trainable_params(), 0.1, 0.9), amp.GradScaler(2.0**12, growth_interval=1)
    )
    plain = TrainGraph(networks[1], nn.Momentum(networks[1].trainable_params(), 0.1, 0.9))
    for x in (X, bad, X):
        scaled(x, Y)
    for x in (X, X):
        plain(x, Y)
    for first, second in zip(*map(weights_of, networks), strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_disabled_scaler_scales_nothing() -> None:
    network = dense_network()
    graph = TrainGraph(network, nn.SGD(network.trainable_params(), 0.1), amp.GradScaler(enabled=False))
    assert graph._scaling() is None and np.isfinite(float(graph(X, Y)[1]))


@pytest.mark.slow
def test_a_keras_network_loss_and_optimizer_that_are_not_built() -> None:
    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [keras.layers.Dense(5), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), keras.layers.Dense(3)]
    )
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    class KerasGraph(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            self.add_optimizer(keras.optimizers.Adam(0.05), lr_sch=[0.05, 0.04])
            self.config.enable_amp(True, dtype="bfloat16")
            self.set_grad_scaler(amp.GradScaler(init_scale=2.0**10))

        def build(self, x: Any, y: Any) -> Any:
            loss = loss_fn(y, self.network(x))
            self.backward(loss)
            return loss

    graph = KerasGraph()
    first = float(graph(X, Y))
    mean = mixtrain.backend.to_numpy(network.layers[1].moving_mean)
    for _ in range(15):
        last = float(graph(X, Y))
    assert last < first and np.any(mean != 0)
    optimizer = graph._optimizers.parts[0].driver.optimizer
    assert float(optimizer.learning_rate) == pytest.approx(0.04) and int(optimizer.iterations) == 16
    assert network.layers[0].compute_dtype == "float32"
    evaluate = EvalGraph(network)
    np.testing.assert_array_equal(evaluate(X).asnumpy(), evaluate(X).asnumpy())
    np.testing.assert_allclose(evaluate(X).asnumpy(), network(X, training=False), rtol=1e-5, atol=1e-6)


def test_several_optimizers_each_train_their_own_part() -> None:
    first, second = nn.Dense(6, 5), nn.Dense(5, 3)

    class Two(nn.Graph):
        def __init__(self, **options: Any) -> None:
            super().__init__()
            self.first, self.second = first, second
            self.loss_fn = nn.CrossEntropyLoss()
            self.add_optimizer(nn.SGD(first.trainable_params(), 0.5))
            self.add_optimizer(keras.optimizers.SGD(0.0), **options)

        def build(self, x: Any, y: Any) -> Any:
            loss = self.loss_fn(self.second(self.first(x)), y)
            self.backward(loss)
            return loss

    with pytest.raises(ValueError, match="each weight must have one optimizer; several hold"):
        Two()(X, Y)
    graph = Two(parameters=second.trainable_params())
    before = weights_of(first), weights_of(second)
    graph(X, Y)
    assert any(np.any(a != b) for a, b in zip(before[0], weights_of(first), strict=True))
    assert all(np.all(a == b) for a, b in zip(before[1], weights_of(second), strict=True))


def test_a_schedule_drives_an_optimizer_of_mixtrains() -> None:
    network = dense_network()
    optimizer = nn.SGD(network.trainable_params(), 0.1)
    graph = TrainGraph(network, optimizer, lr_sch=nn.ExponentialDecayLR(0.5, 0.5, 1))
    rates = []
    for _ in range(3):
        graph(X, Y)
        rates.append(float(optimizer.learning_rate.asnumpy()))
    assert rates == [0.5, 0.25, 0.125]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_tensor_may_decide_a_branch_of_build() -> None:
    class Branching(EvalGraph):
        def build(self, x: Any) -> Any:
            out = self.network(x)
            if ops.reduce_sum(x) > 0:
                out = out * 0.0
            return out

    graph = Branching(dense_network())
    assert not np.any(np.asarray(graph(np.ones((2, 6), np.float32))))
    assert np.any(np.asarray(graph(-np.ones((2, 6), np.float32))))


def make_build(text: str) -> Any:
    """Return a graph class whose `build` calls `backward` as `text` says."""

    class Made(TrainGraph):
        def build(self, x: Any, y: Any) -> Any:
            loss = self.loss_fn(self.network(x), y)
            if text == "of a tensor":
                loss.backward()
            for _ in range({"never": 0, "twice": 2}.get(text, 1)):
                self.backward({"vector": self.network(x), "number": 3.0}.get(text, loss))
            return loss

    return Made


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("never", RuntimeError, "expected build of a graph with an optimizer to call self.backward; got none"),
        ("twice", RuntimeError, "expected one call in a step; got a second one"),
        ("vector", ValueError, "loss must be a scalar"),
        ("number", ValueError, "the loss must depend on parameters"),
        ("of a tensor", RuntimeError, r"got loss.backward\(\).* Write self.backward\(loss\)"),
    ],
)
def test_backward_is_called_once_with_a_scalar(text: str, error: type[Exception], says: str) -> None:
    network = dense_network()
    with pytest.raises(error, match=says):
        make_build(text)(network, nn.SGD(network.trainable_params(), 0.1))(X, Y)


def test_backward_belongs_into_build_of_a_graph_that_trains() -> None:
    class Backing(EvalGraph):
        def build(self, x: Any) -> Any:
            self.backward(ops.reduce_sum(self.network(x)))

    with pytest.raises(RuntimeError, match="expected an optimizer; got a graph without one. Write self.add_optimizer"):
        Backing(dense_network())(X)
    with pytest.raises(RuntimeError, match="expected a call inside build; got one outside of it"):
        Backing(dense_network()).backward(mixtrain.Tensor(1.0))


def test_what_a_graph_is_made_of_is_checked() -> None:
    network = dense_network()

    class Bare(nn.Graph):
        pass

    with pytest.raises(NotImplementedError, match="a Graph must define its step"):
        Bare()(X)
    graph = Bare()
    with pytest.raises(TypeError, match="it must be an optimizer of mixtrain or Keras"):
        graph.add_optimizer(network)
    with pytest.raises(ValueError, match="the optimizer must not do it as well; got 'loss_scale=8'"):
        graph.add_optimizer(nn.SGD(network.trainable_params(), 0.1, loss_scale=8.0))
    with pytest.raises(ValueError, match="SGD holds its parameters itself"):
        graph.add_optimizer(nn.SGD(network.trainable_params(), 0.1), parameters=network.trainable_params())
    with pytest.raises(ValueError, match="own learning rate must be a number"):
        graph.add_optimizer(nn.SGD(network.trainable_params(), [0.1, 0.2]), lr_sch=[0.1])
    with pytest.raises(TypeError, match="lr_sch must be a schedule or a list"):
        graph.add_optimizer(nn.SGD(network.trainable_params(), 0.1), lr_sch=0.1)
    with pytest.raises(TypeError, match="grad_scaler must be a GradScaler"):
        graph.set_grad_scaler(amp.StaticLossScaler(8))
    foreign = TrainGraph(network, nn.SGD(dense_network().trainable_params(), 0.1))
    with pytest.raises(ValueError, match="SGD must train weights of networks that the graph holds"):
        foreign(X, Y)


def test_options_of_config_are_those_that_mean_something() -> None:
    config = EvalGraph(dense_network()).config
    with pytest.raises(AttributeError, match=r"got enable_ampp. Write self.config.enable_amp\(...\)"):
        config.enable_ampp(True)
    with pytest.raises(AttributeError, match="set_gradient_accumulation_steps. Pass the whole batch"):
        config.set_gradient_accumulation_steps(2)
    with pytest.raises(AttributeError, match=r"got \w+\. Leave the line out"):
        config.allow_fuse_model_update_ops(True)
    with pytest.raises(TypeError, match="mode must be True or False"):
        config.enable_amp(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dtype must be float16 or bfloat16"):
        config.enable_amp(dtype=mixtrain.float32)
    config.enable_amp(True)
    assert copy.deepcopy(config).half == mixtrain.float16
    config.enable_amp(False)
    assert config.half is None


def test_a_graph_that_was_called_is_fixed() -> None:
    network = dense_network()
    graph = EvalGraph(network)
    graph(X)
    for change in (
        lambda: graph.config.enable_amp(True),
        lambda: graph.add_optimizer(nn.SGD(network.trainable_params(), 0.1)),
        lambda: graph.set_grad_scaler(None),
    ):
        with pytest.raises(ValueError, match="expected a graph that was not called yet"):
            change()


def test_a_graph_that_evaluates_may_compute_in_half_and_take_structures() -> None:
    class HalfEval(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.network = dense_network()
            self.config.enable_amp(dtype="bfloat16")

        def build(self, columns: dict[str, Any], *, scale: float = 1.0) -> Any:
            return {"logits": self.network(columns["x"]) * scale}

    graph = HalfEval()
    seen: list[str] = []
    graph.network[1].register_forward_hook(lambda cell, inputs, output: seen.append(output.dtype.name))
    assert tuple(graph(columns={"x": X})["logits"].shape) == (8, 3) and set(seen) == {"bfloat16"}
    with pytest.raises(TypeError, match="build must take its inputs by position"):
        graph({"x": X}, scale=2.0)
