"""Loops in graphs: while, decided by constants and by tensors, with continue and break."""

import mindspore as ms
from mindspore import Tensor


@ms.jit
def counted(x):
    i = 0
    while i < 3:
        x = x + i
        i += 1
    return x


@ms.jit
def doubled_until(x, limit):
    steps = Tensor(0, ms.int32)
    while x < limit:
        x = x * 2
        steps = steps + 1
    return x, steps


assert str(counted(Tensor([1.0, 2.0]))) == "[4. 5.]"
value, steps = doubled_until(Tensor(3.0, ms.float32), Tensor(40.0, ms.float32))
assert float(value) == 48.0 and int(steps) == 4
value, steps = doubled_until(Tensor(50.0, ms.float32), Tensor(40.0, ms.float32))
assert float(value) == 50.0 and int(steps) == 0


@ms.jit
def with_break(x, limit):
    total = Tensor(0.0, ms.float32)
    i = Tensor(0, ms.int32)
    while i < 10:
        i = i + 1
        if i % 2 == 0:
            continue
        total = total + x
        if total > limit:
            break
    return total, i


total, i = with_break(Tensor(2.0, ms.float32), Tensor(5.0, ms.float32))
assert float(total) == 6.0 and int(i) == 5
