"""MindSpore's functions with PyTorch's arguments and meanings: `mixtrain.mint`, and `nn`, `optim` and others in it."""

from typing import Final

from mixtrain import ops
from mixtrain.lazy_names import serve_names
from mixtrain.mint import arithmetic, products, reduction, shapes
from mixtrain.mint.named import named
from mixtrain.mint.nn import functional as _functional

# Those that are the function of the same name in `mixtrain.ops`.
_SAME: Final = """
abs acos acosh addbmm addmm addmv arange arccosh arcsinh arctanh asin asinh atan atan2 atanh bitwise_and
bitwise_or bitwise_xor broadcast_to ceil cos cosh cross cumprod div divide dot dstack erf erfc erfinv
exp exp2 expm1 eye flip float_power floor floor_divide fmod full_like gcd greater greater_equal histc hstack imag
inverse isclose isfinite isinf isneginf lerp less less_equal log log10 log1p log2 logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor logsumexp masked_select matmul maximum minimum mm mul nan_to_num neg nonzero
not_equal ones_like outer polar pow ravel real reciprocal remainder reshape roll round rsqrt searchsorted sigmoid sign
sin sinc sinh square sum swapaxes t tan tanh tile tril triu trunc unbind unique_consecutive unsqueeze xlogy zeros_like
"""
_OWN: Final = named("mint", {
    **arithmetic.FUNCTIONS, **products.FUNCTIONS, **reduction.FUNCTIONS, **shapes.FUNCTIONS,
    "softmax": lambda input, dim, *, dtype=None: ops.softmax(input, dim, dtype=dtype),
})
_ALL: Final = {
    **{name: getattr(ops, name) for name in _SAME.split()}, **_OWN, "conv2d": _functional.FUNCTIONS["conv2d"],
}
globals().update(_ALL)

__all__ = sorted(_ALL)

serve_names(__name__)
