"""Calls of the methods and properties of MindSpore 2.10's Tensor, by name; tensor_inputs.py says what the names mean.

The calls of tests/ops/cases.py are not repeated. On the CPU add_, mul_ and their
kind return what they should and leave their tensor as it was, against their documentation: their results alone are
recorded. copy_, set_dtype and assign_value do write, which is recorded. The sum of an empty tensor is uninitialized.
"""

from __future__ import annotations

from typing import Final

# Every public name of MindSpore 2.10's Tensor.
PUBLIC_NAMES: Final = """
H T abs absolute acos acosh add add_ addbmm addcdiv addcmul addmm addmm_ addmv addr adjoint all allclose amax amin
aminmax angle any approximate_equal arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmax_with_value
argmin argmin_with_value argsort argwhere asin asinh asnumpy assign_value assign_value_cpp astype atan atan2 atanh
baddbmm bernoulli bernoulli_ bfloat16 bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor bmm bool broadcast_to byte cauchy ceil cholesky cholesky_inverse cholesky_solve choose
chunk clamp clamp_ clip clone col2im conj const_arg contiguous convert_bytes_to_tensor copy copy_ copysign cos cosh
count_nonzero cov cross cummax cummin cumprod cumsum data data_ptr data_sync deg2rad delete_ delta_seed det device
diag diagflat diagonal diagonal_scatter diff digamma dim div div_ divide dot double dsplit dtype eigvals eq equal erf
erfc erfinv erfinv_ exp exp_ expand expand_as expand_dims expm1 exponential_ fill fill_ fill_diagonal fill_diagonal_
fills flatten flip fliplr flipud float float_power floor floor_ floor_divide floor_divide_ flush_from_cache fmax fmin
fmod fold frac from_dlpack from_numpy gather gather_elements gather_nd gcd ge geqrf ger get_bytes getitem_index_info
greater greater_equal gt half hardshrink has_init heaviside histc hooks hsplit hypot i0 igamma igammac imag index
index_add index_add_ index_copy_ index_fill index_fill_ index_of_parent_ index_put index_put_ index_select init
init_data init_finished init_flag inner inplace_update int inv inverse invert is_complex is_contiguous
is_floating_point is_init is_meta is_pinned is_shared is_signed isclose isfinite isinf isnan isneginf isposinf isreal
item itemset itemsize kthvalue lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 log_
log_matrix_determinant log_normal logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or
logical_xor logit logsumexp long lstsq lt lu_solve mH mT masked_fill masked_fill_ masked_scatter masked_scatter_
masked_select matmul matrix_determinant matrix_power max maximum mean median min minimum mm move_to moveaxis movedim
msort mul mul_ multinomial multiply mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow nbytes ndim
ndimension ne neg negative nelement new_empty new_full new_ones new_zeros nextafter nonzero norm normal_ not_equal
numel numpy offload offload_file_path orgqr ormqr outer param_info parent_tensor_ permute pin_memory positive pow prod
ptp put_ qr quantile rad2deg random_ random_categorical ravel real reciprocal register_hook remainder remainder_
remove_hook renorm repeat repeat_interleave requires_grad_ reshape reshape_as resize reverse reverse_sequence roll
rot90 round rsqrt scatter scatter_ scatter_add scatter_add_ scatter_div scatter_max scatter_min scatter_mul
scatter_sub searchsorted select select_scatter set_ set_cast_dtype set_const_arg set_device_address set_dtype
set_init_flag set_param_info setitem_index_info sgn shape short sigmoid sigmoid_ sign sign_ signbit sin sinc sinh size
slice_scatter slogdet soft_shrink softmax sort split sqrt square squeeze std storage storage_offset stride strides sub
sub_ subtract sum sum_to_size svd swapaxes swapdims symbolic_shape t take tan tanh tanh_ tensor_split tile to to_
to_coo to_csr to_dlpack tolist top_k topk trace transpose triangular_solve tril triu true_divide trunc type type_as
unbind unfold uniform uniform_ unique unique_consecutive unique_with_pad unsorted_segment_max unsorted_segment_min
unsorted_segment_prod unsqueeze untyped_storage value var view view_as virtual_flag vsplit wait_pipeline where xdivy
xlogy zero_
""".split()

# Those that are MindSpore's own machinery: memory, graphs, devices and storage formats that scripts do not name.
MACHINERY: Final = """
assign_value_cpp const_arg convert_bytes_to_tensor data_ptr data_sync delete_ delta_seed device flush_from_cache
from_dlpack get_bytes getitem_index_info index_of_parent_ init_finished init_flag is_meta is_pinned is_shared move_to
offload offload_file_path param_info parent_tensor_ pin_memory remove_hook set_cast_dtype set_const_arg
set_device_address set_init_flag set_param_info setitem_index_info storage symbolic_shape to_coo to_csr to_dlpack
untyped_storage virtual_flag wait_pipeline
""".split()

# Those that mixtrain does not have, with the reason; keras.ops has nothing that computes them.
NOT_HAD: Final[dict[str, str]] = {
    **dict.fromkeys(("ormqr", "triangular_solve"), "factors in LAPACK's own storage"),
    "col2im": "sums of overlapping windows",
    "kthvalue": "order statistics with their places",
    "eigvals": "complex results", "to_": "a change of dtype in place, which set_dtype is",
    "index": "does not work in MindSpore 2.10 either", "inplace_update": "index_put_ does it",
}

CALLS: Final[dict[str, list[str]]] = {
    **{name: [f"unit.{name}()"] for name in (
        "absolute", "acos", "arccos", "arcsin", "arctan", "arctanh", "asin", "asinh", "arcsinh", "atan", "atanh",
        "cos", "cosh", "sinh", "tan", "expm1", "erfc", "erfinv", "deg2rad", "rad2deg", "negative", "positive",
        "trunc", "frac", "sgn", "signbit", "sinc", "square", "angle", "digamma", "i0", "fliplr", "flipud", "adjoint",
        "t", "logical_not",
    )},
    **{name: [f"pos.{name}()"] for name in ("log10", "log1p", "lgamma", "logit")},
    **{name: [f"(pos + 1).{name}()"] for name in ("acosh", "arccosh")},
    **{name: [f"odd.{name}()"] for name in (
        "isfinite", "isneginf", "isposinf", "isreal", "nan_to_num", "nanmean", "nansum", "nanmedian",
    )},
    **{name: [f"c.{name}(d)", f"c.{name}(half)", f"n.{name}(bits)", f"c.{name}(2)"] for name in (
        "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "fmod", "maximum", "minimum",
    )},
    **{name: [f"c.{name}(d)", f"n.{name}(c)", f"c.{name}(0.5)"] for name in (
        "ge", "gt", "greater_equal", "le", "less_equal", "lt", "ne",
    )},
    **{name: [f"c.{name}(d)"] for name in (
        "atan2", "arctan2", "copysign", "fmax", "fmin", "heaviside", "hypot", "logaddexp", "logaddexp2", "nextafter",
        "approximate_equal",
    )},
    **{name: [f"pos.{name}(pos)", f"pos.{name}(2.0)"] for name in ("float_power", "xdivy", "xlogy")},
    **{name: [f"n.{name}(bits)", f"n.{name}(2)"] for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
    )},
    **{name: [f"n.{name}(bits)"] for name in ("gcd", "lcm")},
    **{name: [f"mask23.{name}(~mask23)", f"mask23.{name}(c > 0)"] for name in (
        "logical_and", "logical_or", "logical_xor",
    )},
    **{name: [f"bits.{name}()"] for name in ("bitwise_not", "invert")},
    **{name: [f"c.{name}(d)", f"c.{name}(2)"] for name in (
        "add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_",
    )},
    **{name: [f"pos.{name}()"] for name in (
        "exp_", "log_", "floor_", "sigmoid_", "sign_", "tanh_", "erfinv_", "zero_",
    )},
    "H": ["c.H"], "mH": ["x.mH"], "mT": ["x.mT", "c.mT"], "T": ["x.T", "v.T", "s.T", "n.T"],
    "abs": ["n.abs()", "half.abs()"], "add": ["c.add(d, alpha=2)", "c.add(t3)", "n.add(True)"],
    "addbmm": ["c.addbmm(x[:, :2, :3], x[:, :3, :3])"], "addcdiv": ["c.addcdiv(d, pos, value=2)"],
    "addcmul": ["c.addcmul(d, pos, value=2)"], "addmm": ["c.addmm(d, q)", "c.addmm(d, q, beta=0.5, alpha=2)"],
    "addmm_": ["(c.addmm_(d, q), c)"], "addmv": ["t3.addmv(q, t3)"], "addr": ["q.addr(t3, t3)"],
    "all": ["mask23.all()", "mask23.all(1, True)", "n.all()"], "any": ["mask23.any(1)", "n.any()"],
    "allclose": ["c.allclose(c)", "c.allclose(d)"],
    "amax": ["c.amax()", "c.amax(1)", "c.amax(axis=(0, 1), keepdims=True)"],
    "amin": ["c.amin()", "c.amin(1)", "c.amin(0, keepdims=True)"], "aminmax": ["c.aminmax()", "c.aminmax(axis=1)"],
    "argmax": ["n.argmax()", "c.argmax(-1)", "c.argmax(0, True)"],
    "argmin": ["c.argmin()", "c.argmin(axis=0, keepdims=True)"],
    "argmax_with_value": ["c.argmax_with_value(1)", "c.argmax_with_value(0, True)"],
    "argmin_with_value": ["c.argmin_with_value(1)"],
    "argsort": ["c.argsort(0)", "c.argsort(1, True)", "c.argsort(axis=-1, descending=True)"],
    "argwhere": ["n.argwhere()"],
    "asnumpy": [
        "c.asnumpy()", "n.asnumpy()", "s.asnumpy()", "half.asnumpy()", "mask23.asnumpy()",
        "type(c.asnumpy()) is np.ndarray",
    ],
    "assign_value": [
        "(c.assign_value(d), c)", "ms.Parameter(c).assign_value(d)", "(c.assign_value(d), c)[0] is c",
        "c.assign_value(n)", "c.assign_value(t3)",
    ],
    "astype": [
        *(f"c.astype(ms.{name})" for name in (
            "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "bool_",
        )),
        "n.astype(ms.uint8)", "n.astype('float32')", "n.astype(np.float32)", "n.astype(float)", "c.astype(int)",
        "c.astype(bool)", "c.astype('int')", "n.astype('float')", "c.astype(np.int64)", "c.astype('no dtype')",
        "c.astype(None)", "c.astype(dtype=ms.int32)", "c.astype(ms.int32, False)",
        "c.astype('bool_')",
    ],
    "baddbmm": ["x[:, :2, :3].baddbmm(x[:, :2, :3], x[:, :3, :3])"],
    "bernoulli": ["kind(unit.abs().bernoulli())"], "bernoulli_": ["kind(c.bernoulli_(0.5))"],
    "bfloat16": ["c.bfloat16()"],
    "bincount": ["ids.bincount()", "ids.bincount(minlength=4)", "ids.bincount(weights=t3)"],
    "bmm": ["x.bmm(x.swapaxes(1, 2))"],
    "bool": ["c.bool()", "n.bool()"], "byte": ["n.byte()"],
    "broadcast_to": ["t3.broadcast_to((2, 3))", "s.broadcast_to((2, 2))", "c.broadcast_to((3, 2))"],
    "ceil": ["half.ceil()"], "chunk": ["x.chunk(2, 1)", "v.chunk(4)"],
    "cauchy": ["kind(c.cauchy())"], "cholesky": ["q.cholesky()", "q.cholesky(True)"],
    "cholesky_inverse": ["q.cholesky_inverse()"],
    "cholesky_solve": ["t3.reshape(3, 1).cholesky_solve(q)"], "choose": ["ids.choose([t3, t3 * 2])"],
    "clamp": ["c.clamp(-1, 1)", "c.clamp(max=0.5)", "n.clamp(1, 3)", "c.clamp(d)"], "clamp_": ["(c.clamp_(-1, 1), c)"],
    "clip": ["c.clip(-1, 1)", "c.clip(None, 0.5)", "n.clip(0.5, 2.5)"], "clone": ["c.clone()"],
    "col2im": ["T(np.ones((1, 4, 4, 1)), ms.float32).col2im(T([4, 4], ms.int32), [2, 2], [1, 1], [0, 0], [2, 2])"],
    "conj": ["c.conj()"], "contiguous": ["c.T.contiguous()"],
    "copy": ["c.copy()", "c.copy() is c", "half.copy()", "mask2.copy()", "ms.Parameter(c).copy()"],
    "copy_": ["(c.copy_(d), c)", "(c.copy_(t3), c)", "(c.copy_(n), c)"],
    "count_nonzero": ["n.count_nonzero()", "n.count_nonzero(1)", "mask23.count_nonzero()"],
    "cov": ["c.cov()", "c.cov(correction=0)"], "cross": ["c.cross(d)", "t3.cross(t3)"], "cummax": ["c.cummax(1)"],
    "cummin": ["c.cummin(1)"], "cumprod": ["c.cumprod(1)", "c.cumprod(0)"],
    "cumsum": ["n.cumsum(1)", "mask23.cumsum(0)", "half.cumsum(1)", "c.cumsum(1, ms.float16)", "v.cumsum(-1)"],
    "data": ["c.data"], "det": ["q.det()"], "diag": ["t3.diag()", "q.diag()", "q.diag(1)"],
    "diagflat": ["t3.diagflat()", "c.diagflat(1)"],
    "diagonal": ["q.diagonal()", "c.diagonal(1)", "x.diagonal(0, 1, 2)"],
    "diagonal_scatter": ["q.diagonal_scatter(t3)"],
    "diff": ["v.diff()", "c.diff(axis=0)", "n.diff(2)"], "dim": ["x.dim()", "s.dim()"],
    "ndimension": ["x.ndimension()", "s.ndimension()"], "ndim": ["x.ndim", "s.ndim", "z.ndim"],
    "div": [
        "c.div(d, rounding_mode='floor')", "c.div(2, rounding_mode='trunc')", "n.div(bits)",
        "n.div(2, rounding_mode='floor')",
    ],
    "dot": ["t3.dot(t3)", "c.dot(c.T)"], "double": ["c.double()"],
    "dsplit": ["x.dsplit(2)"], "hsplit": ["x.hsplit(3)"], "vsplit": ["x.vsplit(2)"],
    "tensor_split": ["x.tensor_split(2, 1)", "v.tensor_split((1, 3))"],
    "dtype": [
        "c.dtype", "n.dtype", "mask2.dtype", "half.dtype",
        *(f"a_{name}.dtype" for name in ("bfloat16", "float64", "int64", "uint8")),
        "c.dtype == ms.float32", "c.dtype is ms.float32", "c.dtype == ms.float16",
        "c.dtype in (ms.float16, ms.float32)", "{ms.float32: 1}[c.dtype]", "ms.Parameter(c).dtype",
        "c.dtype != n.dtype", "ms.dtype_to_nptype(c.dtype) is np.float32",
    ],
    "eigvals": ["kind(q.eigvals())"], "eq": ["c.eq(d)", "n.eq(2)", "c.eq(c)"],
    "equal": ["c.equal(c)", "c.equal(d)", "n.equal(n)"],
    "exp": ["half.exp()", "n.exp()"], "exponential_": ["kind(c.exponential_())"],
    "expand": ["t3.expand(2, 3)", "t3.expand((2, 3))", "t3.expand(2, -1)"], "expand_as": ["t3.expand_as(c)"],
    "expand_dims": ["c.expand_dims(-1)", "s.expand_dims(0)", "c.expand_dims(5)", "c.expand_dims(axis=1)"],
    "fill": ["n.fill(2)", "c.fill(1)", "(c.fill(1.5), c)"], "fill_": ["(c.fill_(2), c)", "(n.fill_(2), n)"],
    "fills": ["c.fills(2.5)"], "fill_diagonal": ["q.fill_diagonal(9.0)"],
    "fill_diagonal_": ["(q.fill_diagonal_(9.0), q)"],
    "flatten": ["x.flatten()", "s.flatten()", "x.flatten(start_dim=1, end_dim=2)", "x.flatten('F')", "z.flatten()"],
    "flip": ["c.flip((0,))", "c.flip((0, 1))", "x.flip(1)", "x.flip(0, 1)"],
    "float": ["n.float()", "half.float()", "mask2.float()",], "floor": ["half.floor()", "n.floor()"],
    "fold": ["T(np.ones((1, 4, 4)), ms.float32).fold((4, 4), (2, 2), stride=2)"],
    "from_numpy": [
        "T.from_numpy(np.array([1, 2]))", "T.from_numpy(np.array([1.0, 2.0]))", "T.from_numpy(np.float32([[1.5]]))",
        "T.from_numpy(np.array([True]))", "T.from_numpy([1, 2])",
    ],
    "gather": [
        "c.gather(ids, 0)", "c.gather(ids, 1)", "c.gather(1, T([[0], [2]]))", "c.gather(dim=0, index=T([[0, 1, 0]]))",
    ],
    "gather_elements": ["c.gather_elements(1, T([[0], [2]]))"], "gather_nd": ["c.gather_nd(T([[0, 1], [1, 2]]))"],
    "geqrf": ["q.geqrf()[0].shape"], "ger": ["t3.ger(t3)"], "outer": ["t3.outer(v)"],
    "half": ["c.half()", "n.half()"], "hardshrink": ["c.hardshrink()", "c.hardshrink(1.0)"],
    "histc": ["v.histc(4)", "v.histc(4, -4, 4)"], "igamma": ["pos.igamma(pos)"], "igammac": ["pos.igammac(pos)"],
    "imag": ["c.imag()"], "real": ["c.real()"], "is_complex": ["c.is_complex()"],
    "index": ["c.index(0)"], "index_add": ["q.index_add(0, ids[:2], c)", "q.index_add(1, ids[:2], c.T, alpha=2)"],
    "index_add_": ["(q.index_add_(0, ids[:2], c), q)"], "index_copy_": ["(q.index_copy_(0, ids[:2], c), q)"],
    "index_fill": ["c.index_fill(1, ids[:2], 9.0)"], "index_fill_": ["(c.index_fill_(1, ids[:2], 9.0), c)"],
    "index_put": ["q.index_put((ids[:2], ids[:2]), t3[:2])", "q.index_put((ids[:2],), t3[0], accumulate=True)"],
    "index_put_": ["(q.index_put_((ids[:2],), t3), q)"],
    "index_select": ["c.index_select(0, ids)", "c.index_select(axis=1, index=ids)"], "init": ["c.init"],
    "has_init": ["c.has_init"],
    "init_data": ["c.init_data()", "T(shape=(2,), dtype=ms.float32, init=ms.common.initializer.One()).init_data()"],
    "is_init": ["callable(c.is_init)"], "inner": ["c.inner(d)", "t3.inner(t3)"],
    "inplace_update": ["c.inplace_update(t3.expand_dims(0), [0])"], "int": ["c.int()", "mask2.int()"],
    "inv": ["pos.inv()"], "inverse": ["q.inverse()"],
    "is_contiguous": ["c.is_contiguous()", "c.T.is_contiguous()", "x[:, 0].is_contiguous()"],
    "is_floating_point": ["c.is_floating_point()", "n.is_floating_point()", "half.is_floating_point()"],
    "is_signed": ["c.is_signed()", "mask2.is_signed()", "n.byte().is_signed()"],
    "isclose": ["c.isclose(d)", "n.isclose(n)", "odd.isclose(odd, equal_nan=True)", "c.isclose(c + 1e-3, rtol=1e-2)"],
    "isinf": ["n.isinf()"], "isnan": ["n.isnan()"],
    "item": [
        "s.item()", "T(3).item()", "T([True]).item()", "c.item(1)", "c.item((1, 2))", "c.item(1, 2)", "c.item()",
        "T([[2.5]]).item()", "half[0, 0].item()", "T([1.5], ms.bfloat16).item()", "type(T(3, ms.int8).item()) is int",
        "c[0, 1].item()", "z.item()",
    ],
    "itemset": ["(c.itemset(0, 9), c)", "(c.itemset((1, 2), 9), c)", "s.itemset(9)"],
    "itemsize": [
        f"a_{name}.itemsize" for name in ("bool", "uint8", "int16", "int32", "float16", "bfloat16", "float32")
    ],
    "kthvalue": ["c.kthvalue(2)", "c.kthvalue(1, 0)"], "ldexp": ["c.ldexp(n)"],
    "lerp": ["c.lerp(d, 0.5)", "c.lerp(d, unit)"], "log": ["n[:1].log()", "half.abs().log()"],
    "log_matrix_determinant": ["q.log_matrix_determinant()"],
    "matrix_determinant": ["q.matrix_determinant()"], "slogdet": ["q.slogdet()"], "logdet": ["q.logdet()"],
    "log_normal": ["kind(c.log_normal())"], "logcumsumexp": ["c.logcumsumexp(1)"],
    "logsumexp": ["c.logsumexp(0, True)", "c.logsumexp((0, 1))"],
    "long": ["c.long()"], "short": ["c.short()"], "lstsq": ["q.lstsq(t3.reshape(3, 1))"],
    "lu_solve": ["kind(t3.reshape(3, 1).lu_solve(q, T([1, 2, 3], ms.int32)))"],
    "masked_fill": [
        "c.masked_fill(mask23, 0)", "n.masked_fill(mask23, 7)", "c.masked_fill(mask23, s)",
        "c.masked_fill(T([True, False, True]), 5.0)", "half.masked_fill(mask23, -math.inf)",
    ],
    "masked_fill_": ["(c.masked_fill_(mask23, 5.0), c)"],
    "masked_scatter": ["c.masked_scatter(mask23, v)"], "masked_scatter_": ["(c.masked_scatter_(mask23, v), c)"],
    "masked_select": ["c.masked_select(mask23)", "n.masked_select(n > 1)", "c.masked_select(T([True, False, True]))"],
    "matmul": ["c.matmul(q)", "x.matmul(x.mT)", "t3.matmul(q)"], "mm": ["c.mm(q)"],
    "matrix_power": ["q.matrix_power(2)"],
    "max": [
        "n.max()", "x.max(axis=2)", "x.max((0, 1))", "c.max(1, True)", "half.max()", "c.max(d)", "c.max(-1)",
        "mask2.max()", "c.max(axis=None, keepdims=True)", "c.max(initial=9.0)", "z.max()",
    ],
    "min": ["n.min()", "x.min(axis=2)", "c.min(d)", "c.min(dim=1, keepdim=True)", "c.min(axis=0, keepdims=True)"],
    "mean": [
        "n.mean()", "half.mean()", "x.mean((0, 2))", "x.mean(-1)", "x.mean(axis=(1, 2), keep_dims=True)",
        "c.mean(dtype=ms.float16)", "mask23.mean()", "z.mean(1)", "n.float().mean(0)", "c.mean(5)",
    ],
    "median": ["c.median()", "c.median(1)", "n.median()"],
    "moveaxis": ["x.moveaxis(0, 2)", "x.moveaxis((0, 1), (2, 0))"], "movedim": ["x.movedim(0, -1)"],
    "msort": ["c.msort()"],
    "mul": ["c.mul(t3)", "n.mul(1.5)", "c.mul('a')"], "multinomial": ["kind(pos.multinomial(2))"],
    "mvlgamma": ["(pos + 2).mvlgamma(2)"], "nanquantile": ["odd.nanquantile(0.5)"],
    "quantile": ["c.quantile(0.5)", "c.quantile(0.25, 1)"],
    "narrow": ["x.narrow(2, 1, 2)", "c.narrow(0, 1, 1)"],
    "nbytes": ["c.nbytes", "half.nbytes", "z.nbytes", "mask2.nbytes", "s.nbytes"],
    "nelement": ["x.nelement()", "s.nelement()"], "numel": ["x.numel()", "s.numel()", "z.numel()"],
    "new_empty": ["kind(c.new_empty((2, 2)))", "kind(c.new_empty(2, dtype=ms.int32))"],
    "new_full": ["c.new_full((2,), 3)", "n.new_full((2,), 1.5)"],
    "new_ones": ["n.new_ones((2, 2))", "c.new_ones(3)", "c.new_ones((2,), dtype=ms.int32)"],
    "new_zeros": ["half.new_zeros((2,))", "c.new_zeros(2, dtype=ms.int32)"],
    "nonzero": ["mask23.nonzero()", "c.nonzero()", "never.nonzero()", "n.nonzero(as_tuple=True)", "v.nonzero()"],
    "norm": [
        "c.norm(1, 1)", "c.norm(ord=2, dim=1, keepdim=True)", "t3.norm(math.inf)", "t3.norm(-math.inf)", "t3.norm(0)",
    ],
    "normal_": ["kind(c.normal_())"],
    "numpy": ["c.numpy()"],
    "permute": ["x.permute(2, 0, 1)", "x.permute((2, 0, 1))", "x.permute(-1, 0, 1)", "x.permute(0, 1)"],
    "pow": ["c.pow(3)", "pos.pow(0.5)", "n.pow(2)", "pos.pow(pos)", "n.pow(0.5)"],
    "prod": ["c.prod(0, True)", "n.prod(1)", "mask2.prod()", "c.prod(dtype=ms.float16)"],
    "orgqr": ["kind(q.orgqr(t3))"], "ormqr": ["kind(q.ormqr(t3, q))"], "ptp": ["c.ptp()", "c.ptp(1)"],
    "put_": ["(c.put_(T([0, 4]), T([8.0, 9.0])), c)"], "qr": ["kind(q.qr()[0])"],
    "random_": ["kind(c.random_(0, 5))"],
    "random_categorical": ["kind(c.random_categorical(4))"], "ravel": ["x.ravel()", "s.ravel()"],
    "reciprocal": ["n[:1].reciprocal()"], "renorm": ["c.renorm(2, 0, 1.0)"],
    "repeat": [
        "t3.repeat(2)", "c.repeat(2)", "c.repeat(2, 3)", "c.repeat((2, 1))", "c.repeat(2, axis=1)",
        "t3.repeat(2, axis=0)", "c.repeat([1, 2], axis=0)",
    ],
    "repeat_interleave": [
        "c.repeat_interleave(2)", "c.repeat_interleave(2, 0)", "t3.repeat_interleave(T([1, 0, 2]))",
    ],
    "requires_grad_": ["c.requires_grad_()"],
    "reshape": [
        "x.reshape(-1)", "x.reshape(4, -1)", "x.reshape((4, 6))", "x.reshape([24])", "x.reshape(5, 5)",
        "x.reshape(-1, -1)", "s.reshape(1, 1)", "z.reshape(3, 0)", "T([1]).reshape(())", "x.reshape(x.shape[0], -1)",
        "x.reshape(2.0, 12)",
    ],
    "reshape_as": ["v.reshape_as(c)"],
    "resize": ["c.resize((3, 2))", "c.resize((1, 4))"], "reverse": ["c.reverse([1])"],
    "reverse_sequence": ["c.reverse_sequence(T([1, 2]), 1)"],
    "roll": ["c.roll(1)", "c.roll(1, 1)", "c.roll((1, 1), (0, 1))"], "rot90": ["c.rot90(1, (0, 1))"],
    "round": ["half.round()", "T([0.5, 1.5, 2.5, -0.5]).round()", "T([1.25, 1.35]).round(decimals=1)"],
    "scatter": ["c.scatter(1, T([[0], [2]]), T([[8.0], [9.0]]))", "c.scatter(1, T([[0], [2]]), 9.0)"],
    "scatter_": ["(c.scatter_(1, T([[0], [2]]), T([[8.0], [9.0]])), c)"],
    "scatter_add": ["c.scatter_add(1, T([[0, 0], [2, 1]]), d[:, :2])", "c.scatter_add(T([[0, 0], [1, 1]]), t3[:2])"],
    "scatter_add_": ["(c.scatter_add_(1, T([[0], [2]]), d[:, :1]), c)"],
    **{f"scatter_{name}": [f"c.scatter_{name}(T([[0, 0], [1, 1]]), t3[1:])"] for name in (
        "div", "max", "min", "mul", "sub",
    )},
    "searchsorted": ["t3.searchsorted(T([0.5, 2.0, 2.5]))", "t3.searchsorted(T([2.0]), side='right')"],
    "select": ["x.select(1, 2)", "c.select(mask23, 0.0)", "c.select(mask23, d)", "c.select(0, -1)"],
    "select_scatter": ["c.select_scatter(t3, 0, 1)"],
    "set_dtype": ["c.set_dtype(ms.float16)", "(c.set_dtype(ms.float16), c)", "n.set_dtype(ms.float32)"],
    "set_": ["c.set_(d)"],
    "shape": [
        "x.shape", "s.shape", "z.shape", "type(x.shape) is tuple", "x.shape[1:]", "x.shape == (2, 3, 4)",
        "ms.Parameter(c).shape", "c.shape + (1,)",
    ],
    "size": ["x.size", "s.size", "z.size", "type(x.size) is int"],
    "sigmoid": ["half.sigmoid()"], "sign": ["n.sign()", "half.sign()"], "sin": ["half.sin()", "n.sin()"],
    "slice_scatter": ["c.slice_scatter(t3.reshape(1, 3), 0, 0, 1)"], "soft_shrink": ["c.soft_shrink()"],
    "softmax": [
        "c.softmax(axis=0)", "c.softmax(-1, dtype=ms.float16)", "half.softmax(-1)", "c.softmax()", "c.softmax(dim=1)",
    ],
    "sort": [
        "c.sort(0)", "c.sort(1, True)", "n.sort()", "c.sort(axis=0, descending=True)", "half.sort()", "c.sort(dim=1)",
    ],
    "split": [
        "x.split(2, 2)", "v.split(4)", "v.split([1, 2, 3])", "x.split((1, 2), 1)", "x.split(1, axis=0)",
        "x.split(split_size_or_sections=2, axis=2)",
    ],
    "sqrt": ["n.sqrt()", "half.abs().sqrt()"],
    "squeeze": [
        "x[:1].squeeze(0)", "x[:, :1].squeeze(1)", "x.squeeze()", "x[:1, :1].squeeze()", "x.squeeze(0)",
        "x[:1, :1].squeeze((0, 1))", "x[:1].squeeze(axis=0)",
    ],
    "std": [
        "x.std(1)", "c.std(0, 0)", "c.std(axis=1, keepdims=True)", "c.std(ddof=1)", "c.std(1, 1, True)", "n.std()",
    ],
    "stride": ["x.stride()", "x.stride(1)", "c.T.stride()"],
    "strides": ["x.strides", "half.strides", "c.T.strides", "s.strides", "x[:, 0].strides"],
    "storage_offset": ["c.storage_offset()", "x[1].storage_offset()"],
    "sub": ["c.sub(t3)", "n.sub(1)", "c.sub(d, alpha=2)"],
    "sum": [
        "n.sum()", "mask23.sum()", "half.sum()", "x.sum((0, 2))", "x.sum(axis=1, keepdims=True)", "x.sum(-1)",
        "n.sum(dtype=ms.float32)", "c.sum(None)", "c.sum(0, initial=2)", "n.byte().sum()", "n.sum(1, True)",
        "c.sum(())", "c.sum(axis=[0, 1])",
    ],
    "sum_to_size": ["c.sum_to_size((1, 3))", "c.sum_to_size(2, 1)"],
    "svd": ["kind(q.svd()[0])", "q.svd(compute_uv=False)"], "swapaxes": ["x.swapaxes(0, -1)"],
    "swapdims": ["x.swapdims(0, 1)"],
    "take": ["c.take(T([0, 4]))", "c.take(ids, axis=0)", "c.take(T([0, 9]), mode='clip')", "c.take(ids[:2], 1)"],
    "tanh": ["half.tanh()"], "tile": ["c.tile((1, 2))", "t3.tile((2, 2))", "c.tile((2,))", "c.tile(2, 1)"],
    "to": [
        "c.to(ms.float16)", "c.to(ms.int32)", "c.to(dtype=ms.float16)", "c.to(half)", "c.to('CPU')",
        "c.to('float16')", "c.to('no dtype')",
    ],
    "tolist": [
        "x.tolist()", "s.tolist()", "mask23.tolist()", "n.tolist()", "z.tolist()", "half.tolist()",
        "type(T(1).tolist()) is int",
    ],
    "topk": ["c.topk(1)", "c.topk(2, 0)", "c.topk(2, largest=False)", "c.topk(1, 1, False)", "n.topk(2)"],
    "top_k": ["c.top_k(2)"], "trace": ["q.trace()"],
    "transpose": [
        "x.transpose()", "x.transpose(1, 0, 2)", "x.transpose((2, 1, 0))", "x.transpose(0, 2)",
        "x.transpose([1, 0, 2])", "t3.transpose()", "x.transpose(1)", "x.transpose(0, 0, 1)",
    ],
    "triangular_solve": ["t3.reshape(3, 1).triangular_solve(q)"],
    "tril": ["q.tril(1)", "q.tril(-1)", "x.tril()", "n.tril()"],
    "triu": ["q.triu(1)", "q.triu(diagonal=-1)", "x.triu()"],
    "type": ["c.type()", "c.type(ms.float16)", "n.type()", "c.type('float16')"],
    "type_as": ["c.type_as(half)", "n.type_as(c)", "c.type_as(n)"], "unbind": ["c.unbind(1)", "x.unbind(-1)"],
    "unfold": ["v.unfold(0, 2, 2)"], "uniform": ["kind(c.uniform(0.0, 1.0))"], "uniform_": ["kind(c.uniform_(0, 1))"],
    "unique": ["n.unique()", "ids.unique(return_inverse=True)", "ids.unique(return_counts=True)"],
    "unique_consecutive": ["ids.unique_consecutive()", "ids.unique_consecutive(return_counts=True)"],
    "unique_with_pad": ["ids.unique_with_pad(9)"],
    **{f"unsorted_segment_{name}": [f"t3.unsorted_segment_{name}(ids, 2)"] for name in ("max", "min", "prod")},
    "unsqueeze": ["c.unsqueeze(0)", "c.unsqueeze(-1)", "s.unsqueeze(0)", "c.unsqueeze(9)"],
    "value": ["c.value()", "ms.Parameter(c).value()"],
    "var": ["x.var(1)", "c.var(0, 0)", "c.var(ddof=1)", "c.var(1, 1, True)"],
    "view": [
        "x.view(6, 4)", "x.view((4, 6))", "x.view(-1)", "c.T.view(-1)", "x.view(2, -1)", "x.view(5)", "x.view([24])",
        "c.view(ms.int32)",
    ],
    "view_as": ["v.view_as(c)"], "where": ["c.where(mask23, d)", "c.where(c > 0, 0.0)", "c.where(mask23, n)"],
    "register_hook": ["callable(c.register_hook(abs).remove)"], "hooks": ["c.hooks()"],
    "to_": ["kind(c.to_(ms.float16))"],
}

# On a class: what a script that writes `Tensor.mean(x)` needs.
ON_THE_CLASS: Final = [
    "T.mean(c)", "T.sum(c, 1)", "T.view(c, 3, 2)", "T.abs(c)", "T.reshape(c, (3, 2))", "T.astype(c, ms.float16)",
    "T.asnumpy(c)", "T.add(c, d)", "T.matmul(c, q)", "T.max(c)", "T.__add__(c, d)", "T.__getitem__(c, 0)",
    "T.shape.__get__(c)", "T.T.__get__(c)", "T.item(s)", "T.copy(c)", "T.softmax(c, -1)", "T.transpose(c, 1, 0)",
    "T.split(c, 1)", "T.exp(s)", "callable(T.mean)", "getattr(T, 'clamp')(c, 0, 1)", "T.__len__(c)", "T.__bool__(s)",
    "T.__neg__(c)",
]

PYTHON: Final = [
    "len(c)", "bool(s)", "bool(T(0))", "int(s)", "int(T(-7))", "float(s)", "float(n[0, 0])", "int(c)", "float(c)",
    "int(T([3]))", "float(T([[2.5]]))", "int(T(True))", "complex(s)", "hash(c) == hash(c)", "hash(c) == hash(d)",
    "hash(c) == id(c)", "{c: 1}[c]", "c in {c: 1}", "d in {c: 1}", "len({c, d, c})", "isinstance(c, T)",
    "isinstance(c, ms.Tensor)", "isinstance(ms.Parameter(c), T)", "isinstance(1.0, T)", "isinstance(np.ones(2), T)",
    "type(c) is T", "type(c[0]) is T", "type(c + 1) is T", "type(ms.Parameter(c) + 1) is T", "callable(c)",
    "iter(c) is not None", "[float(one) for one in t3]", "max(t3.tolist())", "np.array(c)", "np.asarray(c)",
    "np.asarray(n)", "np.asarray(half)", "np.array(c, np.float64)", "np.asarray(c, dtype=np.int32)", "np.mean(c)",
    "np.sum(c, 1)", "np.exp(s)", "np.concatenate([c, d])", "np.stack([t3, t3])", "np.allclose(c, c)", "np.add(c, 1)",
    "np.maximum(c, 0)", "np.array([T(1.0), T(2.0)])", "np.ones(3) * t3.asnumpy()", "list(map(int, n[0]))",
    "'%.2f' % s", "'%d' % T(3)", "f'{s.item():.2f}'", "copy.copy(c)", "copy.deepcopy(c)", "copy.deepcopy(c) is c",
    "copy.deepcopy([c, n])[1]", "copy.deepcopy(half)", "copy.deepcopy(a_bfloat16)", "copy.deepcopy(s)",
    "pickle.loads(pickle.dumps(c))", "pickle.loads(pickle.dumps(half))", "pickle.loads(pickle.dumps(a_bfloat16))",
    "pickle.loads(pickle.dumps(mask2))", "pickle.loads(pickle.dumps(s))", "pickle.loads(pickle.dumps({'a': n}))['a']",
    "pickle.loads(pickle.dumps(z))", "type(pickle.loads(pickle.dumps(c))) is T",
    "(lambda a: put(copy.copy(a), 0, 100) is a)(c)", "(lambda a: (put(copy.deepcopy(a), 0, 100), a))(c)",
    "op.index(T(3))", "op.index(s)", "range(T(3)) == range(3)", "[1, 2, 3][T(1)]", "'ab' * T(2)", "round(s)",
    "abs(c)", "sorted([T(3), T(1), T(2)])[0]", "min(T(3), T(1))", "divmod(7, 2)", "getattr(c, 'no_such_name', None)",
    "c.no_such_name", "hasattr(c, 'mean')", "hasattr(c, 'no_such_name')", "setattr(c, 'note', 5)",
    "(setattr(c, 'note', 5), c.note)", "first(c, lambda a: setattr(a, 'dtype', 1))",
    "T.__name__",
    "c.__class__ is T",
]

MAKING: Final = [
    "T(1)", "T(1.5)", "T(True)", "T([1, 2])", "T([1.0, 2.0])", "T([True, False])", "T((1, 2))", "T([[1, 2], [3, 4]])",
    "T([1, 2.5])", "T([True, 2])", "T([True, 2.5])", "T([])", "T([[]])", "T(())", "T(np.array([1, 2]))",
    "T(np.array([1.5]))", "T(np.float32(1.5))", "T(np.float64(1.5))", "T(np.int8(1))",
    "T(np.array([1.5], np.float16))", "T(np.array(True))", "T(np.arange(3, dtype=np.uint8))", "T(c)", "T(c) is c",
    "T(c, ms.float16)", "T(half)", "T([c[0], c[1]])", "T([T(1), T(2)])", "T([T(1.0), 2.0])", "T(1, ms.float32)",
    "T(1.7, ms.int32)", "T(-1.7, ms.int32)", "T([1, 0], ms.bool_)", "T([0.5], ms.bool_)", "T([1], 'float32')",
    "T([1], np.float32)", "T([1], float)", "T([1], dtype=ms.float16)", "T(input_data=[1])", "T(None)", "T()",
    "T('a')", "T(['a'])", "T({})", "T([1, 'a'])", "T([[1, 2], [3]])", "T(1 << 40)", "T(1 << 31)", "T([1 << 31])",
    "T(-1)", "T(1e10)", "T(1e-10)", "T(math.nan)", "T([math.inf, -math.inf])", "T(1, 'no dtype')", "T(1, dtype=None)",
    "T(shape=(2,), dtype=ms.float32, init=ms.common.initializer.Zero()).init_data()", "T(range(3))",
    "T([np.float32(1.5), 2])", "T([np.array([1, 2]), np.array([3, 4])])", "T(np.ones((2, 0)))",
    "T(np.ones((2, 3)).T)", "T(np.arange(6)[::2])", "T(1.5, ms.bfloat16)", "T([1.5, 200.0], ms.uint8)",
    "ms.tensor(1)", "ms.tensor([1.0, 2.0])", "ms.tensor([1, 2], ms.float16)", "ms.tensor(c)",
    "ms.tensor(np.array([1.5]))", "ms.tensor([1], dtype=ms.int32)", "ms.tensor(True)",
    "ms.from_numpy(np.array([1, 2]))", "ms.from_numpy(np.array([1.5]))", "ms.from_numpy(np.float32([1.5]))",
    "ms.Parameter(T([1.0]))", "ms.Parameter(T([1, 2], ms.int32))", "ms.Parameter(1.0)", "ms.Parameter([1.0, 2.0])",
    "ms.Parameter(np.ones(2, np.float32))", "ms.Parameter(c) + 1", "ms.Parameter(c) * ms.Parameter(d)",
    "ms.Parameter(c)[0]", "ms.Parameter(c).sum()", "-ms.Parameter(c)", "ms.Parameter(c) > 0", "ms.Parameter(c) @ q",
    "ms.Parameter(c).asnumpy()", "ms.Parameter(half) + c", "ms.Parameter(n) / 2", "2 - ms.Parameter(c)",
    "ms.Parameter(c).set_data(d)", "ms.Parameter(c) is None", "ms.Parameter(c).T",
    "ms.ops.assign(ms.Parameter(c), d)", "ms.is_tensor(c)", "ms.is_tensor(1)", "ms.ops.is_tensor(ms.Parameter(c))",
]
