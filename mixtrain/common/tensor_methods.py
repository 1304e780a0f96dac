"""`TensorMethods`: MindSpore's tensor methods and operators, shared by Tensor and Parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks, ops
from mixtrain.common import method_forms
from mixtrain.common.method_forms import in_own_dtype, with_aliases
from mixtrain.common.operators import matmul as matmul_operator, operators, same_shapes, with_scalars
from mixtrain.common.tensor_in_place import InPlaceMethods
from mixtrain.common.tensor_math import MathMethods
from mixtrain.common.tensor_slicing import SlicingMethods
from mixtrain.dtype import DTYPES, as_dtype
from mixtrain.network.uncompiled import READS_VALUES, note_in_steps
from mixtrain.ops import nhwc, products, unary
from mixtrain.ops.inputs import rank_of, tensor, unpack
from mixtrain.ops.operator import tensor_method
from mixtrain.typing import DTypeLike, Tensor, TensorLike

# The dtypes that Python and NumPy mean by these names in `astype`; elsewhere float is float32.
_NUMPY_NAMES = {float: "float64", "float": "float64", "int": "int64", "bool_": "bool"}
_DEVICES = ("CPU", "GPU", "Ascend")

_Method = Callable[..., Any]


def _astype(self: TensorLike, dtype: DTypeLike, copy: bool = True) -> Tensor:
    return ops.cast(self, _NUMPY_NAMES.get(dtype, dtype) if isinstance(dtype, (str, type)) else dtype)


def _to(self: TensorLike, *args: Any, dtype: DTypeLike | None = None, device: str | None = None, **_: Any) -> Tensor:
    """Cast to the dtype among the arguments; a device name has no effect."""
    for value in (*args, dtype):
        if backend.is_tensor(value):
            return ops.cast(self, value.dtype)
        if value is not None and not isinstance(value, bool):
            name = getattr(value, "name", value)
            if not isinstance(name, str) or name in DTYPES:
                return ops.cast(self, as_dtype(value))
            checks.one_of("Tensor.to", "dtype or device", name, (*DTYPES, *_DEVICES, *map(str.lower, _DEVICES)))
    return self


def _type(self: TensorLike, dtype: DTypeLike | None = None) -> Tensor | str:
    if dtype is not None:
        return ops.cast(self, dtype)
    return str(ops.dtype(self))


def _concrete(self: TensorLike, method: str) -> np.ndarray:
    """Return the values as a NumPy array.

    Raises: TypeError if the tensor belongs to a function that is being compiled, and has no values yet.
    """
    x = tensor(f"Tensor.{method}", self)
    if not backend.is_symbolic(x):
        return backend.to_numpy(x)
    value = backend.known_value(x)
    if value is None:
        note_in_steps(READS_VALUES)
        raise TypeError(
            f"Tensor.{method}: expected a tensor with values; got one of a function that is being compiled. "
            "Write it outside construct, or use set_context(mode=PYNATIVE_MODE)."
        )
    return value.astype(np.float32) if value.dtype.name == "bfloat16" else value


def _item(self: TensorLike) -> Any:
    values = _concrete(self, "item")
    if values.size != 1:
        raise checks.fail_value("Tensor.item", "the tensor must have one element", values.shape, "x[0].item()")
    return values.item()


def _get_bytes(self: TensorLike) -> bytes:
    _concrete(self, "get_bytes")
    return in_own_dtype(tensor("Tensor.get_bytes", self)).tobytes()


def _reshape(self: TensorLike, *shape: Any, order: str = "C") -> Tensor:
    if order != "C":  # `jnp.reshape` of JAX 0.8 passes NumPy's argument `order` on to this method.
        raise ValueError(f'Tensor.reshape: order must be "C"; got {order!r}. Write x.T.reshape(the sizes backwards).T.')
    return ops.reshape(self, unpack(shape))


def _unchanged(self: TensorLike) -> Tensor:
    return tensor("Tensor.copy", self)


def _cast_to(dtype: str) -> _Method:
    return lambda self: ops.cast(self, dtype)


def _move_to(self: TensorLike, to: str, blocking: bool = True) -> Tensor:
    checks.one_of("Tensor.move_to", "to", to, _DEVICES)
    return tensor("Tensor.move_to", self)


def _reverse_axes(self: TensorLike) -> Tensor:
    x = tensor("Tensor.T", self)
    return keras.ops.transpose(x, tuple(reversed(range(rank_of(x)))))


def _hash(self: TensorLike) -> int:
    return id(self)


def _forms(*names: str) -> list[_Method]:
    return [tensor_method(name, getattr(method_forms, name)) for name in names]


class TensorMethods(MathMethods, SlicingMethods, InPlaceMethods):
    """The methods that Tensors and Parameters share."""

    __slots__ = ()

    abs, absolute, acos, acosh, arccos, arcsin = ops.abs, ops.absolute, ops.acos, ops.acosh, ops.arccos, ops.arcsin
    arctan, asin, asinh, atan, atanh, ceil = ops.arctan, ops.asin, ops.asinh, ops.atan, ops.atanh, ops.ceil
    cos, cosh, erf, erfc, exp, expm1, floor = ops.cos, ops.cosh, ops.erf, ops.erfc, ops.exp, ops.expm1, ops.floor
    isfinite, isinf, isnan, log, log10, log1p = ops.isfinite, ops.isinf, ops.isnan, ops.log, ops.log10, ops.log1p
    log2, logical_not, nan_to_num, neg, negative = ops.log2, ops.logical_not, ops.nan_to_num, ops.neg, ops.negative
    reciprocal, rsqrt, sign, sin, sinc, sinh = ops.reciprocal, ops.rsqrt, ops.sign, ops.sin, ops.sinc, ops.sinh
    sqrt, square, tan, trunc, addcdiv, addcmul = ops.sqrt, ops.square, ops.tan, ops.trunc, ops.addcdiv, ops.addcmul
    atan2, div, divide, floor_divide, fmod = ops.atan2, ops.div, ops.divide, ops.floor_divide, ops.fmod
    hypot, lerp, logaddexp, maximum, minimum = ops.hypot, ops.lerp, ops.logaddexp, ops.maximum, ops.minimum
    mul, multiply, pow, subtract, true_divide = ops.mul, ops.multiply, ops.pow, ops.subtract, ops.true_divide
    clamp, bitwise_and, bitwise_or, eq, equal = ops.clamp, ops.bitwise_and, ops.bitwise_or, ops.eq, ops.equal
    ge, greater, greater_equal, gt, isclose, le = ops.ge, ops.greater, ops.greater_equal, ops.gt, ops.isclose, ops.le
    less, less_equal, logical_and, logical_or = ops.less, ops.less_equal, ops.logical_and, ops.logical_or
    logical_xor, lt, ne, not_equal, count_nonzero = ops.logical_xor, ops.lt, ops.ne, ops.not_equal, ops.count_nonzero
    logsumexp, norm, amax, amin, cumprod, addmm = ops.logsumexp, ops.norm, ops.amax, ops.amin, ops.cumprod, ops.addmm
    baddbmm, bmm, dot, matmul, mm, mv, outer = ops.baddbmm, ops.bmm, ops.dot, ops.matmul, ops.mm, ops.mv, ops.outer
    flip, roll, argsort, topk = ops.flip, ops.roll, ops.argsort, ops.topk
    tril, triu, unique, gather_elements, gather_nd = ops.tril, ops.triu, ops.unique, ops.gather_elements, ops.gather_nd
    masked_fill, masked_select = ops.masked_fill, ops.masked_select
    nonzero, numel = ops.nonzero, ops.numel
    expand_dims, moveaxis, movedim, ravel = ops.expand_dims, ops.moveaxis, ops.movedim, ops.ravel
    swapaxes, swapdims, t, unsqueeze, unbind = ops.swapaxes, ops.swapdims, ops.t, ops.unsqueeze, ops.unbind
    (
        add, all, any, argmax, clip, diag, cumsum, flatten, gather, max, mean, min, prod, repeat, resize, round, select,
        softmax, sort, split, squeeze, std, sub, sum, take, transpose, var, view, where,
    ) = _forms(
        "add", "all", "any", "argmax", "clip", "diag", "cumsum", "flatten", "gather", "max", "mean", "min", "prod",
        "repeat", "resize", "round", "select", "softmax", "sort", "split", "squeeze", "std", "sub", "sum", "take",
        "transpose", "var", "view", "where",
    )
    remainder = with_aliases(ops.remainder, divisor="other")
    index_select = with_aliases(ops.index_select, dim="axis")
    repeat_interleave = with_aliases(ops.repeat_interleave, dim="axis")
    argmin = with_aliases(ops.argmin, dim="axis", keepdim="keepdims")
    median = with_aliases(ops.median, dim="axis", keepdim="keepdims")
    chunk = with_aliases(ops.chunk, dim="axis")
    asnumpy = tensor_method("asnumpy", lambda self: _concrete(self, "asnumpy"))
    astype = tensor_method("astype", _astype)
    bfloat16 = tensor_method("bfloat16", _cast_to("bfloat16"))
    bool = tensor_method("bool", _cast_to("bool"))
    broadcast_to = tensor_method("broadcast_to", lambda self, *shape: ops.broadcast_to(self, unpack(shape)))
    clone = tensor_method("clone", _unchanged)
    contiguous = tensor_method("contiguous", _unchanged)
    copy = tensor_method("copy", _unchanged)
    dim = tensor_method("dim", ops.rank)
    double = tensor_method("double", _cast_to("float64"))
    expand = tensor_method("expand", lambda self, *size: ops.broadcast_to(self, unpack(size)))
    expand_as = tensor_method("expand_as", with_aliases(
        lambda self, other: ops.broadcast_to(self, ops.shape(other)), x="other"
    ))
    fill = tensor_method("fill", lambda self, value: ops.full_like(self, value))
    float = tensor_method("float", _cast_to("float32"))
    half = tensor_method("half", _cast_to("float16"))
    init_data = tensor_method("init_data", lambda self, *_, **__: _unchanged(self))
    int = tensor_method("int", _cast_to("int32"))
    is_init = tensor_method("is_init", lambda self: False)
    requires_grad_ = tensor_method("requires_grad_", lambda self, requires_grad=True: None)
    is_contiguous = tensor_method("is_contiguous", lambda self: True)
    is_pinned = tensor_method("is_pinned", lambda self, *_, **__: False)
    is_shared = tensor_method("is_shared", lambda self: False)
    flush_from_cache = tensor_method("flush_from_cache", lambda self: None)
    get_bytes = tensor_method("get_bytes", _get_bytes)
    move_to = tensor_method("move_to", _move_to)
    set_const_arg = tensor_method("set_const_arg", lambda self, const_arg=True: None)
    set_init_flag = tensor_method("set_init_flag", lambda self, data=False: None)
    item = tensor_method("item", _item)
    long = tensor_method("long", _cast_to("int64"))
    ndimension = tensor_method("ndimension", ops.rank)
    nelement = tensor_method("nelement", ops.size)
    new_ones = tensor_method("new_ones", lambda self, size, dtype=None: ops.ones(size, dtype or ops.dtype(self)))
    new_zeros = tensor_method("new_zeros", lambda self, size, dtype=None: ops.zeros(size, dtype or ops.dtype(self)))
    permute = tensor_method("permute", lambda self, *axis: ops.transpose(self, unpack(axis)))
    relu = tensor_method("relu", lambda self: nhwc.elementwise(keras.ops.relu, tensor("Tensor.relu", self)))
    reshape = tensor_method("reshape", _reshape)
    reshape_as = tensor_method("reshape_as", lambda self, other: ops.reshape(self, ops.shape(other)))
    sigmoid = tensor_method("sigmoid", lambda self: unary.unary("Tensor.sigmoid", keras.ops.sigmoid, self, floats=True))
    tanh = tensor_method("tanh", lambda self: unary.unary("Tensor.tanh", keras.ops.tanh, self, floats=True))
    tile = tensor_method("tile", lambda self, *dims: ops.tile(self, unpack(dims)))
    to = tensor_method("to", _to)
    to_coo = tensor_method("to_coo", ops.dense_to_sparse_coo)
    to_csr = tensor_method("to_csr", ops.dense_to_sparse_csr)
    tolist = tensor_method("tolist", lambda self: _concrete(self, "tolist").tolist())
    type = tensor_method("type", _type)
    type_as = tensor_method("type_as", lambda self, other: ops.cast(self, other.dtype))
    value = tensor_method("value", _unchanged)
    view_as = tensor_method("view_as", lambda self, other: ops.reshape(self, ops.shape(other)))

    T = property(tensor_method("transpose", _reverse_axes))
    mT = property(tensor_method("transpose", lambda self: keras.ops.swapaxes(self, -1, -2)))
    H = property(tensor_method("transpose", lambda self: ops.conj(_reverse_axes(self))))
    size = property(ops.size)
    itemsize = property(lambda self: backend.bytes_of(self.dtype))
    nbytes = property(lambda self: backend.bytes_of(self.dtype) * ops.size(self))

    __add__, __radd__ = operators("add", lambda x, y: x + y, ops.add)
    __sub__, __rsub__ = operators("sub", lambda x, y: x - y, ops.sub)
    __mul__, __rmul__ = operators("mul", lambda x, y: x * y, with_scalars(ops.mul))
    __truediv__, __rtruediv__ = operators(
        "truediv", lambda x, y: x / y, with_scalars(ops.div), supports="floats",
        reflected_function=tensor_method("reciprocal", with_scalars(ops.div)),
    )
    __floordiv__, __rfloordiv__ = operators("floordiv", None, ops.floor_divide)
    __mod__, __rmod__ = operators("mod", None, ops.floor_mod)
    __pow__, __rpow__ = operators("pow", None, ops.pow)
    __matmul__, __rmatmul__ = operators("matmul", products.plain_matmul, matmul_operator, supports="float tensors")
    __lt__, _ = operators("lt", lambda x, y: x < y, ops.less)
    __le__, _ = operators("le", lambda x, y: x <= y, ops.less_equal)
    __gt__, _ = operators("gt", lambda x, y: x > y, ops.greater)
    __ge__, _ = operators("ge", lambda x, y: x >= y, ops.greater_equal)
    __eq__, _ = operators("eq", same_shapes(lambda x, y: x == y), ops.equal)
    __ne__, _ = operators("ne", same_shapes(lambda x, y: x != y), ops.not_equal)
    __and__, __rand__ = operators("and", None, ops.bitwise_and)
    __or__, __ror__ = operators("or", None, ops.bitwise_or)
    __xor__, __rxor__ = operators("xor", None, ops.bitwise_xor)
    __neg__ = ops.neg
    __pos__ = tensor_method("positive", _unchanged)
    __abs__ = ops.abs
    __round__ = round
    __invert__ = ops.logical_not
    __hash__ = _hash
    del _
