"""The expressions whose values are compared with the reference, and the tensors they are made of.

In them `ms` is the library, `ops` its operations, `T` its Tensor; the other names are the tensors of `tensors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays() -> dict[str, np.ndarray]:
    """Return the inputs by name, each a small array of its own kind."""
    draw = np.random.default_rng(5)
    return {
        "x": draw.standard_normal((2, 3), np.float32) * 3,
        "y": draw.standard_normal((2, 3), np.float32) * 3,
        "p": draw.random((2, 3), np.float32) + 0.1,
        "u": draw.random((2, 3), np.float32) * 1.8 - 0.9,
        "v": draw.standard_normal(3, np.float32),
        "c": draw.standard_normal((2, 3, 4), np.float32),
        "d": draw.standard_normal((2, 4, 3), np.float32),
        "h": draw.standard_normal((2, 3)).astype(np.float16),
        "i": draw.integers(-9, 9, (2, 3)).astype(np.int32),
        "n": np.array([[1, 4], [2, 0]], np.int32),
        "k": np.array([2, 0], np.int32),
        "b": np.array([[True, False, True], [False, False, True]]),
        "w": np.array([[0.5, np.nan, 1.5], [np.inf, -2.5, -np.inf]], np.float32),
    }


UNARY = [
    *(f"ops.{name}(x)" for name in (
        "exp", "expm1", "square", "abs", "absolute", "neg", "negative", "sign", "floor", "ceil", "trunc", "sin",
        "cos", "tan", "sinh", "cosh", "atan", "arctan", "asinh", "erf", "erfc", "round", "isnan", "logical_not",
        "identity",
    )),
    *(f"ops.{name}(p)" for name in ("log", "log1p", "log10", "sqrt", "rsqrt", "reciprocal")),
    *(f"ops.{name}(u)" for name in ("asin", "acos", "arcsin", "arccos", "atanh")),
    "ops.log2(p)", "ops.acosh(p + 1)", "ops.exp2(x)", "ops.sinc(x)", "ops.sqrt(n)", "ops.square(n)", "ops.abs(i)",
    "ops.isnan(w)", "ops.isinf(w)", "ops.isfinite(w)", "ops.round(T([0.5, 1.5, 2.5, -0.5]))", "ops.nan_to_num(w)",
    "ops.neg(i)", "ops.reciprocal(T([1, 2], ms.int32))",
    *(f"ops.{name}()(x)" for name in (
        "Exp", "Expm1", "Square", "Abs", "Neg", "Sign", "Floor", "Ceil", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan",
        "Asinh", "Erf", "Erfc", "Round", "Rint", "LogicalNot", "Identity",
    )),
    *(f"ops.{name}()(p)" for name in ("Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Inv")),
    *(f"ops.{name}()(u)" for name in ("Asin", "ACos", "Atanh")),
    "ops.Acosh()(p + 1)", "ops.IsNan()(w)", "ops.IsInf()(w)", "ops.IsFinite()(w)",
]

BINARY = [
    *(f"ops.{name}(x, y)" for name in (
        "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_div", "floor_divide",
        "floor_mod", "fmod", "remainder", "maximum", "minimum", "atan2", "hypot", "logaddexp", "tensor_add", "equal",
        "eq", "not_equal", "ne", "less", "lt", "less_equal", "le", "greater", "gt", "greater_equal", "ge",
    )),
    *(f"ops.{name}()(x, y)" for name in (
        "Add", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "Maximum",
        "Minimum", "Atan2", "SquaredDifference", "Xdivy", "Equal", "NotEqual", "Less", "LessEqual", "Greater",
        "GreaterEqual",
    )),
    *(f"ops.{name}(b, x > 0)" for name in ("logical_and", "logical_or", "logical_xor")),
    *(f"ops.{name}()(b, x > 0)" for name in ("LogicalAnd", "LogicalOr", "LogicalXor")),
    "ops.logical_and(x, i)", "ops.pow(p, x)", "ops.pow(x, 2)", "ops.add(n, n[:, :1])", "ops.sub(n, n[:, :1])",
    "ops.mul(n, n[:, :1])", "ops.pow(2, x)", "ops.Pow()(p, 2.5)", "ops.Pow()(i, 2)", "ops.subtract(x, y, alpha=2)",
    "ops.bitwise_and(n, 3)", "ops.bitwise_or(n, 1)", "ops.addn([x, y])", "ops.AddN()((x, y))", "ops.lerp(x, y, 0.25)",
    "ops.addcmul(x, y, p)", "ops.addcdiv(x, y, p)", "ops.add(x, v)", "ops.add(x, 1)", "ops.add(2.5, x)",
    "ops.add(i, 0.5)", "ops.add(b, 1)", "ops.mul(b, 1.5)", "ops.mul(h, x)", "ops.mul(h, 2.5)", "ops.mul(i, h)",
    "ops.mul(i, x)", "ops.mul(b, x)", "ops.mul(b, n[:, :1])", "ops.add(n, T([[1], [2]], ms.int64))",
    "ops.maximum(i, x)", "ops.maximum(x, 0)", "ops.equal(i, x)", "ops.equal(i, 3)", "ops.less(i, 0.5)",
    "ops.div(i, 2)", "ops.div(-n, 3, rounding_mode='trunc')", "ops.div(x, 2, rounding_mode='floor')",
    "ops.div(x, 2, rounding_mode='trunc')", "ops.floor_div(i, 2)", "ops.floor_mod(i, 4)", "ops.fmod(i, 4)",
    "ops.Mod()(T([-3.0, 3.0]), T([2.0]))", "ops.isclose(x, x)", "ops.approximate_equal(x, x + 1e-6)",
    "ops.ApproximateEqual(2.0)(x, y)", "ops.EqualCount()(n, n)", "ops.clip_by_value(x, -1.0, 1.0)",
    "ops.clip_by_value(x, T(-1.0), T(1.0))", "ops.clip_by_value(x, 1.0, -1.0)", "ops.clip_by_value(i, -1.5, 3)",
    "ops.clip_by_value(x, clip_value_max=0.5)", "ops.clamp(x, 0)", "ops.clip(x, -1, 1)", "ops.mul(2, 3)",
]

REDUCING = [
    *(f"ops.{name}(x{rest})" for name in ("mean", "prod", "std", "var", "amax", "amin") for rest in ("", ", 1")),
    "ops.sum(x)", "ops.sum(x, 1)", "ops.sum(x, (0, 1), True)", "ops.sum(i)", "ops.sum(b)", "ops.sum(h)",
    "ops.prod(n)", "ops.sum(x, dim=0, keepdim=True)", "ops.sum(i, dtype=ms.float32)", "ops.mean(x, 0, True)",
    "ops.mean(c, (0, 2))", "ops.all(b)", "ops.all(b, 1)", "ops.any(b, 0, True)", "ops.any(b)", "ops.std(x, 1, True)",
    "ops.std(x, 0, 1, True)", "ops.var(c, (0, 1))", "ops.var_mean(x, 1)", "ops.std_mean(x, 1)", "ops.logsumexp(x, 1)",
    "ops.logsumexp(x, 0, True)", "ops.norm(x)", "ops.norm(x, dim=1)", "ops.norm(x, 1)", "ops.norm(x, 2)",
    "ops.norm(x, 'fro')", "ops.norm(v, 3)", "ops.norm(x, 1, dim=1)", "ops.norm(x, float('inf'), dim=1, keepdim=True)",
    "ops.count_nonzero(n)", "ops.count_nonzero(n, 1)", "ops.max(x)", "ops.max(x, 1)",
    "ops.max(x, axis=0, keepdims=True)", "ops.min(x)", "ops.min(x, 1)", "ops.argmax(x)", "ops.argmax(x, 1)",
    "ops.argmax(x, dim=0, keepdim=True)", "ops.argmin(x)", "ops.argmin(x, 1)", "ops.median(x)",
    "ops.median(c, 1, True)", "ops.cumsum(x, 1)", "ops.cumsum(i, 0)", "ops.cumprod(x, 1)",
    "ops.amax(x, (0, 1), True)", "ops.reduce_mean(x, 1)", "ops.reduce_sum(x, 1)", "ops.reduce_max(x, 1)",
    "ops.reduce_min(x, 1)",
    *(f"ops.{name}(){rest}" for name in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")
      for rest in ("(x)", "(x, 1)", "(c, (0, 2))")),
    "ops.ReduceMean(True)(x, 1)", "ops.ReduceSum(keep_dims=True)(x, ())", "ops.ReduceMean(keep_dims=True)(c, (2, 1))",
    "ops.ReduceSum()(h, 1)", "ops.ReduceAll()(b)", "ops.ReduceAll(True)(b, 1)", "ops.ReduceAny()(b, 0)",
    "ops.Argmax()(x)", "ops.Argmax(0)(x)", "ops.Argmax(axis=1, output_type=ms.int64)(x)", "ops.Argmin()(x)",
    "ops.ArgMaxWithValue()(x)", "ops.ArgMaxWithValue(1, True)(x)", "ops.ArgMinWithValue(axis=1)(x)",
    "ops.CumSum()(x, 1)", "ops.CumSum(True, True)(x, 1)", "ops.CumSum(exclusive=True)(x, 0)",
]

SHAPING = [
    "ops.reshape(x, (3, 2))", "ops.reshape(x, (-1,))", "ops.Reshape()(x, (1, -1))", "ops.transpose(c, (0, 2, 1))",
    "ops.Transpose()(c, (2, 0, 1))", "ops.permute(c, (1, 2, 0))", "ops.squeeze(x[:1])", "ops.squeeze(x[:, :1], 1)",
    "ops.Squeeze()(x[:1])", "ops.Squeeze(1)(x[:, :1])", "ops.expand_dims(x, 0)", "ops.expand_dims(x, -1)",
    "ops.ExpandDims()(x, 1)", "ops.unsqueeze(x, 1)", "ops.flatten(c)", "ops.flatten(v)",
    "ops.flatten(c, start_dim=0)", "ops.flatten(c, start_dim=0, end_dim=1)", "ops.flatten(c, order='F')",
    "ops.Flatten()(c)", "ops.ravel(c)", "ops.swapaxes(c, 0, 2)", "ops.swapdims(c, 1, 2)", "ops.movedim(c, 0, 2)",
    "ops.moveaxis(c, 0, 1)", "ops.flip(c, (0, 2))", "ops.reverse(x, [1])", "ops.ReverseV2([0])(x)", "ops.t(x)",
    "ops.tile(x, (2, 1))", "ops.tile(v, (2, 2))", "ops.Tile()(x, (1, 2))", "ops.broadcast_to(v, (2, 3))",
    "ops.broadcast_to(x[:1], (2, -1))", "ops.BroadcastTo((2, 2, 3))(x)", "ops.repeat_interleave(x, 2)",
    "ops.repeat_interleave(x, 2, 1)", "ops.repeat_elements(x, 2, 1)", "ops.pad(x, (1, 1))",
    "ops.pad(x, (1, 1, 1, 0), value=7)", "ops.pad(x, (1, 1), mode='reflect')", "ops.pad(x, (2, 1), mode='replicate')",
    "ops.pad(x, (1, 1), mode='circular')", "ops.Pad(((1, 0), (0, 2)))(x)", "ops.MirrorPad()(x, T([[1, 1], [1, 2]]))",
    "ops.MirrorPad('SYMMETRIC')(x, T([[1, 1], [1, 2]]))", "ops.cat((x, y))", "ops.cat((x, y), axis=1)",
    "ops.concat((x, y), -1)", "ops.Concat()((x, y))", "ops.Concat(axis=1)((x, y, p))", "ops.stack((x, y))",
    "ops.stack([x, y], axis=-1)", "ops.Stack(1)((x, y))", "ops.split(c, 2, 2)", "ops.split(c, 3, axis=-1)",
    "ops.split(c, (1, 3), 2)", "ops.Split(2, 2)(c)", "ops.chunk(c, 3, 2)", "ops.unstack(x, 1)", "ops.unbind(x)",
    "ops.Unstack()(x)", "ops.Unstack(axis=1)(x)", "ops.hstack((x, y))", "ops.hstack((v, v))", "ops.vstack((v, v))",
    "ops.meshgrid(v, x[0])", "ops.meshgrid(k, n[0], indexing='ij')", "ops.Meshgrid()((k, n[0]))",
]

MAKING = [
    "ops.zeros((2, 3))", "ops.zeros(2)", "ops.zeros((2,), ms.int32)", "ops.ones((2, 3), ms.float16)", "ops.ones(3)",
    "ops.Zeros()((2,), ms.int32)", "ops.Ones()((1, 2), ms.float32)", "ops.full((2,), 3)", "ops.zeros_like(x)",
    "ops.full((2,), 1.5, dtype=ms.float32)", "ops.full_like(x, 2)", "ops.ones_like(i)", "ops.ZerosLike()(h)",
    "ops.OnesLike()(x)", "ops.zeros_like(x, dtype=ms.int32)", "ops.fill(ms.float32, (2, 2), 3)",
    "ops.fill(ms.int32, (2,), 3.7)", "ops.Fill()(ms.float32, (2,), 1)", "ops.FillV2()((2,), T(1.5))", "ops.eye(2)",
    "ops.eye(2, 3, ms.int32)", "ops.Eye()(2, 2, ms.float32)", "ops.arange(4)", "ops.arange(1, 2, 0.25)",
    "ops.arange(1, 7, 2)", "ops.arange(3.0)", "ops.arange(5, dtype=ms.float32)", "ops.linspace(0, 1, 5)",
    "ops.LinSpace()(T(1.0), T(2.0), 3)", "ops.range(0, 6, 2)", "ops.Range()(0, 6, 2)", "ops.scalar_to_tensor(3)",
    "ops.scalar_to_tensor(3, ms.int32)", "ops.ScalarToTensor()(2.5)", "ops.tuple_to_array((1, 2, 3))",
    "ops.tuple_to_array((1.0, 2.0))", "ops.TupleToArray()((1, 2))", "ops.make_range(4)", "ops.make_range(1, 7, 2)",
    "ops.rank(c)", "ops.Rank()(c)", "ops.size(c)", "ops.Size()(c)", "ops.shape(c)", "ops.Shape()(c)", "ops.numel(c)",
    "ops.dyn_shape(c)", "ops.TensorShape()(c)", "ops.cast(x, ms.int32)", "ops.Cast()(i, ms.float16)",
    "ops.Cast()(2.5, ms.int32)", "ops.cast(x, ms.bool_)", "ops.cast(b, ms.float32)", "ops.is_tensor(x)",
]

CHOOSING = [
    "ops.gather(x, k, 1)", "ops.gather(x, n[:, 1:] * 0, 0)", "ops.Gather()(c, k, 2)",
    "ops.gather(c, n * 0 + 1, 2, 1)", "ops.gather_nd(x, T([[0, 1], [1, 2]]))", "ops.GatherNd()(x, T([[1], [0]]))",
    "ops.gather_elements(x, 1, n * 0 + 1)", "ops.gather_d(x, 0, T([[0, 1]]))", "ops.GatherD()(x, 1, T([[2], [0]]))",
    "ops.index_select(x, 1, k)", "ops.where(b, x, y)", "ops.where(x > 0, x, 0.0)", "ops.where(b, 1, 0)",
    "ops.select(b, x, y)", "ops.select(b, x, 1.0)", "ops.Select()(b, x, y)", "ops.masked_fill(x, b, 9.0)",
    "ops.MaskedFill()(x, b, -1.0)", "ops.masked_select(x, b)", "ops.MaskedSelect()(x, b)",
    "ops.slice(c, (0, 1, 1), (2, 2, -1))", "ops.Slice()(c, (1, 0, 2), (1, 3, 2))",
    "ops.strided_slice(x, (0, 2), (2, 0), (1, -1))", "ops.StridedSlice()(c, (0, 0, 0), (2, 3, 4), (1, 2, 3))",
    "ops.StridedSlice(begin_mask=1, shrink_axis_mask=2)(x, (1, 1), (2, 3), (1, 1))",
    "ops.strided_slice(x, (0, 0), (1, 2), (1, 1), end_mask=1)", "ops.nonzero(n)", "ops.argsort(x)",
    "ops.argsort(x, 0, True)", "ops.sort(x)", "ops.sort(c, 1, descending=True)", "ops.Sort(axis=0)(x)",
    "ops.Sort(descending=True)(x)", "ops.topk(x, 2)", "ops.topk(x, 1, 0)", "ops.topk(x, 2, largest=False)",
    "ops.TopK()(x, 2)", "ops.TopK(sorted=True)(v, 3)", "ops.one_hot(n, 5)", "ops.one_hot(k, 3, T(2.0), T(-1.0))",
    "ops.one_hot(k, 3, 1.0, 0.0, 0)", "ops.one_hot(k, 2, 1.0, 0.0)", "ops.OneHot()(k, 3, T(1.0), T(0.0))",
    "ops.OneHot(axis=0)(k, 3, T(1.0), T(0.0))", "ops.OneHot()(n, 5, T(1.0, ms.float32), T(0.0, ms.float32))",
    "ops.tril(x)", "ops.tril(c, -1)", "ops.triu(x, 1)", "ops.Tril()(x)", "ops.Triu(1)(x)", "ops.diag(v)",
    "ops.Diag()(v)", "ops.unique(T([3, 1, 3, 2], ms.int32))", "ops.Unique()(T([3, 1, 3, 2], ms.int32))",
    "ops.scatter_nd(T([[0], [2]]), T([1.0, 2.0]), (4,))", "ops.ScatterNd()(T([[1], [1]]), T([1.0, 2.0]), (3,))",
]

MULTIPLYING = [
    "ops.matmul(x, y.T)", "ops.matmul(c, d)", "ops.matmul(v, y.T)", "ops.matmul(c, d[0])", "ops.MatMul()(x, y.T)",
    "ops.MatMul(transpose_b=True)(x, y)", "ops.MatMul(True, False)(x, y)", "ops.BatchMatMul()(c, d)",
    "ops.BatchMatMul(transpose_a=True)(c, c)", "ops.BatchMatMul(transpose_b=True)(d, d)", "ops.bmm(c, d)",
    "ops.mm(x, y.T)", "ops.mv(x, v)", "ops.dot(x, y.T)", "ops.outer(v, v)", "ops.tensor_dot(x, y, ((1,), (1,)))",
    "ops.addmm(x[:, :2], x, y.T, beta=2, alpha=0.5)", "ops.baddbmm(c[:, :2, :3], c[:, :2], d)",
]

WRITING = [
    "ops.assign(ms.Parameter(T([1.0])), T([2.0]))", "ops.Assign()(ms.Parameter(T([1.0])), T([2.0]))",
    "ops.assign_add(ms.Parameter(T([1.0])), T([2.0]))", "ops.AssignAdd()(ms.Parameter(T([1.0])), T([2.0]))",
    "ops.assign_sub(ms.Parameter(T([1.0])), T([2.0]))", "ops.AssignSub()(ms.Parameter(T([1.0])), T([2.0]))",
]

METHODS = [
    *(f"{name}.{method}" for name, methods in {
        "x": (
            "abs()", "add(y)", "add(1)", "sub(y)", "sub(1, alpha=2)", "mul(y)", "div(y)", "div(2)", "pow(2)", "exp()",
            "floor()", "ceil()", "round()", "square()", "tanh()", "sigmoid()", "erf()", "neg()", "sign()", "sin()",
            "maximum(y)", "minimum(y)", "less(y)", "greater(y)", "equal(y)", "not_equal(y)", "eq(1)", "isnan()",
            "isinf()", "mean()", "mean(1)", "mean(1, True)", "mean((0, 1))", "mean(axis=1, keep_dims=True)",
            "mean(dim=0)", "sum()", "sum(1)", "sum(1, True)", "sum(axis=1, keepdims=True)", "sum(1, ms.float16)",
            "sum(dim=0)", "max()", "max(axis=1)", "max(1)", "max(1, True)", "max(dim=0)",
            "max(axis=0, keepdims=True)", "min()", "min(axis=1)", "min(1)", "max(axis=1, return_indices=True)",
            "argmax()", "argmax(1)", "argmax(axis=1, keepdims=True)", "argmin(1)", "prod()", "prod(1)", "std()",
            "std(1)", "std(1, 1)", "var()", "var(axis=1, ddof=1)", "all(1)", "any()", "norm()", "norm(dim=1)",
            "logsumexp(1)", "cumsum(1)", "cumsum()", "sort()", "sort(descending=True)", "argsort()", "topk(2)",
            "split(2, 1)", "split((1, 2), axis=1)", "split(1)", "chunk(2)", "unbind()", "reshape(3, 2)",
            "reshape((3, 2))", "reshape(-1)", "view(-1)", "view(3, 2)", "view((3, 2))", "transpose()",
            "transpose(1, 0)", "transpose((1, 0))", "swapaxes(0, 1)", "permute(1, 0)", "permute((1, 0))", "T",
            "flatten()", "flatten('F')", "flatten(start_dim=1)", "flatten(0, 1)", "ravel()", "expand_dims(0)",
            "unsqueeze(1)", "squeeze()", "tile((2, 1))", "broadcast_to((2, 2, 3))", "broadcast_to(2, 2, 3)",
            "expand(2, 2, 3)", "expand_as(x)", "fill(3.0)", "clip(-1, 1)", "clamp(0.5)", "softmax(1)", "softmax(-1)",
            "astype(ms.int32)", "astype('float16')", "to(ms.float16)", "float()", "half()", "int()", "long()",
            "bool()", "type()", "copy()", "matmul(y.T)", "masked_fill(b, 0.0)", "new_zeros((2,))", "new_ones((2,))",
            "gather(k, 1)", "gather(1, n[:, :1] * 0 + 1)", "gather(dim=1, index=T([[0], [1]]))", "select(0, 1)",
            "select(b, y)", "where(b, y)", "where(b, 0.0)", "index_select(1, k)", "take(k)", "take(k, axis=1)",
            "isclose(x)", "nonzero()", "size", "itemsize", "nbytes", "numel()", "dim()", "shape", "ndim", "tril()",
            "triu()", "view_as(y)", "reshape_as(y)", "type_as(h)", "value()", "masked_select(b)", "median(1)",
            "tolist()", "astype(ms.float32).asnumpy()", "mean().item()", "logical_not()", "repeat_interleave(2, 1)",
            "resize(2, 2)", "resize(2, 4)",
        ),
        "c": (
            "transpose(0, 2)", "transpose(0, 2, 1)", "flatten(1)", "T", "sum((0, 2))", "max(axis=(0, 1))", "squeeze()",
        ),
        "x[:1]": ("squeeze(0)", "squeeze()", "squeeze((0,))"),
        "p": ("log()", "log2()", "sqrt()", "rsqrt()", "reciprocal()"),
        "i": ("sum()", "prod()", "sqrt()", "div(2)", "add(0.5)", "argmax()", "max()", "astype(ms.float32).mean()"),
        "b": ("sum()", "all()", "any(0)"),
        "v": ("expand_as(x)", "tolist()", "outer(v)"),
    }.items() for method in methods),
]

NUMERIC = [
    *(f"ops.{name}(x)" for name in (
        "deg2rad", "rad2deg", "frac", "signbit", "isneginf", "isposinf", "positive", "conj", "sgn", "lgamma", "digamma",
    )),
    "ops.inv(p)", "ops.lgamma(p)", "ops.digamma(p)", "ops.erfinv(u)", "ops.invert(i)", "ops.logit(p, 0.2)",
    "ops.mvlgamma(p + 3, 3)", "ops.is_floating_point(x)", "ops.is_floating_point(i)", "ops.eps(x)",
    *(f"ops.{name}(x, y)" for name in (
        "copysign", "fmax", "heaviside", "nextafter", "truncate_div", "truncate_mod", "xdivy", "ldexp",
    )),
    "ops.logaddexp2(p, p)", "ops.xlogy(x, p)", "ops.gcd(i, i + 3)", "ops.lcm(i, i + 3)", "ops.truncate_div(i, k[0])",
    "ops.truncate_mod(i, i * 0 + 4)", "ops.bitwise_left_shift(i, i * 0 + 2)", "ops.bitwise_right_shift(i, i * 0 + 1)",
    "ops.float_power(p, 2)", "ops.Lgamma()(p)", "ops.Digamma()(p)", "ops.Erfinv()(u)", "ops.Logit(0.2)(p)",
    "ops.Xlogy()(x, p)", "ops.TruncateMod()(x, y)",
]

LINEAR = [
    "ops.adjoint(c)", "ops.addbmm(ops.ones((3, 3)), c, d)", "ops.addmv(y[:, 0], x, v)", "ops.addr(x, y[:, 0], v)",
    "ops.ger(v, v)", "ops.inner(x, y)", "ops.kron(x, y)", "ops.cross(x, y)", "ops.dense(x, y)",
    "ops.dense(x, y, x[:, 0])", "ops.vecdot(x, y)", "ops.det(c[:, :, :3])", "ops.inverse(c[:, :, :3])",
    "ops.slogdet(c[:, :, :3])", "ops.matrix_power(c[:, :, :3], 3)", "ops.trace(x)", "ops.vector_norm(c)",
    "ops.vector_norm(c, ord=1, axis=1)", "ops.dist(x, y, 3)", "ops.cdist(c, c, 1.0)", "ops.cosine_similarity(x, y)",
    "ops.block_diag(x, y)", "ops.matrix_band_part(c, 1, 0)", "ops.batch_dot(c, d)", "ops.matrix_norm(c)",
    "ops.MatrixInverse()(c[:, :, :3])", "ops.LpNorm([1, 2], 1)(c)",
]

COUNTING = [
    "ops.aminmax(x)", "ops.aminmax(c, axis=1, keepdims=True)", "ops.bincount(k)", "ops.cov(x)", "ops.cummax(x, 1)",
    "ops.cummin(x, 0)", "ops.logcumsumexp(x, 1)", "ops.histc(x, 4, -3.0, 3.0)", "ops.nansum(w)",
    "ops.renorm(x, 2, 0, 1.0)",
    "ops.searchsorted(T([1.0, 3.0, 5.0]), x)", "ops.searchsorted(T([1.0, 3.0]), T([3.0]), right=True)",
    "ops.msort(x)", "ops.argwhere(b)", "ops.trapz(x)", "ops.intopk(x, k, 2)",
    "ops.Cummax(1)(x)", "ops.Cummin(0)(x)", "ops.InTopK(2)(x, k)",
]

PLACES = [
    "ops.narrow(x, 1, 1, 2)", "ops.diagonal(c)", "ops.diagonal(c, 1, 1, 2)", "ops.diagonal_scatter(x, T([7.0, 8.0]))",
    "ops.diagflat(v)", "ops.diag_embed(x)", "ops.diag_embed(x, 1)", "ops.diff(x)", "ops.fliplr(x)", "ops.flipud(x)",
    "ops.rot90(x, 1, (0, 1))", "ops.reverse_sequence(x, T([1, 2], ms.int32), 1)", "ops.tensor_split(c, 3, 2)",
    "ops.vsplit(x, 2)", "ops.hsplit(x, (1,))", "ops.index_fill(x, 1, k, 5.0)", "ops.select_scatter(x, v, 0, 1)",
    "ops.slice_scatter(x, T([[7.0], [8.0]]), 1, 1, 2)", "ops.scatter(x, 1, n[:, :1] * 0, T([[9.0], [8.0]]))",
    *(f"ops.tensor_scatter_{how}(x, T([[0, 1], [1, 2]], ms.int32), T([2.0, 0.5]))" for how in (
        "add", "sub", "mul", "div", "max", "min",
    )),
    "ops.tensor_scatter_elements(x, n[:, :1] * 0, T([[9.0], [8.0]]), 1)",
    *(f"ops.{name}(ms.Parameter(x), T([1], ms.int32), y[:1])" for name in (
        "scatter_add", "scatter_mul", "scatter_div", "scatter_max", "scatter_min", "scatter_update",
    )),
    *(f"ops.scatter_nd_{how}(ms.Parameter(v), T([[1]], ms.int32), T([2.0]))" for how in ("add", "sub", "mul", "div")),
    "ops.ScatterNdUpdate()(ms.Parameter(v), T([[1]], ms.int32), T([2.0]))", "ops.inplace_add(x, y[:1], (1,))",
    "ops.inplace_sub(x, y[:1], 0)", "ops.inplace_update(x, y, (1, 0))", "ops.unique_consecutive(T([1, 1, 2, 2, 1]))",
    *(f"ops.unsorted_segment_{how}(c, T([0, 0], ms.int32), 2)" for how in ("sum", "max", "min", "prod")),
    "ops.unique_with_pad(T([1, 2, 2, 3], ms.int32), 0)", "ops.TensorScatterAdd()(x, T([[0, 1]], ms.int32), T([2.0]))",
]

LAYOUTS = [
    "ops.atleast_1d(T(1.0))", "ops.atleast_2d(v)", "ops.atleast_3d(v)", "ops.atleast_3d(x)",
    "ops.column_stack((v, v))", "ops.dstack((x, y))", "ops.cartesian_prod(v, v)", "ops.combinations(v)",
    "ops.combinations(v, 2, True)", "ops.view_as(x, T([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))",
    "ops.pixel_shuffle(ops.arange(16).astype(ms.float32).reshape((1, 4, 2, 2)), 2)",
    "ops.pixel_unshuffle(ops.arange(16).astype(ms.float32).reshape((1, 1, 4, 4)), 2)",
    "ops.channel_shuffle(ops.arange(8).astype(ms.float32).reshape((1, 4, 1, 2)), 2)",
    "ops.SpaceToDepth(2)(ops.arange(16).astype(ms.float32).reshape((1, 1, 4, 4)))",
    "ops.DepthToSpace(2)(ops.arange(16).astype(ms.float32).reshape((1, 4, 2, 2)))",
    "ops.sequence_mask(T([1, 3], ms.int32))", "ops.tril_indices(3, 4)", "ops.triu_indices(3, 4, 1)", "ops.vander(v)",
    "ops.logspace(T(0.0), T(2.0), 3)", "ops.hann_window(5)", "ops.hamming_window(5)", "ops.hamming_window(5, False)",
    "ops.bartlett_window(T(5, ms.int32))", "ops.blackman_window(T(5, ms.int32))", "ops.clip_by_norm(x, 1.0)",
    "ops.clip_by_norm((x, y), 2.0)", "ops.group_norm(c, 3, v, v)",
    "ops.batch_norm(x, v, v * v, v, v)", "ops.LayerNorm(1, 1)(x, v, v)",
]

# MindSpore's CPU kernels of some write the weight and return zeros: the weight itself is what counts.
UPDATES = [
    "ops.ApplyMomentum()(ms.Parameter(x), ms.Parameter(y), 0.1, x, 0.9)",
    "((held := ms.Parameter(x)), "
    "ops.Adam()(held, ms.Parameter(y), ms.Parameter(p), 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, x))[0]",
    "((held := ms.Parameter(x)), "
    "ops.AdamWeightDecay()(held, ms.Parameter(y), ms.Parameter(p), 0.1, 0.9, 0.999, 1e-6, 0.1, x))[0]",
    "ops.ApplyGradientDescent()(ms.Parameter(x), 0.1, y)",
    "ops.ApplyAdagrad()(ms.Parameter(x), ms.Parameter(p), 0.1, y)",
    "ops.ApplyAdagradV2(1e-3)(ms.Parameter(x), ms.Parameter(p), 0.1, y)",
    "ops.ApplyAdadelta()(ms.Parameter(x), ms.Parameter(p), ms.Parameter(p), 0.1, 0.9, 1e-6, y)",
    "ops.ApplyAdaMax()(ms.Parameter(x), ms.Parameter(y), ms.Parameter(p), 0.9, 0.1, 0.9, 0.999, 1e-6, y)",
    "((held := ms.Parameter(x)), "
    "ops.ApplyRMSProp()(held, ms.Parameter(p), ms.Parameter(y), 0.1, y, 0.9, 0.5, 1e-6))[0]",
    "ops.SGD()(ms.Parameter(x), y, T(0.1), ms.Parameter(y), T(0.9), ms.Parameter(x * 0 + 1))",
]

CASES = [
    *UNARY, *BINARY, *REDUCING, *SHAPING, *MAKING, *CHOOSING, *MULTIPLYING, *WRITING, *METHODS, *NUMERIC, *LINEAR,
    *COUNTING, *PLACES, *LAYOUTS, *UPDATES,
]


def tensors(make: Any) -> dict[str, Any]:
    """Return the inputs as tensors, made by `make` from arrays."""
    return {name: make(array) for name, array in arrays().items()}


def parts(value: Any) -> list[np.ndarray]:
    """Return a result as NumPy arrays: a tensor's values, those of each tensor of a tuple, or a Python value."""
    if isinstance(value, (tuple, list)) and any(hasattr(item, "asnumpy") for item in value):
        return [np.asarray(item.asnumpy()) for item in value]
    return [np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else tuple(value) if is_shape(value) else value)]


def is_shape(value: Any) -> bool:
    """Whether a result is a shape of the backend's own type."""
    return type(value).__name__ == "TensorShape"
