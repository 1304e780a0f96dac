"""Sparse tensors in COO and CSR format, and their operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.ops import activation, tensor_info, unary
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import an_int, tensor, tensor_dtype
from mixtrain.ops.operator import operator
from mixtrain.ops.primitive import as_primitive, primitive
from mixtrain.typing import DTypeLike, Tensor, TensorLike

# The methods of sparse tensors are called by users, and so are operators.
_cast, _abs, _neg = operator("cast", tensor_info.cast), operator("abs", unary.abs), operator("neg", unary.neg)


class _OfValues:
    """What both formats do with `values`, those of the elements that are stored, and `shape`, that of all."""

    __slots__ = ()
    _format: ClassVar[str]

    @property
    def dtype(self: Any) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def ndim(self: Any) -> int:
        """The number of axes of the dense tensor."""
        return len(self.shape)

    @property
    def size(self: Any) -> int:
        """The number of stored values."""
        return int(self.values.shape[0])

    def astype(self: Any, dtype: DTypeLike) -> Any:
        """Return the tensor with values of another dtype."""
        return self._replace(values=_cast(self.values, dtype))

    def abs(self: Any) -> Any:
        """Return the tensor with the absolute values."""
        return self._replace(values=_abs(self.values))

    def to_tuple(self: Any) -> tuple[Any, ...]:
        """Return the tensors of the format and the shape."""
        return tuple(self)

    def __neg__(self: Any) -> Any:
        return self._replace(values=_neg(self.values))

    def __repr__(self: Any) -> str:
        tensors = ", ".join(
            f"{field}=Tensor(shape={list(value.shape)}, dtype={value.dtype}, value={value.asnumpy()})"
            for field, value in zip(self._fields, self[:-1], strict=False)
        )
        return f"{self._format}(shape={list(self.shape)}, dtype={self.dtype}, {tensors})"


class COOTensor(  # type: ignore[misc]  # The tuple's own `__repr__` is not used.
    _OfValues, NamedTuple("COOTensor", [("indices", Tensor), ("values", Tensor), ("shape", tuple[int, ...])])
):
    """A sparse tensor in COO format; a tuple, so that compiled functions take and return it.

    Args:
        indices: The indices of the elements (n, axes), int32 or int64.
        values: The elements (n,).
        shape: The dense shape, a tuple of ints.

    Example:
        >>> import mixtrain
        >>> x = mixtrain.COOTensor(mixtrain.Tensor([[0, 1], [1, 2]]), mixtrain.Tensor([1.0, 2.0]), (2, 3))
        >>> x.to_dense().asnumpy().tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    """

    __slots__ = ()
    _format = "COOTensor"

    def to_dense(self) -> Tensor:
        """Return the dense tensor."""
        return _dense(self.indices, self.values, self.shape)

    def to_csr(self) -> CSRTensor:
        """Return the matrix in CSR format; its indices must be sorted."""
        return _to_csr(self)

    def __add__(self, other: Tensor) -> Any:
        return _add_coo(self, other, 0)


class SparseTensor(COOTensor):
    """MindSpore's older name of `COOTensor`. Example: ``mixtrain.SparseTensor(indices, values, (3, 4))``."""

    __slots__ = ()


class CSRTensor(  # type: ignore[misc]  # The tuple's own `__repr__` is not used.
    _OfValues, NamedTuple("CSRTensor", [
        ("indptr", Tensor), ("indices", Tensor), ("values", Tensor), ("shape", tuple[int, int]),
    ])
):
    """A sparse matrix in CSR format: row pointers, columns and values of its elements.

    Args:
        indptr: Where each row begins among the values, and where the last one ends (rows + 1,).
        indices: The columns of the elements (n,).
        values: The elements (n,).
        shape: The dense shape, (rows, columns).

    Example:
        >>> import mixtrain
        >>> parts = (mixtrain.Tensor(part) for part in ([0, 1, 2], [1, 0], [3.0, 4.0]))
        >>> mixtrain.CSRTensor(*parts, (2, 2)).to_dense().asnumpy().tolist()
        [[0.0, 3.0], [4.0, 0.0]]
    """

    __slots__ = ()
    _format = "CSRTensor"

    def to_coo(self) -> COOTensor:
        """Return the matrix in COO format."""
        return _to_coo(self)

    def to_dense(self) -> Tensor:
        """Return the dense matrix."""
        return _csr_to_dense(self)

    def __add__(self, other: Tensor) -> Any:
        return _add_csr(self, other, 1, 1)


class RowTensor(NamedTuple):
    """Some rows of a tensor whose other rows are zeros, such as the gradient of an embedding.

    `indices` (n,) and `values` (n, ...) are the stored rows; `dense_shape` the dense shape.
    """

    indices: Tensor
    values: Tensor
    dense_shape: tuple[int, ...]


def _to_dense(indices: TensorLike, values: TensorLike, shape: Sequence[int]) -> Tensor:
    where = "SparseToDense"
    index = keras.ops.cast(tensor(where, indices), "int32")
    sizes = shape if isinstance(shape, (tuple, list)) else _values_of(where, tensor(where, shape))
    given = tensor(where, values)
    added = keras.ops.cast(given, "int32") if tensor_dtype(given) == "bool" else given  # TensorFlow scatters no bools.
    return keras.ops.cast(keras.ops.scatter(index, added, tuple(map(int, sizes))), given.dtype)


_dense = operator("sparse_to_dense", _to_dense)


def _rows(x: Tensor) -> Tensor:
    """Return the row of each value of a CSRTensor."""
    positions = keras.ops.arange(x.values.shape[0], dtype=x.indptr.dtype)
    return keras.ops.cast(keras.ops.searchsorted(x.indptr, positions, side="right") - 1, x.indptr.dtype)


def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """Convert a CSRTensor `tensor` to a COOTensor."""
    indices = keras.ops.stack([_rows(tensor), keras.ops.cast(tensor.indices, tensor.indptr.dtype)], axis=1)
    return COOTensor(indices, tensor.values, tensor.shape)


def csr_to_dense(csr_tensor: CSRTensor) -> Tensor:
    """Convert a CSRTensor `csr_tensor` to a dense tensor."""
    return csr_to_coo(csr_tensor).to_dense()


def _coo_to_csr(x: COOTensor) -> CSRTensor:
    rows, columns = keras.ops.unstack(x.indices, axis=1)
    starts = keras.ops.arange(x.shape[0] + 1, dtype=rows.dtype)
    indptr = keras.ops.cast(keras.ops.searchsorted(rows, starts), "int32")
    return CSRTensor(indptr, keras.ops.cast(columns, "int32"), x.values, (int(x.shape[0]), int(x.shape[1])))


_to_csr = operator("coo_to_csr", _coo_to_csr)


def _values_of(where: str, x: Any) -> np.ndarray:
    """Return a tensor's values as an array; they determine the size of the result.

    Raises: TypeError if the tensor is part of a function that is being compiled.
    """
    if backend.is_symbolic(x):
        raise TypeError(
            f"{where}: expected a tensor with values; got one of a function that is being compiled. "
            "Write it outside construct, or use set_context(mode=PYNATIVE_MODE)."
        )
    return backend.to_numpy(x)


def dense_to_sparse_coo(tensor: TensorLike) -> COOTensor:
    """Convert a dense `tensor` to a COOTensor of its nonzero elements; not in a compiled function."""
    indices = np.argwhere(_values_of("ops.dense_to_sparse_coo", tensor))
    values = keras.ops.take(keras.ops.reshape(tensor, (-1,)), np.ravel_multi_index(tuple(indices.T), tensor.shape))
    return COOTensor(backend.to_tensor(indices, "int64"), values, tuple(tensor.shape))


def dense_to_sparse_csr(tensor: TensorLike) -> CSRTensor:
    """Convert a dense matrix `tensor` to a CSRTensor of its nonzero elements; not in a compiled function."""
    return _coo_to_csr(dense_to_sparse_coo(tensor))


def _merged(where: str, shape: tuple[int, ...], indices: Sequence[Tensor], values: Sequence[Tensor]) -> COOTensor:
    """Return all elements sorted by index; elements of the same index are added up."""
    merged = np.concatenate([_values_of(where, index) for index in indices])
    flat, segments = np.unique(np.ravel_multi_index(tuple(merged.T), shape), return_inverse=True)
    total = keras.ops.segment_sum(keras.ops.concatenate(values), segments.reshape(-1), num_segments=len(flat))
    unique = np.stack(np.unravel_index(flat, shape), axis=1)
    return COOTensor(keras.ops.cast(unique, indices[0].dtype), total, shape)


def coo_add(x1: COOTensor, x2: COOTensor, thresh: TensorLike) -> COOTensor:
    """Add two COOTensors `x1` and `x2` of one shape; sums of absolute value below `thresh` are left out."""
    if tuple(x1.shape) != tuple(x2.shape):
        raise checks.fail_value("ops.coo_add", f"x2 must have the shape {x1.shape}", x2.shape, "two of one shape")
    total = _merged("ops.coo_add", x1.shape, (x1.indices, x2.indices), (x1.values, x2.values))
    large = np.flatnonzero(np.abs(_values_of("ops.coo_add", total.values)) >= np.asarray(thresh))
    return COOTensor(keras.ops.take(total.indices, large, axis=0), keras.ops.take(total.values, large), total.shape)


def coo_concat(sp_input: Sequence[COOTensor], concat_dim: int = 0) -> COOTensor:
    """Concatenate two or more COOTensors `sp_input` of equal sizes in the other axes along `concat_dim`."""
    where, first, start, indices = "ops.coo_concat", sp_input[0], 0, []
    if len(sp_input) < 2:
        raise checks.fail_value(where, "sp_input must be two COOTensors or more", len(sp_input), "(a, b)")
    rank, axis = len(first.shape), an_int(where, "concat_dim", concat_dim)
    if not -rank <= axis < rank:
        raise IndexError(f"{where}: expected concat_dim from {-rank} to {rank - 1}; got {axis}. Write concat_dim=0.")
    axis %= rank
    for x in sp_input:
        if x.values.dtype != first.values.dtype:
            raise checks.fail_type(where, "values must have one dtype", x.values, f"a.astype({first.values.dtype})")
        if any(size != other for at, (size, other) in enumerate(zip(first.shape, x.shape)) if at != axis):
            raise RuntimeError(
                f"{where}: expected shapes that are equal but for axis {axis}; got {first.shape} and {x.shape}. Write "
                "COOTensor(indices, values, shape) with equal ones."
            )
        indices.append(x.indices + np.eye(len(x.shape), dtype=backend.to_numpy(x.indices).dtype)[axis] * start)
        start += x.shape[axis]
    shape = tuple(start if other == axis else size for other, size in enumerate(sp_input[0].shape))
    return _merged(where, shape, indices, [x.values for x in sp_input])


def csr_add(a: CSRTensor, b: CSRTensor, alpha: TensorLike, beta: TensorLike) -> CSRTensor:
    """`alpha` * `a` + `beta` * `b`, two CSRTensors of one shape."""
    x, y = csr_to_coo(a), csr_to_coo(b)
    values = (x.values * alpha, y.values * beta)
    return _coo_to_csr(_merged("ops.csr_add", a.shape, (x.indices, y.indices), values))


_add_coo, _add_csr = operator("coo_add", coo_add), operator("csr_add", csr_add)
_to_coo, _csr_to_dense = operator("csr_to_coo", csr_to_coo), operator("csr_to_dense", csr_to_dense)


def csr_softmax(logits: CSRTensor, dtype: DTypeLike) -> CSRTensor:
    """Softmax over the stored elements of each row of `logits`, a CSRTensor; `dtype` is that of the result."""
    rows, count = _rows(logits), logits.shape[0]
    largest = keras.ops.take(keras.ops.segment_max(logits.values, rows, num_segments=count), rows)
    powers = keras.ops.exp(logits.values - largest)
    values = powers / keras.ops.take(keras.ops.segment_sum(powers, rows, num_segments=count), rows)
    return logits._replace(values=tensor_info.cast(values, dtype))


def _of_values(kind: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    """Return an elementwise function for COOTensors or CSRTensors."""

    def compute(x: COOTensor | CSRTensor) -> COOTensor | CSRTensor:
        return x._replace(values=function(x.values))

    name = function.__name__
    return named(compute, f"{kind}_{name}", f"`ops.{name}` of the stored values of the {kind.upper()}Tensor `x`.")


_FUNCTIONS = (
    unary.abs, unary.acos, unary.acosh, unary.asin, unary.asinh, unary.atan, unary.atanh, unary.ceil, unary.cos,
    unary.cosh, unary.exp, unary.expm1, unary.floor, unary.inv, unary.isfinite, unary.isinf, unary.isnan, unary.log,
    unary.log1p, unary.neg, activation.relu, activation.relu6, unary.round, activation.sigmoid, unary.sin, unary.sinh,
    activation.softsign, unary.sqrt, unary.square, unary.tan, activation.tanh,
)
(
    coo_abs, coo_acos, coo_acosh, coo_asin, coo_asinh, coo_atan, coo_atanh, coo_ceil, coo_cos, coo_cosh, coo_exp,
    coo_expm1, coo_floor, coo_inv, coo_isfinite, coo_isinf, coo_isnan, coo_log, coo_log1p, coo_neg, coo_relu, coo_relu6,
    coo_round, coo_sigmoid, coo_sin, coo_sinh, coo_softsign, coo_sqrt, coo_square, coo_tan, coo_tanh,
) = (_of_values("coo", function) for function in _FUNCTIONS)
(
    csr_abs, csr_acos, csr_acosh, csr_asin, csr_asinh, csr_atan, csr_atanh, csr_ceil, csr_cos, csr_cosh, csr_exp,
    csr_expm1, csr_floor, csr_inv, csr_isfinite, csr_isinf, csr_isnan, csr_log, csr_log1p, csr_neg, csr_relu, csr_relu6,
    csr_round, csr_sigmoid, csr_sin, csr_sinh, csr_softsign, csr_sqrt, csr_square, csr_tan, csr_tanh,
) = (_of_values("csr", function) for function in _FUNCTIONS)


@as_primitive
def SparseToDense(indices: TensorLike, values: TensorLike, sparse_shape: TensorLike) -> Tensor:
    """A dense tensor of sparse elements. Example: ``ops.SparseToDense()(indices, values, sparse_shape)``."""
    return _to_dense(indices, values, sparse_shape)


@as_primitive
def SparseTensorDenseMatmul(
    indices: TensorLike, values: TensorLike, sparse_shape: TensorLike, dense: TensorLike, *, adjoint_st: bool = False,
    adjoint_dt: bool = False,
) -> Tensor:
    """The product of a sparse matrix and a dense one, transposed first with `adjoint_st` and `adjoint_dt`.

    Example: ``ops.SparseTensorDenseMatmul()(indices, values, sparse_shape, dense)``.
    """
    x, y = _to_dense(indices, values, sparse_shape), tensor("SparseTensorDenseMatmul", dense)
    return keras.ops.matmul(keras.ops.transpose(x) if adjoint_st else x, keras.ops.transpose(y) if adjoint_dt else y)


@as_primitive
def SparseTensorDenseAdd(
    x1_indices: TensorLike, x1_values: TensorLike, x1_shape: TensorLike, x2: TensorLike
) -> Tensor:
    """A sparse tensor plus a dense one: ``ops.SparseTensorDenseAdd()(x1_indices, x1_values, x1_shape, x2)``."""
    return _to_dense(x1_indices, x1_values, x1_shape) + tensor("SparseTensorDenseAdd", x2)


def _sparse_slice(
    indices: TensorLike, values: TensorLike, shape: TensorLike, start: TensorLike, size: TensorLike
) -> tuple[Tensor, Tensor, Tensor]:
    """The slice of a sparse tensor from `start` on, of at most `size`: its indices, values and shape."""
    where = "ops.SparseSlice"
    indices, values = tensor(where, indices), tensor(where, values)
    shape, start, size = (keras.ops.cast(tensor(where, value), indices.dtype) for value in (shape, start, size))
    size = keras.ops.maximum(keras.ops.minimum(size, shape - start), 0)
    shifted = indices - start
    inside = keras.ops.nonzero(keras.ops.all((shifted >= 0) & (shifted < size), axis=1))[0]
    return keras.ops.take(shifted, inside, axis=0), keras.ops.take(values, inside, axis=0), size


SparseSlice = primitive("SparseSlice", _sparse_slice)
