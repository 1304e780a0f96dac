"""Gradients: of a function, of parameters, stopped, with auxiliary values, and of a cell."""

import numpy as np

import mindspore
from mindspore import Parameter, Tensor, nn, ops

x = ops.ones(5, mindspore.float32)
y = ops.zeros(3, mindspore.float32)
start = np.linspace(-0.6, 0.8, 15, dtype=np.float32).reshape(5, 3)
w = Parameter(Tensor(start, mindspore.float32), name="w")
b = Parameter(Tensor(np.array([0.1, -0.2, 0.3]), mindspore.float32), name="b")


def function(x, y, w, b):
    z = ops.matmul(x, w) + b
    loss = ops.binary_cross_entropy_with_logits(z, y, ops.ones_like(z), ops.ones_like(z))
    return loss


logits = start.sum(axis=0) + np.array([0.1, -0.2, 0.3], np.float32)
sigmoid = 1 / (1 + np.exp(-logits))

loss = function(x, y, w, b)
print(loss)
assert loss.shape == () and loss.dtype == mindspore.float32
np.testing.assert_allclose(loss.asnumpy(), np.log1p(np.exp(logits)).mean(), rtol=1e-5)

# ---- grad_position: which arguments ----
grad_fn = mindspore.grad(function, (2, 3))
grads = grad_fn(x, y, w, b)
print(grads)
assert isinstance(grads, tuple) and len(grads) == 2 and grads[0].shape == (5, 3) and grads[1].shape == (3,)
np.testing.assert_allclose(grads[1].asnumpy(), sigmoid / 3, rtol=1e-5)
np.testing.assert_allclose(grads[0].asnumpy(), np.tile(sigmoid / 3, (5, 1)), rtol=1e-5)
of_x = mindspore.grad(function)(x, y, w, b)
assert of_x.shape == (5,)
np.testing.assert_allclose(of_x.asnumpy(), start @ (sigmoid / 3), rtol=1e-4, atol=1e-6)


# ---- stop_gradient ----
def function_with_logits(x, y, w, b):
    z = ops.matmul(x, w) + b
    loss = ops.binary_cross_entropy_with_logits(z, y, ops.ones_like(z), ops.ones_like(z))
    return loss, z


both = mindspore.grad(function_with_logits, (2, 3))(x, y, w, b)
print(both)
np.testing.assert_allclose(both[1].asnumpy(), sigmoid / 3 + 1, rtol=1e-5)


def function_stop_gradient(x, y, w, b):
    z = ops.matmul(x, w) + b
    loss = ops.binary_cross_entropy_with_logits(z, y, ops.ones_like(z), ops.ones_like(z))
    return loss, ops.stop_gradient(z)


stopped = mindspore.grad(function_stop_gradient, (2, 3))(x, y, w, b)
print(stopped)
np.testing.assert_allclose(stopped[1].asnumpy(), grads[1].asnumpy(), rtol=1e-6)

# ---- has_aux ----
grads, (z,) = mindspore.grad(function_with_logits, (2, 3), has_aux=True)(x, y, w, b)
print(grads, z)
np.testing.assert_allclose(grads[1].asnumpy(), sigmoid / 3, rtol=1e-5)
np.testing.assert_allclose(z.asnumpy(), logits, rtol=1e-5)


# ---- a cell, its loss and its parameters ----
class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = w
        self.b = b

    def construct(self, x):
        z = ops.matmul(x, self.w) + self.b
        return z


model = Network()
loss_fn = nn.BCEWithLogitsLoss()


def forward_fn(x, y):
    z = model(x)
    loss = loss_fn(z, y)
    return loss


grad_fn = mindspore.value_and_grad(forward_fn, None, weights=model.trainable_params())
loss, grads = grad_fn(x, y)
print(grads)
assert isinstance(grads, tuple) and [grad.shape for grad in grads] == [(5, 3), (3,)]
np.testing.assert_allclose(loss.asnumpy(), np.log1p(np.exp(logits)).mean(), rtol=1e-5)
np.testing.assert_allclose(grads[1].asnumpy(), sigmoid / 3, rtol=1e-5)


# ---- values, gradients of inputs and of weights together ----
def with_aux(x, y):
    z = model(x)
    return loss_fn(z, y), z


(loss, z), (of_x, of_weights) = mindspore.value_and_grad(
    with_aux, grad_position=0, weights=model.trainable_params(), has_aux=True
)(x, y)
np.testing.assert_allclose(of_x.asnumpy(), start @ (sigmoid / 3), rtol=1e-4, atol=1e-6)
assert len(of_weights) == 2 and z.shape == (3,)
only_b = mindspore.grad(forward_fn, None, weights=model.b)(x, y)
np.testing.assert_allclose(only_b.asnumpy(), sigmoid / 3, rtol=1e-5)


# ---- higher orders, and the primitive of earlier versions ----
def cube(x):
    return x * x * x


second = mindspore.grad(mindspore.grad(cube))
point = Tensor([1.0, 2.0, 3.0], mindspore.float32)
print(second(point))
assert str(mindspore.grad(cube)(point)) == "[ 3. 12. 27.]" and str(second(point)) == "[ 6. 12. 18.]"


def product(a, b):
    return a * b + a


of_a, of_b = ops.GradOperation(get_all=True)(product)(Tensor([2.0]), Tensor([5.0]))
assert str(of_a) == "[6.]" and str(of_b) == "[2.]"
scaled = ops.GradOperation(sens_param=True)(cube)(point, Tensor([1.0, 10.0, 100.0]))
assert str(scaled) == "[   3.  120. 2700.]"
