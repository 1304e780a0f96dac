"""A network of cells: defined, called, taken apart layer by layer, and its parameters printed."""

import numpy as np

import mindspore
from mindspore import Tensor, nn, ops

generator = np.random.default_rng(2)


def weights(*shape):
    return Tensor(generator.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[-1])))


class Classifier(nn.Cell):
    """Three dense layers over a flattened picture."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(28 * 28, 32, weight_init=weights(32, 28 * 28), bias_init="zeros"),
            nn.ReLU(),
            nn.Dense(32, 16, weight_init=weights(16, 32), bias_init="ones"),
            nn.ReLU(),
            nn.Dense(16, 10, weight_init=weights(10, 16), bias_init="zeros"),
        )

    def construct(self, x):
        x = self.flatten(x)
        logits = self.dense_relu_sequential(x)
        return logits


model = Classifier()
print(model)
shown = str(model)
assert shown.startswith("Classifier(\n  (flatten): Flatten()\n  (dense_relu_sequential): SequentialCell(\n")
assert "(0): Dense(input_channels=784, output_channels=32, has_bias=True)\n    (1): ReLU()\n" in shown

x = ops.ones((1, 28, 28), mindspore.float32)
logits = model(x)
assert logits.shape == (1, 10) and logits.dtype == mindspore.float32
probabilities = nn.Softmax(axis=1)(logits)
predicted = probabilities.argmax(1)
print(f"Predicted class: {predicted}")
assert predicted.shape == (1,) and predicted.dtype in (mindspore.int32, mindspore.int64)
np.testing.assert_allclose(probabilities.asnumpy().sum(), 1.0, rtol=1e-6)

# The same numbers in NumPy.
value = np.ones((1, 784), np.float32)
for place in (0, 2, 4):
    layer = model.dense_relu_sequential[place]
    value = value @ layer.weight.asnumpy().T + layer.bias.asnumpy()
    value = value if place == 4 else np.maximum(value, 0)
np.testing.assert_allclose(logits.asnumpy(), value, rtol=1e-4, atol=1e-5)
assert int(predicted[0]) == int(value.argmax())

# ---- layer by layer ----
pictures = ops.ones((3, 28, 28), mindspore.float32)
print(pictures.shape)
flat = nn.Flatten()(pictures)
print(flat.shape)
assert flat.shape == (3, 784)

dense = nn.Dense(in_channels=28 * 28, out_channels=20)
hidden = dense(flat)
print(hidden.shape)
assert hidden.shape == (3, 20) and dense.weight.shape == (20, 784) and dense.bias.shape == (20,)

mixed = hidden - hidden.mean() + Tensor(np.linspace(-1, 1, 20).astype(np.float32))
print(f"Before ReLU: {mixed}\n\n")
active = nn.ReLU()(mixed)
print(f"After ReLU: {active}")
assert float(active.min()) == 0.0 and bool((active == ops.maximum(mixed, Tensor(0.0, mindspore.float32))).all())

sequence = nn.SequentialCell(flat_again := nn.Flatten(), dense, nn.ReLU(), nn.Dense(20, 10))
logits = sequence(pictures)
print(logits.shape)
assert logits.shape == (3, 10) and sequence[0] is flat_again and len(sequence) == 4

softmax = nn.Softmax(axis=1)
np.testing.assert_allclose(softmax(logits).asnumpy().sum(axis=1), np.ones(3), rtol=1e-5)

# ---- parameters ----
print(f"Model structure: {model}\n\n")
for name, parameter in model.parameters_and_names():
    print(f"Layer: {name}\nSize: {parameter.shape}\nValues: {parameter[:2]} \n")
names = [name for name, _ in model.parameters_and_names()]
assert names == [f"dense_relu_sequential.{place}.{kind}" for place in (0, 2, 4) for kind in ("weight", "bias")]
assert [parameter.name for parameter in model.trainable_params()] == names
first = next(iter(model.get_parameters()))
assert first.shape == (32, 784) and first[:2].shape == (2, 784) and first.dtype == mindspore.float32

# ---- the same network from functions ----


class Functional(nn.Cell):
    """Parameters of its own and operations on them."""

    def __init__(self):
        super().__init__()
        self.w = mindspore.Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]), name="w")
        self.b = mindspore.Parameter(Tensor([0.5, -20.0]), name="b")

    def construct(self, x):
        return ops.relu(ops.matmul(x, self.w) + self.b)


output = Functional()(Tensor([[1.0, 1.0], [2.0, 4.0]]))
print(output)
assert str(output) == "[[ 4.5  0. ]\n [14.5  0. ]]"
