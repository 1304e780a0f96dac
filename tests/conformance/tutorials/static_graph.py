"""Acceleration by static graphs: `jit` on functions and methods, its parts, and the context's mode."""

import time

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

generator = np.random.default_rng(1)
first = Tensor(generator.standard_normal((16, 20)).astype(np.float32) / 4)
second = Tensor(generator.standard_normal((4, 16)).astype(np.float32) / 4)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.dense_relu_sequential = nn.SequentialCell(
            nn.Dense(20, 16, weight_init=first, bias_init="zeros"), nn.ReLU(),
            nn.Dense(16, 4, weight_init=second, bias_init="zeros"),
        )

    def construct(self, x):
        return self.dense_relu_sequential(self.flatten(x))


data = Tensor(generator.standard_normal((8, 4, 5)).astype(np.float32))
model = Network()


# ---- a function as a graph: as decorator, and by a call ----
@ms.jit
def run(x):
    return model(x)


eager = model(data)
graph = run(data)
print(graph.shape, graph.dtype)
np.testing.assert_allclose(graph.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)


def run_with_softmax(x):
    return ops.softmax(model(x), axis=-1)


run_by_call = ms.jit(run_with_softmax)
np.testing.assert_allclose(run_by_call(data).asnumpy().sum(axis=1), np.ones(8), rtol=1e-5)


# ---- a train step as a graph ----
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(model.trainable_params(), 0.1)


def forward_fn(x, label):
    logits = model(x)
    return loss_fn(logits, label), logits


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)


@ms.jit
def train_step(x, label):
    (loss, _), grads = grad_fn(x, label)
    optimizer(grads)
    return loss


label = Tensor((np.arange(8) % 4).astype(np.int32))
begin = time.time()
losses = [float(train_step(data, label)) for _ in range(5)]
print(f"time: {time.time() - begin:.2f}", losses)
np.testing.assert_allclose(losses, [1.762469, 1.550822, 1.387487, 1.253349, 1.140473], rtol=1e-5)


# ---- one method of a cell as a graph ----
class Partly(nn.Cell):
    """What is around the graph runs as Python."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor([2.0, 3.0]), name="weight")
        self.calls = 0

    @ms.jit
    def compiled(self, x):
        return x * self.weight + 1

    def construct(self, x):
        return self.compiled(x).sum()


partly = Partly()
assert float(partly(Tensor([1.0, 1.0]))) == 7.0
grad = ms.grad(partly)(Tensor([1.0, 1.0]))
print(grad)
assert str(grad) == "[2. 3.]"
assert float(partly(Tensor([2.0, 1.0]))) == 9.0


# ---- several shapes, several outputs, constants, keywords ----
@ms.jit
def statistics(x, power=2, shift=None):
    if shift is not None:
        x = x + shift
    return x.sum(), {"power": x**power}, (x.shape[0], x)


total, table, (size, same) = statistics(Tensor([1.0, 2.0, 3.0]))
assert float(total) == 6.0 and str(table["power"]) == "[1. 4. 9.]" and size == 3 and str(same) == "[1. 2. 3.]"
total, table, (size, _) = statistics(Tensor([1.0, 2.0]), power=3, shift=1)
assert float(total) == 5.0 and str(table["power"]) == "[ 8. 27.]" and size == 2


# ---- parameters, assignment and item assignment inside a graph ----
counter = Parameter(Tensor(0, ms.int32), name="counter")


@ms.jit
def count(x):
    ops.assign_add(counter, Tensor(1, ms.int32))
    x[1] = 9.0
    return x * 2


given = Tensor([1.0, 2.0, 3.0])
assert str(count(given)) == "[ 2. 18.  6.]" and str(count(given)) == "[ 2. 18.  6.]"
assert int(counter) == 2


# ---- a gradient of a graph, a graph of a gradient ----
@ms.jit
def cubed(x):
    return x**3


assert str(ms.grad(cubed)(Tensor([1.0, 2.0]))) == "[ 3. 12.]"
assert str(ms.jit(ms.grad(cubed))(Tensor([1.0, 2.0]))) == "[ 3. 12.]"

# ---- graph mode for everything that follows ----
ms.set_context(mode=ms.GRAPH_MODE)
graph = Network()(data)
np.testing.assert_allclose(graph.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)
ms.set_context(mode=ms.PYNATIVE_MODE)
np.testing.assert_allclose(Network()(data).asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)
