"""Parameters and initializers: how they are made and found, and how cells hold them."""

import numpy as np

import mindspore as ms
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.common.initializer import Constant, HeUniform, Initializer, Normal, Uniform, XavierUniform, initializer

# ---- Parameter ----
x = Parameter(default_input=Tensor(np.arange(6).reshape(2, 3), ms.float32), name="x")
y = Parameter(default_input=initializer("ones", [1, 2, 3], ms.float32), name="y")
z = Parameter(default_input=2.0, name="z", requires_grad=False)
print(x, "\n\n", y, "\n\n", z)
assert str(x) == "Parameter (name=x, shape=(2, 3), dtype=Float32, requires_grad=True)"
assert str(z) == "Parameter (name=z, shape=(), dtype=Float32, requires_grad=False)"
assert isinstance(x, Tensor) and x.asnumpy().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
assert (x.name, x.shape, x.dtype, x.requires_grad) == ("x", (2, 3), ms.float32, True) and not z.requires_grad
assert x.layerwise_parallel is False

x.name = "renamed"
x.requires_grad = False
x.set_data(Tensor(np.ones((2, 3)), ms.float32))
assert x.name == "renamed" and float(x.sum()) == 6.0
copied = x.clone()
copied.set_data(Tensor(np.zeros((2, 3)), ms.float32))
assert float(x.sum()) == 6.0 and float(copied.sum()) == 0.0
assert str(x + 1) == "[[2. 2. 2.]\n [2. 2. 2.]]" and x[0, 1].asnumpy() == 1.0

# ---- ParameterTuple ----
first = Parameter(Tensor([1.0, 2.0]), name="first")
second = Parameter(Tensor([[3.0]]), name="second")
both = ParameterTuple((first, second))
print(both)
clones = both.clone("zeroed", init="zeros")
assert isinstance(both, tuple) and len(both) == 2 and [p.name for p in clones] == ["zeroed.first", "zeroed.second"]
assert [float(p.sum()) for p in clones] == [0.0, 0.0] and float(first.sum()) == 3.0


# ---- a cell and its parameters ----
class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.ones((3, 2)), ms.float32), name="w")
        self.b = Parameter(Tensor(np.zeros(2), ms.float32), name="b", requires_grad=False)

    def construct(self, x):
        return ops.matmul(x, self.w) + self.b


class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.seq = nn.SequentialCell(nn.Dense(2, 4), nn.ReLU())
        self.scale = Parameter(Tensor(2.0, ms.float32), name="scale")

    def construct(self, x):
        return self.seq(self.inner(x)) * self.scale


net = Outer()
names = [name for name, _ in net.parameters_and_names()]
print(names)
assert sorted(names) == ["inner.b", "inner.w", "scale", "seq.0.bias", "seq.0.weight"]
assert [p.name for p in net.get_parameters()] == names and list(net.parameters_dict()) == names
assert [p.name for p in net.untrainable_params()] == ["inner.b"] and len(net.trainable_params()) == 4
net.seq[0].weight.requires_grad = False
assert len(net.trainable_params()) == 3

cells = [name for name, _ in net.cells_and_names()]
print(cells)
assert cells == ["", "inner", "seq", "seq.0", "seq.1"]
assert list(net.name_cells()) == ["inner", "seq"] and len(list(net.cells())) == 2
kinds = [type(cell).__name__ for _, cell in net.cells_and_names()]
assert kinds == ["Outer", "Inner", "SequentialCell", "Dense", "ReLU"]
assert net.training is False and net.set_train().training is True and net.seq[1].training is True

# ---- weights by string, by class, by Tensor, by number ----
dense = nn.Dense(3, 4, weight_init="ones", bias_init=0.25)
assert str(dense(Tensor([[1.0, 2.0, 3.0]]))) == "[[6.25 6.25 6.25 6.25]]"
conv = nn.Conv2d(2, 3, 2, has_bias=True, weight_init=Constant(0.5), bias_init="zeros", pad_mode="valid")
assert conv(ops.ones((1, 2, 2, 2), ms.float32)).asnumpy().ravel().tolist() == [4.0, 4.0, 4.0]
normal = nn.Dense(40, 50, weight_init=Normal(0.2), bias_init=Uniform(0.3))
assert 0.15 < normal.weight.asnumpy().std() < 0.25 and np.abs(normal.bias.asnumpy()).max() <= 0.3
assert np.abs(nn.Dense(40, 50, weight_init=XavierUniform()).weight.asnumpy()).max() <= np.sqrt(6 / 90) + 1e-6
assert np.abs(nn.Dense(40, 50, weight_init=HeUniform()).weight.asnumpy()).max() <= np.sqrt(3) * np.sqrt(2 / 40)

# ---- initializer as a function, and one after the fact for every cell ----
tensor = initializer("zeros", [2, 2], ms.float32)
print(tensor.init_data())
assert str(initializer(Constant(3), [2], ms.int32).init_data()) == "[3 3]"
for name, parameter in net.parameters_and_names():
    if "bias" in name:
        parameter.set_data(initializer(Constant(1.5), parameter.shape, parameter.dtype))
for _, cell in net.cells_and_names():
    if isinstance(cell, nn.Dense):
        cell.weight.set_data(initializer("ones", cell.weight.shape, cell.weight.dtype))
out = net(Tensor([[1.0, 1.0, 1.0]]))
print(out)
assert str(out) == "[[15. 15. 15. 15.]]"


class Ramp(Initializer):
    """Counts from a start."""

    def __init__(self, start):
        super().__init__(start=start)
        self.start = start

    def _initialize(self, arr):
        arr[:] = np.arange(self.start, self.start + arr.size, dtype=arr.dtype).reshape(arr.shape)


ramp = Parameter(initializer(Ramp(2), [2, 2], ms.float32), name="ramp")
assert ramp.asnumpy().tolist() == [[2.0, 3.0], [4.0, 5.0]]

# ---- reproducible ----
ms.set_seed(5)
one = nn.Dense(3, 3).weight.asnumpy().copy()
ms.set_seed(5)
np.testing.assert_array_equal(nn.Dense(3, 3).weight.asnumpy(), one)
