"""`TensorMethods`: MindSpore's tensor methods and operators, shared by Tensor and Parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.common import method_forms, uncompiled
from mixtrain.common.method_forms import in_own_dtype, with_aliases
from mixtrain.common.operators import matmul as matmul_operator, operators, same_shapes, with_scalars
from mixtrain.common.tensor_in_place import InPlaceMethods
from mixtrain.common.tensor_math import MathMethods
from mixtrain.common.tensor_slicing import SlicingMethods
from mixtrain.common.views import as_view
from mixtrain.dtype import DTYPES, as_dtype
from mixtrain.ops import (
    arithmetic,
    array,
    comparison,
    creation,
    extremes,
    joining,
    limits,
    ordering,
    products,
    reduction,
    repetition,
    selection,
    sparse,
    tensor_info,
    unary,
)
from mixtrain.ops.inputs import rank_of, tensor, unpack
from mixtrain.ops.operator import tensor_method
from mixtrain.typing import DTypeLike, Tensor, TensorLike

# The dtypes that Python and NumPy mean by these names in `astype`; elsewhere float is float32.
_NUMPY_NAMES = {float: "float64", "float": "float64", "int": "int64", "bool_": "bool"}
_DEVICES = ("CPU", "GPU", "Ascend")

_Method = Callable[..., Any]


def _astype(self: TensorLike, dtype: DTypeLike, copy: bool = True) -> Tensor:
    return tensor_info.cast(self, _NUMPY_NAMES.get(dtype, dtype) if isinstance(dtype, (str, type)) else dtype)


def _to(self: TensorLike, *args: Any, dtype: DTypeLike | None = None, device: str | None = None, **_: Any) -> Tensor:
    """Cast to the dtype among the arguments; a device name has no effect."""
    for value in (*args, dtype):
        if backend.is_tensor(value):
            return tensor_info.cast(self, value.dtype)
        if value is not None and not isinstance(value, bool):
            name = getattr(value, "name", value)
            if not isinstance(name, str) or name in DTYPES:
                return tensor_info.cast(self, as_dtype(value))
            checks.one_of("Tensor.to", "dtype or device", name, (*DTYPES, *_DEVICES, *map(str.lower, _DEVICES)))
    return self


def _type(self: TensorLike, dtype: DTypeLike | None = None) -> Tensor | str:
    if dtype is not None:
        return tensor_info.cast(self, dtype)
    return str(tensor_info.dtype(self))


def _concrete(self: TensorLike, method: str) -> np.ndarray:
    """Return the values as a NumPy array.

    Raises:
        TypeError: The tensor belongs to a function that is being compiled, and has no values yet.
    """
    x = tensor(f"Tensor.{method}", self)
    if not backend.is_symbolic(x):
        return backend.to_numpy(x)
    value = backend.known_value(x)
    if value is None:
        uncompiled.note(uncompiled.READS_VALUES)
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
    return array.reshape(self, unpack(shape))


def _unchanged(self: TensorLike) -> Tensor:
    return tensor("Tensor.copy", self)


def _cast_to(dtype: str) -> _Method:
    return lambda self: tensor_info.cast(self, dtype)


def _move_to(self: TensorLike, to: str, blocking: bool = True) -> Tensor:
    checks.one_of("Tensor.move_to", "to", to, _DEVICES)
    return tensor("Tensor.move_to", self)


def _reverse_axes(self: TensorLike) -> Tensor:
    x = tensor("Tensor.T", self)
    return keras.ops.transpose(x, tuple(reversed(range(rank_of(x)))))


def _hash(self: TensorLike) -> int:
    return id(self)


class TensorMethods(MathMethods, SlicingMethods, InPlaceMethods):
    """The methods that Tensors and Parameters share."""

    __slots__ = ()

    abs = unary.abs
    absolute = unary.absolute
    acos = unary.acos
    acosh = unary.acosh
    arccos = unary.arccos
    arcsin = unary.arcsin
    arctan = unary.arctan
    asin = unary.asin
    asinh = unary.asinh
    atan = unary.atan
    atanh = unary.atanh
    ceil = unary.ceil
    cos = unary.cos
    cosh = unary.cosh
    erf = unary.erf
    erfc = unary.erfc
    exp = unary.exp
    expm1 = unary.expm1
    floor = unary.floor
    isfinite = unary.isfinite
    isinf = unary.isinf
    isnan = unary.isnan
    log = unary.log
    log10 = unary.log10
    log1p = unary.log1p
    log2 = unary.log2
    logical_not = unary.logical_not
    nan_to_num = unary.nan_to_num
    neg = unary.neg
    negative = unary.negative
    reciprocal = unary.reciprocal
    rsqrt = unary.rsqrt
    sign = unary.sign
    sin = unary.sin
    sinc = unary.sinc
    sinh = unary.sinh
    sqrt = unary.sqrt
    square = unary.square
    tan = unary.tan
    trunc = unary.trunc
    addcdiv = arithmetic.addcdiv
    addcmul = arithmetic.addcmul
    atan2 = arithmetic.atan2
    div = arithmetic.div
    divide = arithmetic.divide
    floor_divide = arithmetic.floor_divide
    fmod = arithmetic.fmod
    hypot = arithmetic.hypot
    lerp = arithmetic.lerp
    logaddexp = arithmetic.logaddexp
    maximum = arithmetic.maximum
    minimum = arithmetic.minimum
    mul = arithmetic.mul
    multiply = arithmetic.multiply
    pow = arithmetic.pow
    remainder = with_aliases(arithmetic.remainder, divisor="other")
    subtract = arithmetic.subtract
    true_divide = arithmetic.true_divide
    clamp = limits.clamp
    bitwise_and = comparison.bitwise_and
    bitwise_or = comparison.bitwise_or
    eq = comparison.eq
    equal = comparison.equal
    ge = comparison.ge
    greater = comparison.greater
    greater_equal = comparison.greater_equal
    gt = comparison.gt
    isclose = comparison.isclose
    le = comparison.le
    less = comparison.less
    less_equal = comparison.less_equal
    logical_and = comparison.logical_and
    logical_or = comparison.logical_or
    logical_xor = comparison.logical_xor
    lt = comparison.lt
    ne = comparison.ne
    not_equal = comparison.not_equal
    count_nonzero = reduction.count_nonzero
    logsumexp = reduction.logsumexp
    norm = reduction.norm
    amax = extremes.amax
    amin = extremes.amin
    argmin = with_aliases(extremes.argmin, dim="axis", keepdim="keepdims")
    cumprod = extremes.cumprod
    median = with_aliases(extremes.median, dim="axis", keepdim="keepdims")
    addmm = products.addmm
    baddbmm = products.baddbmm
    bmm = products.bmm
    dot = products.dot
    matmul = products.matmul
    mm = products.mm
    mv = products.mv
    outer = products.outer
    expand_dims = as_view(array.expand_dims)
    flip = array.flip
    moveaxis = as_view(array.moveaxis)
    movedim = as_view(array.movedim)
    ravel = as_view(array.ravel)
    roll = array.roll
    swapaxes = as_view(array.swapaxes)
    swapdims = as_view(array.swapdims)
    t = as_view(array.t)
    unsqueeze = as_view(array.unsqueeze)
    repeat_interleave = repetition.repeat_interleave
    chunk = as_view(with_aliases(joining.chunk, dim="axis"))
    unbind = as_view(joining.unbind)
    argsort = ordering.argsort
    topk = ordering.topk
    tril = ordering.tril
    triu = ordering.triu
    unique = ordering.unique
    gather_elements = selection.gather_elements
    gather_nd = selection.gather_nd
    index_select = selection.index_select
    masked_fill = selection.masked_fill
    masked_select = selection.masked_select
    nonzero = selection.nonzero
    numel = tensor_info.numel
    add = tensor_method("add", method_forms.add)
    all = tensor_method("all", method_forms.all)
    any = tensor_method("any", method_forms.any)
    argmax = tensor_method("argmax", method_forms.argmax)
    clip = tensor_method("clip", method_forms.clip)
    diag = tensor_method("diag", method_forms.diag)
    cumsum = tensor_method("cumsum", method_forms.cumsum)
    flatten = as_view(tensor_method("flatten", method_forms.flatten))
    gather = tensor_method("gather", method_forms.gather)
    max = tensor_method("max", method_forms.max)
    mean = tensor_method("mean", method_forms.mean)
    min = tensor_method("min", method_forms.min)
    prod = tensor_method("prod", method_forms.prod)
    repeat = tensor_method("repeat", method_forms.repeat)
    resize = tensor_method("resize", method_forms.resize)
    round = tensor_method("round", method_forms.round)
    select = as_view(tensor_method("select", method_forms.select))
    softmax = tensor_method("softmax", method_forms.softmax)
    sort = tensor_method("sort", method_forms.sort)
    split = as_view(tensor_method("split", method_forms.split))
    squeeze = as_view(tensor_method("squeeze", method_forms.squeeze))
    std = tensor_method("std", method_forms.std)
    sub = tensor_method("sub", method_forms.sub)
    sum = tensor_method("sum", method_forms.sum)
    take = tensor_method("take", method_forms.take)
    transpose = as_view(tensor_method("transpose", method_forms.transpose))
    var = tensor_method("var", method_forms.var)
    where = tensor_method("where", method_forms.where)
    asnumpy = tensor_method("asnumpy", lambda self: _concrete(self, "asnumpy"))
    astype = tensor_method("astype", _astype)
    bfloat16 = tensor_method("bfloat16", _cast_to("bfloat16"))
    bool = tensor_method("bool", _cast_to("bool"))
    broadcast_to = as_view(
        tensor_method("broadcast_to", lambda self, *shape: repetition.broadcast_to(self, unpack(shape)))
    )
    clone = tensor_method("clone", _unchanged)
    contiguous = tensor_method("contiguous", _unchanged)
    copy = tensor_method("copy", _unchanged)
    dim = tensor_method("dim", tensor_info.rank)
    double = tensor_method("double", _cast_to("float64"))
    expand = as_view(tensor_method("expand", lambda self, *size: repetition.broadcast_to(self, unpack(size))))
    expand_as = as_view(tensor_method("expand_as", with_aliases(
        lambda self, other: repetition.broadcast_to(self, tensor_info.shape(other)), x="other"
    )))
    fill = tensor_method("fill", lambda self, value: creation.full_like(self, value))
    float = tensor_method("float", _cast_to("float32"))
    half = tensor_method("half", _cast_to("float16"))
    init_data = tensor_method("init_data", lambda self, *_, **__: _unchanged(self))
    int = tensor_method("int", _cast_to("int32"))
    hooks = tensor_method("hooks", lambda self: [])
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
    ndimension = tensor_method("ndimension", tensor_info.rank)
    nelement = tensor_method("nelement", tensor_info.size)
    new_ones = tensor_method(
        "new_ones", lambda self, size, dtype=None: creation.ones(size, dtype or tensor_info.dtype(self))
    )
    new_zeros = tensor_method(
        "new_zeros", lambda self, size, dtype=None: creation.zeros(size, dtype or tensor_info.dtype(self))
    )
    permute = as_view(tensor_method("permute", lambda self, *axis: array.transpose(self, unpack(axis))))
    relu = tensor_method("relu", lambda self: backend.elementwise(keras.ops.relu, tensor("Tensor.relu", self)))
    reshape = as_view(tensor_method("reshape", _reshape))
    reshape_as = as_view(tensor_method("reshape_as", lambda self, other: array.reshape(self, tensor_info.shape(other))))
    sigmoid = tensor_method("sigmoid", lambda self: unary.unary("Tensor.sigmoid", keras.ops.sigmoid, self, floats=True))
    tanh = tensor_method("tanh", lambda self: unary.unary("Tensor.tanh", keras.ops.tanh, self, floats=True))
    tile = tensor_method("tile", lambda self, *dims: repetition.tile(self, unpack(dims)))
    to = tensor_method("to", _to)
    to_coo = tensor_method("to_coo", sparse.dense_to_sparse_coo)
    to_csr = tensor_method("to_csr", sparse.dense_to_sparse_csr)
    tolist = tensor_method("tolist", lambda self: _concrete(self, "tolist").tolist())
    type = tensor_method("type", _type)
    type_as = tensor_method("type_as", lambda self, other: tensor_info.cast(self, other.dtype))
    value = tensor_method("value", _unchanged)
    view = as_view(tensor_method("view", method_forms.view))
    view_as = as_view(tensor_method("view_as", lambda self, other: array.reshape(self, tensor_info.shape(other))))

    T = property(as_view(tensor_method("transpose", _reverse_axes)))
    mT = property(as_view(tensor_method("transpose", lambda self: keras.ops.swapaxes(self, -1, -2))))
    H = T
    size = property(tensor_info.size)
    itemsize = property(lambda self: backend.bytes_of(self.dtype))
    nbytes = property(lambda self: backend.bytes_of(self.dtype) * tensor_info.size(self))

    __add__, __radd__ = operators("add", lambda x, y: x + y, arithmetic.add)
    __sub__, __rsub__ = operators("sub", lambda x, y: x - y, arithmetic.sub)
    __mul__, __rmul__ = operators("mul", lambda x, y: x * y, with_scalars(arithmetic.mul))
    __truediv__, __rtruediv__ = operators(
        "truediv", lambda x, y: x / y, with_scalars(arithmetic.div), supports="floats",
        reflected_function=tensor_method("reciprocal", with_scalars(arithmetic.div)),
    )
    __floordiv__, __rfloordiv__ = operators("floordiv", None, arithmetic.floor_divide)
    __mod__, __rmod__ = operators("mod", None, arithmetic.floor_mod)
    __pow__, __rpow__ = operators("pow", None, arithmetic.pow)
    __matmul__, __rmatmul__ = operators("matmul", products.plain_matmul, matmul_operator, supports="float tensors")
    __lt__, _ = operators("lt", lambda x, y: x < y, comparison.less)
    __le__, _ = operators("le", lambda x, y: x <= y, comparison.less_equal)
    __gt__, _ = operators("gt", lambda x, y: x > y, comparison.greater)
    __ge__, _ = operators("ge", lambda x, y: x >= y, comparison.greater_equal)
    __eq__, _ = operators("eq", same_shapes(lambda x, y: x == y), comparison.equal)
    __ne__, _ = operators("ne", same_shapes(lambda x, y: x != y), comparison.not_equal)
    __and__, __rand__ = operators("and", None, comparison.bitwise_and)
    __or__, __ror__ = operators("or", None, comparison.bitwise_or)
    __xor__, __rxor__ = operators("xor", None, comparison.bitwise_xor)
    __neg__ = unary.neg
    __pos__ = tensor_method("positive", _unchanged)
    __abs__ = unary.abs
    __round__ = round
    __invert__ = unary.logical_not
    __hash__ = _hash
    del _
