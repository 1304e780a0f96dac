"""Two programs of users: a Keras network trained with Model, and a script in MindSpore's words."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

import mixtrain as ms
import mixtrain.dataset as ds
from mixtrain import nn, ops


class _OurCallback(ms.train.Callback):
    def step_end(self, run_context: ms.train.RunContext) -> None:
        assert np.isfinite(np.asarray(run_context.original_args().net_outputs[0], "float32"))


class _KerasCallback(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        assert logs is not None and "loss" in logs


def _rows(count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.standard_normal((count, 8, 8, 1), np.float32), random.integers(0, 4, count).astype(np.int32)


def _network() -> keras.Model:
    return keras.Sequential([
        keras.Input((8, 8, 1)), keras.layers.Conv2D(4, 3), keras.layers.BatchNormalization(), keras.layers.ReLU(),
        keras.layers.Dropout(0.1), keras.layers.Flatten(), keras.layers.Dense(4),
    ])


def train_keras_network(sink: bool = True) -> None:
    """Train, evaluate and use a Keras network in both half precisions, with callbacks of both kinds."""
    x, y = _rows()
    batches = [(x[start:start + 8], y[start:start + 8]) for start in range(0, len(x), 8)]
    for dtype, manager in (
        (ms.bfloat16, None), (ms.float16, ms.DynamicLossScaleManager(init_loss_scale=2**8, scale_window=2)),
    ):
        model = ms.Model(
            _network(),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            keras.optimizers.SGD(0.01, momentum=0.9),
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
            amp_level="O2",
            cast_model_type=dtype,
            loss_scale_manager=manager,
        )
        callbacks = [_OurCallback(), _KerasCallback()] if manager else [_KerasCallback(), ms.train.TimeMonitor()]
        model.fit(2, batches, batches, callbacks=callbacks, verbose=0)
        if sink:
            model.train(1, batches, callbacks=[_KerasCallback()], dataset_sink_mode=True, verbose=0)
        model.eval(batches)
        assert np.asarray(model.predict(x)).shape == (32, 4)
        assert model.precision_report() is not None


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(4 * 8 * 8, 4)
        self.body = keras.layers.Dense(4)

    def construct(self, x: Any) -> Any:
        x = self.relu(self.norm(self.conv(x)))
        if x.mean() > 100:
            x = x / 2
        return self.body(self.fc(self.flatten(x)))


def run_mindspore_script() -> None:
    """Run what MindSpore scripts do with tensors, networks, gradients and data."""
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(1)
        _train_a_cell()
    ms.set_context(mode=ms.GRAPH_MODE)
    _use_tensors()


def _train_a_cell() -> None:
    x, y = _rows()
    x = x.transpose(0, 3, 1, 2)
    data = ds.NumpySlicesDataset((x, y), ["data", "label"], shuffle=False).batch(8)
    net, loss_fn = Net(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    net(ms.Tensor(x[:8]))
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ms.Model(
        net, loss_fn, optimizer, metrics={"accuracy": nn.Accuracy()}, amp_level="O2",
        loss_scale_manager=ms.DynamicLossScaleManager(2**8, 2, 2),
    )
    model.train(1, data, callbacks=[ms.train.TimeMonitor(), _KerasCallback()], verbose=0)
    model.eval(data)
    logits = model.predict(ms.Tensor(x))
    assert (logits.argmax(1) == ms.Tensor(y)).mean().asnumpy() >= 0
    grad_fn = ms.value_and_grad(lambda data, label: loss_fn(net(data), label), None, optimizer.parameters)
    for data_item, label in data.create_tuple_iterator():
        loss, grads = grad_fn(data_item, label)
        optimizer(grads)
        assert np.isfinite(float(loss))
    assert next(data.create_dict_iterator(output_numpy=True))["data"].shape == (8, 1, 8, 8)


def _use_tensors() -> None:
    x = ms.Tensor(np.arange(6).reshape(2, 3), ms.float16)
    x[0, 1] = 7  # [[0, 7, 2], [3, 4, 5]]
    y = (x + ms.Tensor([1.0, 2.0, 3.0], ms.float32)) @ ms.Tensor(np.ones((3, 2), np.float32))
    assert y.dtype == ms.float32 and y.asnumpy().tolist() == [[15.0, 15.0], [18.0, 18.0]]
    assert x.view(-1).sort()[0].tolist() == [0, 2, 3, 4, 5, 7] and x.max() > 6 and (x == x).all() and "7." in str(x)
    assert ops.relu(-x).asnumpy().max() == 0 and float(keras.ops.sum(x)) == 21 == np.sum(np.asarray(x))

    @ms.jit
    def double_small(value: Any) -> Any:
        if value.sum() < 100:
            value = value * 2
        return value

    assert double_small(ms.Tensor([1.0, 2.0])).asnumpy().tolist() == [2.0, 4.0]
    assert ms.grad(lambda value: (value**2).sum())(ms.Tensor([1.0, 2.0])).asnumpy().tolist() == [2.0, 4.0]
