"""Gradient accumulation: a class that holds the sum of gradients, and the same from functions."""

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.dataset import NumpySlicesDataset

generator = np.random.default_rng(6)
points = generator.standard_normal((32, 5)).astype(np.float32)
labels = (points[:, 0] > 0).astype(np.int32)
start = (generator.standard_normal((2, 5)) / 2).astype(np.float32)


def dataset(batch_size):
    return NumpySlicesDataset((points, labels), ["data", "label"], shuffle=False).batch(batch_size)


def network():
    return nn.SequentialCell(nn.Flatten(), nn.Dense(5, 2, weight_init=Tensor(start), bias_init="zeros"))


# ---- the class: inner gradients, a counter, and the three things that are done with them ----
class Accumulator:
    def __init__(self, optimizer, accumulate_step):
        self.optimizer = optimizer
        self.inner_grads = optimizer.parameters.clone(prefix="accumulate_", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zeros_", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), "counter_")
        self.accumulate_step = accumulate_step
        self.map = ops.HyperMap()

    def __call__(self, grads):
        self.map(ops.partial(ops.assign_add), self.inner_grads, grads)
        if self.counter % self.accumulate_step == 0:
            self.optimizer(self.inner_grads)
            self.map(ops.partial(ops.assign), self.inner_grads, self.zeros)
        ops.assign_add(self.counter, Tensor(1, ms.int32))
        return True


model = network()
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.SGD(model.trainable_params(), 0.5)
accumulate_step = 4
accumulator = Accumulator(optimizer, accumulate_step)
assert [parameter.name for parameter in accumulator.inner_grads] == ["accumulate_.1.weight", "accumulate_.1.bias"]
assert all(float(parameter.sum()) == 0.0 for parameter in accumulator.inner_grads)


def forward_fn(data, label):
    logits = model(data)
    loss = loss_fn(logits, label)
    return loss / accumulate_step


grad_fn = ms.value_and_grad(forward_fn, None, model.trainable_params())


@ms.jit
def train_step(data, label):
    loss, grads = grad_fn(data, label)
    accumulator(grads)
    return loss


moved, weight = [], start
for data, label in dataset(4).create_tuple_iterator():
    loss = train_step(data, label)
    moved.append(not np.array_equal(model[1].weight.asnumpy(), weight))
    weight = model[1].weight.asnumpy().copy()
assert moved == [False, False, False, True] * 2 and int(accumulator.counter) == 9
assert all(float(ops.abs(parameter).max()) == 0.0 for parameter in accumulator.inner_grads)

# ---- four batches of 4 are one batch of 16 ----
whole = network()
whole_optimizer = nn.SGD(whole.trainable_params(), 0.5)


def whole_fn(data, label):
    return loss_fn(whole(data), label)


whole_grad = ms.value_and_grad(whole_fn, None, whole_optimizer.parameters)
for data, label in dataset(16).create_tuple_iterator():
    loss, grads = whole_grad(data, label)
    whole_optimizer(grads)
np.testing.assert_allclose(model[1].weight.asnumpy(), whole[1].weight.asnumpy(), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(model[1].bias.asnumpy(), whole[1].bias.asnumpy(), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(model[1].bias.asnumpy(), [-0.0414602, 0.0414602], rtol=1e-4)

# ---- from functions: the sum is made by hyper_map over two tuples ----
model = network()
optimizer = nn.Momentum(model.trainable_params(), 0.5, 0.9)
inner_grads = ms.ParameterTuple(model.trainable_params()).clone(prefix="sum", init="zeros")
add = ops.MultitypeFuncGraph("accumulate_grads")
clear = ops.MultitypeFuncGraph("clear_grads")


@add.register("Tensor", "Tensor")
def _add(inner, grad):
    return ops.assign_add(inner, grad)


@clear.register("Tensor")
def _clear(inner):
    return ops.assign(inner, ops.zeros_like(inner))


hyper_map = ops.HyperMap()


def summed_fn(data, label):
    return loss_fn(model(data), label)


forward_backward = ms.value_and_grad(summed_fn, None, optimizer.parameters)


def accumulate(data, label):
    loss, grads = forward_backward(data, label)
    hyper_map(add, inner_grads, grads)
    return loss


def update():
    optimizer(tuple(grad / accumulate_step for grad in inner_grads))
    hyper_map(clear, inner_grads)


losses = []
for epoch in range(3):
    for number, (data, label) in enumerate(dataset(4).create_tuple_iterator()):
        losses.append(float(accumulate(data, label)))
        if (number + 1) % accumulate_step == 0:
            update()
np.testing.assert_allclose([np.mean(losses[:8]), np.mean(losses[-8:])], [0.681963, 0.087184], rtol=1e-4)

assert all(float(inner.sum()) == 0.0 for inner in inner_grads)

# ---- in plain Python, with a sum of Tensors ----
total = None
for data, label in dataset(8).create_tuple_iterator():
    loss, grads = forward_backward(data, label)
    total = grads if total is None else tuple(ops.add(one, other) for one, other in zip(total, grads))
mean = [grad / 4 for grad in total]
loss, grads = forward_backward(Tensor(points), Tensor(labels))
for one, other in zip(mean, grads):
    np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-4, atol=1e-6)
