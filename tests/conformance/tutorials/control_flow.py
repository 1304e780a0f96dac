"""Control flow in graphs: if and for, decided by constants and by tensors."""

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, nn


# ---- if: decided by a constant, by a tensor, with and without a return ----
@ms.jit
def by_constant(x, add):
    if add:
        return x + 10
    return x - 10


assert str(by_constant(Tensor([1.0]), True)) == "[11.]" and str(by_constant(Tensor([1.0]), False)) == "[-9.]"


@ms.jit
def larger(x, y):
    if x > y:
        out = x
    else:
        out = y * 2
    return out


print(larger(Tensor(4, ms.int32), Tensor(3, ms.int32)))
assert int(larger(Tensor(4, ms.int32), Tensor(3, ms.int32))) == 4
assert int(larger(Tensor(1, ms.int32), Tensor(3, ms.int32))) == 6


@ms.jit
def sign(x):
    if x > 0:
        return Tensor(1, ms.int32)
    else:
        if x < 0:
            return Tensor(-1, ms.int32)
        else:
            return Tensor(0, ms.int32)


assert [int(sign(Tensor(value, ms.float32))) for value in (2.5, -0.5, 0.0)] == [1, -1, 0]


@ms.jit
def both(x, low, high):
    if x > low and not x > high:
        x = x * 100
    return x if x.sum() > 50 else -x


assert [float(both(Tensor(v, ms.float32), Tensor(1.0), Tensor(3.0))) for v in (2.0, 5.0)] == [200.0, -5.0]


# ---- for: over a range, a list, a tuple, a tensor, and cells ----
@ms.jit
def loops(x, pairs):
    for i in range(3):
        x = x + i
    for a, b in pairs:
        x = x + a * b
    for row in Tensor([[1.0, 2.0], [3.0, 4.0]]):
        x = x + row.sum()
    for name, number in {"one": 1, "two": 2}.items():
        x = x + number
    return [x * k for k in (1, 2)]


one, two = loops(Tensor(0.0, ms.float32), ((1, 2), (3, 4)))
assert float(one) == 3 + 14 + 10 + 3 and float(two) == 2 * float(one)


class Layers(nn.Cell):
    """Cells in a list, a branch on a tensor and one on an attribute."""

    def __init__(self, twice):
        super().__init__()
        eye = Tensor(np.eye(2, dtype=np.float32) * 2)
        self.layers = nn.CellList([nn.Dense(2, 2, weight_init=eye, has_bias=False) for _ in range(3)])
        self.twice = twice
        self.seen = Parameter(Tensor(0, ms.int32), name="seen", requires_grad=False)

    def construct(self, x, limit):
        for layer in self.layers:
            x = layer(x)
            if x.sum() > limit:
                self.seen = self.seen + 1
                x = x - limit
        if self.twice:
            x = x * 2
        i = Tensor(0, ms.int32)
        while i < 2:
            x = x + 1
            i = i + 1
        return x


for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    net = Layers(twice=True)
    out = net(Tensor([[1.0, 2.0]]), Tensor(10.0, ms.float32))
    assert out.asnumpy().tolist() == [[-22.0, -6.0]] and int(net.seen) == 1
    grad = ms.grad(Layers(twice=False))(Tensor([[1.0, 2.0]]), Tensor(10.0, ms.float32))
    assert grad.asnumpy().tolist() == [[8.0, 8.0]]
