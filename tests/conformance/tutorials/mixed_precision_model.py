"""Mixed precision in `Model`: levels by `amp_level`, loss scale managers, and the cells that Model makes of them."""

import numpy as np

import mindspore as ms
from mindspore import Tensor, amp, nn
from mindspore.amp import DynamicLossScaleManager, FixedLossScaleManager
from mindspore.dataset import NumpySlicesDataset
from mindspore.train import Accuracy, Callback, LossMonitor, Model

generator = np.random.default_rng(12)
pictures = generator.standard_normal((48, 1, 8, 8)).astype(np.float32)
labels = pictures.reshape(48, 4, 16).sum(axis=2).argmax(axis=1).astype(np.int32)


def drawn(*shape):
    return Tensor((generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))


kernel, matrix = drawn(4, 1, 3, 3), drawn(4, 64)


def create_dataset():
    return NumpySlicesDataset((pictures, labels), ["image", "label"], shuffle=False).batch(12, drop_remainder=True)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode="same", weight_init=kernel)
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(64, 4, weight_init=matrix, bias_init="zeros")

    def construct(self, x):
        x = self.pool(self.relu(self.bn(self.conv(x))))
        return self.fc(self.flatten(x))


class Keep(Callback):
    """Keeps the loss of every step."""

    def __init__(self):
        self.losses = []

    def on_train_step_end(self, run_context):
        cb_params = run_context.original_args()
        outputs = cb_params.net_outputs
        loss = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        self.losses.append(float(loss.asnumpy()))


def run(level, epochs=3, **options):
    network = Network()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    divided = options.pop("divided", 1.0)
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9, loss_scale=divided)
    model = Model(network, loss, optimizer, metrics={"Accuracy": Accuracy()}, amp_level=level, **options)
    keep = Keep()
    model.train(epochs, create_dataset(), callbacks=[keep, LossMonitor(4)], dataset_sink_mode=False)
    return keep.losses, model.eval(create_dataset(), dataset_sink_mode=False)["Accuracy"], network, model


# ---- full precision, for comparison ----
full, accuracy, network, model = run("O0")
print(full, accuracy)
assert len(full) == 12 and network.conv.weight.dtype == ms.float32
np.testing.assert_allclose(full[:4] + full[-1:], [2.792120, 1.818042, 2.119704, 2.406889, 0.968514], rtol=1e-3)
assert round(accuracy * 48) == 34

# ---- levels ----
for level in ("O2", "O3", "auto"):
    half, accuracy, network, model = run(level, loss_scale_manager=None)
    print(level, half, accuracy)
    np.testing.assert_allclose(half[:4], full[:4], rtol=3e-2)
    assert half[-1] < half[0] and 0.0 <= accuracy <= 1.0
    assert model.predict(Tensor(pictures[:2])).shape == (2, 4)

# ---- a fixed loss scale that the optimizer divides by ----
manager = FixedLossScaleManager(1024.0, drop_overflow_update=False)
fixed, accuracy, _, _ = run("O2", loss_scale_manager=manager, divided=1024.0)
print(fixed, accuracy)
assert float(manager.get_loss_scale()) == 1024.0 and manager.get_drop_overflow_update() is False
np.testing.assert_allclose(fixed[:4], full[:4], rtol=3e-2)

# ---- managers by themselves ----
dynamic = DynamicLossScaleManager(init_loss_scale=2**8, scale_factor=2, scale_window=2)
scales = []
for overflow in (False, False, True, True, False, False, False):
    dynamic.update_loss_scale(overflow)
    scales.append(float(dynamic.get_loss_scale()))
print(scales)
assert isinstance(dynamic.get_update_cell(), nn.DynamicLossScaleUpdateCell)
print("SCALES", scales)

# ---- the train network by hand ----
network = Network()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9)
train_network = amp.build_train_network(network, optimizer, loss, level="O2", loss_scale_manager=None)
train_network.set_train()
by_hand = [float(train_network(image, label)) for image, label in create_dataset().create_tuple_iterator()]
print(by_hand)
np.testing.assert_allclose(by_hand, full[:4], rtol=3e-2)
