"""Tensors: how they are made, what they know of themselves, indexing, arithmetic, and the way to NumPy and back."""

import numpy as np

import mindspore
from mindspore import Tensor, ops
from mindspore.common.initializer import Normal, One

# ---- made from data, from NumPy, by an initializer, from another tensor ----
values = [3, 0, 7, 5]
from_list = Tensor(values)
print(from_list, from_list.shape, from_list.dtype)
assert str(from_list) == "[3 0 7 5]"
assert f"{from_list.dtype} {from_list.shape}" == "Int64 (4,)"
assert from_list.dtype == mindspore.int64 and isinstance(from_list.shape, tuple)

array = np.array([[0.5, 1.5], [2.5, 3.5]])
from_array = mindspore.Tensor(array)
print(from_array, from_array.shape, from_array.dtype)
assert from_array.dtype == mindspore.float64 and str(from_array.dtype) == "Float64"
assert str(from_array) == "[[0.5 1.5]\n [2.5 3.5]]"

filled = mindspore.Tensor(shape=(2, 3), dtype=mindspore.float32, init=One())
drawn = mindspore.Tensor(shape=(2, 3), dtype=mindspore.float32, init=Normal())
filled.init_data()
drawn.init_data()
print("filled:\n", filled)
print("drawn:\n", drawn)
assert str(filled) == "[[1. 1. 1.]\n [1. 1. 1.]]"
assert drawn.shape == (2, 3) and drawn.dtype == mindspore.float32 and float(ops.abs(drawn).max()) < 0.1

ones, zeros = ops.ones_like(from_list), ops.zeros_like(from_list)
print(f"{ones}\n{zeros}")
assert str(ones) == "[1 1 1 1]" and str(zeros) == "[0 0 0 0]" and ones.dtype == mindspore.int64

assert str(Tensor(2.5)) == "2.5" and Tensor(2.5).dtype == mindspore.float32 and Tensor(4).dtype == mindspore.int64
assert Tensor(True).dtype == mindspore.bool_ and str(Tensor(True)) == "True"
assert repr(Tensor([1.0, 2.0])) == "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"
assert str(mindspore.tensor([1, 2], mindspore.float16)) == "[1. 2.]"

# ---- attributes ----
table = Tensor(np.arange(6).reshape(2, 3), mindspore.int32)
print("shape:", table.shape, "dtype:", table.dtype, "itemsize:", table.itemsize, "nbytes:", table.nbytes)
print("size:", table.size, "ndim:", table.ndim, "strides:", table.strides)
assert (table.shape, table.itemsize, table.nbytes, table.size, table.ndim) == ((2, 3), 4, 24, 6, 2)
assert table.dtype == mindspore.int32 and table.strides == (12, 4)
assert len(table) == 2 and table.T.shape == (3, 2)

# ---- indexing, and assignment by index ----
grid = Tensor(np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]]).astype(np.float32))
print(f"first row: {grid[0]}, middle column: {grid[:, 1]}, last column: {grid[..., -1]}, corner: {grid[-1, -1]}")
assert str(grid[0]) == "[0. 1. 2.]" and str(grid[0, :]) == "[0. 1. 2.]"
assert str(grid[:, 1]) == "[1. 4. 7.]" and str(grid[..., -1]) == "[2. 5. 8.]" and str(grid[-1, -1]) == "8.0"
assert str(grid[1:, :2]) == "[[3. 4.]\n [6. 7.]]" and str(grid[grid > 5]) == "[6. 7. 8.]"
assert [float(row.sum()) for row in grid] == [3.0, 12.0, 21.0]
grid[:, 1] = 0
grid[0] = Tensor([9.0, 9.0, 9.0])
grid[2, 2] += 1
assert grid.asnumpy().tolist() == [[9.0, 9.0, 9.0], [3.0, 0.0, 5.0], [6.0, 0.0, 9.0]]
grid[grid > 8] = -1
assert str(grid[0]) == "[-1. -1. -1.]"

# ---- arithmetic ----
left, right = Tensor(np.array([2, 4, 6]), mindspore.float32), Tensor(np.array([5, 3, 4]), mindspore.float32)
added, taken, times = left + right, left - right, left * right
divided, remainder, floored = right / left, right % left, right // left
print("add:", added, "sub:", taken, "mul:", times, "div:", divided, "mod:", remainder, "floordiv:", floored)
assert str(added) == "[ 7.  7. 10.]" and str(taken) == "[-3.  1.  2.]" and str(times) == "[10. 12. 24.]"
assert str(remainder) == "[1. 3. 4.]" and str(floored) == "[2. 0. 0.]"
np.testing.assert_allclose(divided.asnumpy(), [2.5, 0.75, 0.6666667], rtol=1e-6)
assert str(2 ** left) == "[ 4. 16. 64.]" and str(-left) == "[-2. -4. -6.]" and str(1 - left) == "[-1. -3. -5.]"
assert str(left > 3) == "[False  True  True]" and str(left == right) == "[False False False]"
assert (Tensor([1, 2]) + 0.5).dtype == mindspore.float32 and (Tensor([1, 2]) * Tensor([1, 2])).dtype == mindspore.int64
assert (Tensor([1, 2], mindspore.int32) == Tensor([1, 3])).asnumpy().tolist() == [True, False]
assert (Tensor([1.0], mindspore.float16) + Tensor([1.0], mindspore.float32)).dtype == mindspore.float32

# ---- joining ----
upper, lower = Tensor(np.array([[0, 1], [2, 3]]).astype(np.float32)), Tensor(np.array([[4, 5], [6, 7]], np.float32))
joined, stacked = ops.concat((upper, lower), axis=0), ops.stack([upper, lower])
print(joined, "shape:\n", joined.shape)
print(stacked, "shape:\n", stacked.shape)
assert str(joined) == "[[0. 1.]\n [2. 3.]\n [4. 5.]\n [6. 7.]]" and joined.shape == (4, 2)
assert stacked.shape == (2, 2, 2) and str(stacked[1]) == "[[4. 5.]\n [6. 7.]]"
assert ops.cat((upper, lower), 1).shape == (2, 4)

# ---- to NumPy and from NumPy ----
tensor = Tensor([1.0, 2.0, 3.0])
print(f"tensor: {tensor}, {type(tensor)}")
back = tensor.asnumpy()
print(f"array: {back}, {type(back)}")
assert type(back) is np.ndarray and back.dtype == np.float32 and isinstance(tensor, Tensor)
numbers = np.ones(3)
again = Tensor.from_numpy(numbers)
assert str(again) == "[1. 1. 1.]" and again.dtype == mindspore.float64 and again.shape == (3,)
assert tensor.asnumpy().tolist() == tensor.tolist() == [1.0, 2.0, 3.0] and tensor[1].item() == 2.0
assert float(tensor.mean()) == 2.0 and int(tensor.argmax()) == 2 and bool((tensor > 0).all())
assert tensor.astype(mindspore.int32).dtype == mindspore.int32 and tensor.view(3, 1).shape == (3, 1)
assert tensor.reshape(3, 1).shape == (3, 1) and tensor.expand_dims(0).shape == (1, 3)
