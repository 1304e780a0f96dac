"""Training with `Model`: fit, eval and predict with callbacks and metrics, from one call each."""

import contextlib
import io
import re

import numpy as np

import mindspore
from mindspore import Tensor, nn
from mindspore.dataset import NumpySlicesDataset
from mindspore.train import Accuracy, LossMonitor, Model, TimeMonitor


# ---- data: three clouds of points ----
def create_dataset(count, seed, batch_size):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, count).astype(np.int32)
    centers = np.array([[2, 0, 0, 1], [0, 2, 1, 0], [-1, -1, 0, 0]], np.float32)
    points = centers[labels] + 0.4 * generator.standard_normal((count, 4)).astype(np.float32)
    return NumpySlicesDataset((points, labels), ["data", "label"], shuffle=False).batch(batch_size)


train_dataset = create_dataset(96, 0, 16)
test_dataset = create_dataset(48, 1, 16)

generator = np.random.default_rng(3)
first = Tensor(generator.standard_normal((8, 4)).astype(np.float32) / 2)
second = Tensor(generator.standard_normal((3, 8)).astype(np.float32) / 3)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(4, 8, weight_init=first, bias_init="zeros"), nn.ReLU(),
            nn.Dense(8, 3, weight_init=second, bias_init="zeros"),
        )

    def construct(self, x):
        return self.dense_relu_sequential(x)


network = Network()
loss = nn.CrossEntropyLoss()
optimizer = nn.Momentum(params=network.trainable_params(), learning_rate=0.1, momentum=0.9)
metrics = {"accuracy": Accuracy(), "loss": nn.Loss()}

trainer = Model(network, loss_fn=loss, optimizer=optimizer, metrics=metrics)

# ---- before training ----
before = trainer.eval(test_dataset)
print(before)
np.testing.assert_allclose([before["accuracy"], before["loss"]], [0.5625, 1.016926], rtol=1e-5)
assert sorted(before) == ["accuracy", "loss"]

# ---- fit: train and evaluate, epoch by epoch ----
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    trainer.fit(2, train_dataset, test_dataset, callbacks=[LossMonitor(), TimeMonitor()], dataset_sink_mode=False)
print(printed.getvalue())
lines = [line for line in printed.getvalue().splitlines() if line.startswith("epoch:")]
steps = [re.fullmatch(r"epoch: (\d+) step: (\d+), loss is (\d+\.\d+(?:e-\d+)?)", line) for line in lines]
assert [(int(step[1]), int(step[2])) for step in steps] == [(e, s) for e in (1, 2) for s in range(1, 7)]
losses = [float(step[3]) for step in steps]
np.testing.assert_allclose(losses[:6], [1.103810, 0.876438, 0.645474, 0.665817, 0.452340, 0.428299], rtol=1e-5)
np.testing.assert_allclose(losses[6:], [0.303264, 0.304978, 0.135831, 0.158306, 0.078626, 0.060136], rtol=1e-4)
assert "Eval result: epoch 1, metrics: {" in printed.getvalue() and "Train epoch time:" in printed.getvalue()

# ---- eval ----
result = trainer.eval(test_dataset, dataset_sink_mode=False)
print(result)
assert result["accuracy"] == 1.0
np.testing.assert_allclose(result["loss"], 0.03727033, rtol=1e-4)

# ---- predict ----
data, label = next(test_dataset.create_tuple_iterator())
output = trainer.predict(data)
print(output[:2])
assert output.shape == (16, 3) and output.dtype == mindspore.float32
assert (output.argmax(1) == label).asnumpy().all()
assert np.array_equal(np.argmax(output.asnumpy(), axis=1), label.asnumpy())

# ---- train alone, then eval with a network of one's own ----
trainer.train(1, train_dataset, callbacks=LossMonitor(3), dataset_sink_mode=False)
eval_network = nn.WithEvalCell(network, loss)
metrics = {"acc": Accuracy(), "loss": nn.Loss()}
checker = Model(network, eval_network=eval_network, eval_indexes=[0, 1, 2], metrics=metrics)
checked = checker.eval(test_dataset, dataset_sink_mode=False)
print(checked)
assert checked["acc"] == 1.0 and checked["loss"] < result["loss"]

# ---- the pieces that Model puts together: a loss cell and a train cell, called by hand ----
net_with_loss = nn.WithLossCell(network, loss)
train_step = nn.TrainOneStepCell(net_with_loss, optimizer)
train_step.set_train()
by_hand = [float(train_step(data, label)) for data, label in train_dataset.create_tuple_iterator()]
assert len(by_hand) == 6 and max(by_hand) < losses[0]
