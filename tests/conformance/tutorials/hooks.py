"""Hooks in PyNative mode: on a variable, on a tensor, and on a cell before, after and behind it."""

import numpy as np

import mindspore as ms
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)

# ---- HookBackward: the gradient that comes back to a variable ----
caught = []


def hook_fn(grad_out):
    print("HookBackward:", grad_out)
    caught.append(grad_out)


hook = ops.HookBackward(hook_fn)


def product(x, y):
    z = x * y
    z = hook(z)
    z = z * y
    return z


def gradients(x, y):
    return ms.grad(product, grad_position=(0, 1))(x, y)


output = gradients(Tensor(3, ms.float32), Tensor(5, ms.float32))
print("output:", output)
assert isinstance(caught[0], tuple) and float(caught[0][0]) == 5.0
assert [float(grad) for grad in output] == [25.0, 30.0]


def halve(grad_out):
    return grad_out[0] * 0.5


hook = ops.HookBackward(halve)
assert [float(grad) for grad in gradients(Tensor(3, ms.float32), Tensor(5, ms.float32))] == [12.5, 22.5]

# ---- Tensor.register_hook ----
seen = []


def double(grad):
    seen.append(grad.asnumpy().tolist())
    return grad * 2


def with_tensor_hook(x):
    y = x * x
    y.register_hook(double)
    return (y * 3).sum()


grad = ms.grad(with_tensor_hook)(Tensor([1.0, 2.0]))
print("tensor hook:", seen, grad)
assert seen == [[3.0, 3.0]] and grad.asnumpy().tolist() == [12.0, 24.0]

weight = Tensor([1.0, 4.0])
handle = weight.register_hook(lambda grad: grad * 10)
assert ms.grad(lambda w: (w * w).sum())(weight).asnumpy().tolist() == [20.0, 80.0]
handle.remove()
assert ms.grad(lambda w: (w * w).sum())(weight).asnumpy().tolist() == [2.0, 8.0]

# ---- on cells ----
order = []


def forward_pre_hook_fn(cell, inputs):
    order.append(("pre", type(cell).__name__, tuple(x.shape for x in inputs)))
    return inputs[0] + 1


def forward_hook_fn(cell, inputs, output):
    order.append(("forward", float(inputs[0].sum()), float(output.sum())))
    return output * 2


def backward_hook_fn(cell, grad_input, grad_output):
    order.append(("backward", grad_output[0].asnumpy().tolist()))
    print("backward:", cell, grad_input, grad_output)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.scale = nn.Dense(2, 2, weight_init=Tensor([[1.0, 0.0], [0.0, 3.0]]), has_bias=False)
        self.relu = nn.ReLU()
        self.pre = self.scale.register_forward_pre_hook(forward_pre_hook_fn)

    def construct(self, x):
        return self.relu(self.scale(x)).sum()


net = Net()
x = Tensor([[1.0, -2.0]])
assert float(net(x)) == 2.0
net.pre.remove()
assert float(net(x)) == 1.0
assert order == [("pre", "Dense", ((1, 2),))]

order.clear()
forward = net.relu.register_forward_hook(forward_hook_fn)
assert float(net(x)) == 2.0
assert order == [("forward", -5.0, 1.0)]
forward.remove()

order.clear()
backward = net.scale.register_backward_hook(backward_hook_fn)
grad = ms.grad(net)(x)
print("grad:", grad)
assert order == [("backward", [[1.0, 0.0]])] and grad.asnumpy().tolist() == [[1.0, 0.0]]
backward.remove()


# ---- a backward hook that gives another gradient, as clipping does ----
def clip(cell, grad_input, grad_output):
    return tuple(ops.clip_by_value(grad, Tensor(-0.5, ms.float32), Tensor(0.5, ms.float32)) for grad in grad_input)


handle = net.scale.register_backward_hook(clip)
grad_fn = ms.value_and_grad(net, 0, net.trainable_params())
value, (of_x, of_weights) = grad_fn(Tensor([[1.0, 2.0]]))
print(value, of_x, of_weights)
assert float(value) == 7.0 and of_x.asnumpy().tolist() == [[0.5, 0.5]]
assert of_weights[0].asnumpy().tolist() == [[1.0, 2.0], [1.0, 2.0]]
handle.remove()

# ---- hooks and training: what passes through a layer, step by step ----
optimizer = nn.SGD(net.trainable_params(), 0.1)
activations = []
handle = net.relu.register_forward_hook(lambda cell, inputs, output: activations.append(output.asnumpy().tolist()))
step = ms.value_and_grad(net, None, optimizer.parameters)
for _ in range(3):
    loss, grads = step(Tensor([[1.0, 2.0]]))
    optimizer(grads)
handle.remove()
print(activations)
np.testing.assert_allclose(np.array(activations)[:, 0], [[1.0, 6.0], [0.5, 5.5], [0.0, 5.0]], atol=1e-6)
