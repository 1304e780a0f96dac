"""Mixed precision: levels, lists of one's own, loss scaling in a functional train step, and in Model."""

import numpy as np

import mindspore as ms
from mindspore import Tensor, amp, nn
from mindspore.amp import DynamicLossScaler, StaticLossScaler, all_finite, auto_mixed_precision

generator = np.random.default_rng(9)


def drawn(*shape):
    return Tensor((generator.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32))


first, second = drawn(8, 6), drawn(3, 8)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense1 = nn.Dense(6, 8, weight_init=first, bias_init="zeros")
        self.norm = nn.BatchNorm1d(8)
        self.relu = nn.ReLU()
        self.dense2 = nn.Dense(8, 3, weight_init=second, bias_init="zeros")

    def construct(self, x):
        return self.dense2(self.relu(self.norm(self.dense1(x))))


x = Tensor(generator.standard_normal((12, 6)).astype(np.float32))
y = Tensor((np.arange(12) % 3).astype(np.int32))
full = Network()(x).asnumpy()

# ---- the levels ----
for level, output in (("O0", ms.float32), ("O1", ms.float32), ("O2", ms.float32), ("O3", ms.float32)):
    model = auto_mixed_precision(Network(), level)
    logits = model(x)
    print(level, logits.dtype)
    assert logits.dtype == output
    np.testing.assert_allclose(logits.asnumpy(), full, atol=0 if level == "O0" else 2e-2)

# ---- lists: what is computed in half, or what is not ----
white = amp.get_white_list()
assert nn.Dense in white and nn.Conv2d in white
black = amp.get_black_list()
assert nn.BatchNorm1d in black and nn.LayerNorm in black
by_white = amp.custom_mixed_precision(Network(), white_list=[nn.Dense])
by_black = amp.custom_mixed_precision(Network(), black_list=black + [nn.ReLU])
for model in (by_white, by_black):
    np.testing.assert_allclose(model(x).asnumpy(), full, atol=2e-2)
white.clear()
assert nn.Dense in amp.get_white_list()

# ---- by hand: one cell in half ----
by_hand = Network()
by_hand.dense2.to_float(ms.float16)
assert by_hand(x).dtype == ms.float16
np.testing.assert_allclose(by_hand(x).asnumpy(), full, atol=2e-2)

# ---- loss scaling in a train step of one's own ----
model = auto_mixed_precision(Network(), "O2")
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(model.trainable_params(), 1e-1)
loss_scaler = DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=3)


def forward_fn(data, label):
    logits = model(data)
    loss = loss_fn(logits, label)
    # The scaled loss is what is differentiated.
    loss = loss_scaler.scale(loss)
    return loss, logits


grad_fn = ms.value_and_grad(forward_fn, None, model.trainable_params(), has_aux=True)


@ms.jit
def train_step(data, label):
    (loss, _), grads = grad_fn(data, label)
    loss = loss_scaler.unscale(loss)

    is_finite = all_finite(grads)
    if is_finite:
        grads = loss_scaler.unscale(grads)
        optimizer(grads)
    loss_scaler.adjust(is_finite)
    return loss, is_finite


model.set_train()
losses, flags, scales = [], [], []
bad = Tensor(np.full((12, 6), np.inf, np.float32))
for data in (x, x, x, bad, x, x, x):
    loss, is_finite = train_step(data, y)
    losses.append(float(loss))
    flags.append(bool(is_finite))
    scales.append(float(loss_scaler.scale_value.asnumpy()))
    print(f"loss {losses[-1]:.4f}, finite {is_finite}, scale {loss_scaler.scale_value.asnumpy()}")
assert flags == [True, True, True, False, True, True, True]
assert scales == [1024.0, 1024.0, 2048.0, 1024.0, 1024.0, 1024.0, 2048.0]
good = losses[:3] + losses[4:]
np.testing.assert_allclose(good, [1.122108, 1.107379, 1.093710, 1.081089, 1.069222, 1.058040], rtol=3e-3)

# ---- a constant loss scale ----
static = StaticLossScaler(128)
assert float(static.scale(Tensor(2.0, ms.float32))) == 256.0
one, other = static.unscale((Tensor([128.0]), Tensor([64.0, 32.0])))
assert str(one) == "[1.]" and str(other) == "[0.5  0.25]"
assert bool(static.adjust(Tensor(False))) is False and float(static.scale_value) == 128.0
assert bool(all_finite((one, other))) and not bool(all_finite((one, Tensor([np.inf, 0.0], ms.float32))))
