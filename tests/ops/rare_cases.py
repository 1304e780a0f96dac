"""Expressions of operators that few networks use; their values are compared with the reference's, as those of `cases`.

In them `ms` is the library, `ops` its operations, `T` its Tensor; the other names are the tensors of `arrays`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def mixed(x: Any) -> Any:
    """Return a function of each element and of all."""
    return x * x * x + x.sum()


def product(x: Any, y: Any) -> Any:
    """Return a matrix product."""
    return x @ y


def arrays() -> dict[str, np.ndarray]:
    """Return the inputs by name."""
    rng = np.random.default_rng(11)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "s": np.array([0.1, 0.5, 1.0, 2.5, 6.0, 7.5, 9.0, 15.0], np.float32),
        "a": np.array([0.5, 1.5, 2.0, 4.0], np.float32), "x": np.array([0.3, 2.0, 2.5, 5.0], np.float32),
        "m": floats(3, 4), "n": floats(3, 4), "q": floats(3, 3), "r": np.abs(floats(3, 4)) + 0.2,
        "c": np.array([1, 0, 3], np.int64), "g": np.array([1, -1, 1], np.int32),
        "b": np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]], np.float32),
        "i": np.array([[3, 0, -1, 1], [1, -1, 2, 0], [2, 1, 0, -1]], np.int32),
        "l": floats(2, 4, 9), "d": floats(2, 4, 6, 5), "v": floats(2, 2, 4, 5, 6), "w1": floats(6, 2, 3),
        "w3": floats(4, 2, 2, 3, 2), "o": floats(4), "t": floats(2, 2, 3), "p": floats(2, 3, 4, 2) * 0.8,
        "k": np.array([[[0, 3], [7, 1]], [[5, 2], [4, 8]]], np.int64)[:, None].reshape(2, 1, 2, 2),
        "u": floats(2, 1, 2, 2), "f": np.log(np.full((5, 2, 4), 0.25, np.float32)) + 0.1 * floats(5, 2, 4),
        "y": np.array([[1, 2, 3], [3, 3, 1]], np.int32), "z": np.array([2, 5, 7, 255, 256], np.int16),
        "e": rng.random((2, 4, 2)).astype(np.float32), "j": rng.random((2, 2, 3)).astype(np.float32),
        "back2": floats(4, 3, 2, 3), "back3": floats(2, 3, 2, 3, 2), "bend": floats(3, 4, 2, 3),
        "moves": floats(2, 36, 5, 3) * 0.8, "seq": floats(5, 2, 4), "h0": floats(2, 2, 3), "gates": floats(216, 1, 1),
    }


CASES = [
    *(f"ops.bessel_{name}(s)" for name in ("j0", "j1", "y0", "y1", "i0", "i1", "i0e", "i1e", "k0", "k1", "k0e", "k1e")),
    "ops.igamma(a, x)", "ops.igammac(a, x)", "ops.zeta(T([2.0, 3.0, 3.5, 5.5]), x)", "ops.polygamma(T(1, ms.int64), x)",
    "ops.Betainc()(a, x, x / 6)", "ops.BesselK0e()(s)", "ops.Igamma()(a, x)", "ops.Zeta()(x + 1.0, x)",
    "ops.hinge_embedding_loss(m, ops.sign(n), 0.7)",
    "ops.cosine_embedding_loss(m, n, g, 0.2)", "ops.margin_ranking_loss(m, n, ops.sign(n), 0.3, 'none')",
    "ops.multi_margin_loss(m, c)", "ops.multi_margin_loss(m, c, 2, 2, r[0], 'sum')",
    "ops.MultiMarginLoss(2)(m, c, r[0])", "ops.multilabel_soft_margin_loss(m, b, r, 'none')",
    "ops.gaussian_nll_loss(m, n, r, True)", "ops.pdist(m)", "ops.pdist(m, 3.0)", "ops.cond(q)", "ops.cond(q, 'fro')",
    "ops.conv1d(l, w1, None, 2, 'pad', 1, 1, 2)", "ops.conv1d(l, w1, pad_mode='same', groups=2)",
    "ops.conv3d(v, w3, o, 1, 'pad', (1, 0, 1), 1)", "ops.conv3d(v, w3, pad_mode='same', stride=2)",
    "ops.Conv3D(4, (2, 3, 2), pad_mode='pad', pad=1, stride=2)(v, w3)",
    "ops.avg_pool1d(l, 3, 2)", "ops.avg_pool3d(v, 2, 2)", "ops.avg_pool3d(v, 2, 1, 1, count_include_pad=False)",
    "ops.avg_pool3d(v, 3, 2, 1, True)", "ops.max_pool3d(v, 2, 2)", "ops.max_pool3d(v, 3, 2, 1)",
    "ops.max_pool3d(v, 2, 1, 0, 1, False, True)", "ops.MaxPool3D(2, 2, 'same')(v)", "ops.AvgPool3D(2, 1, 'same')(v)",
    "ops.lp_pool1d(ops.abs(l), 2.0, 3, 2)", "ops.lp_pool2d(ops.abs(d), 3.0, 2)",
    "ops.adaptive_avg_pool1d(l, 3)", "ops.adaptive_max_pool1d(l, 3)", "ops.adaptive_max_pool2d(d, (3, None))",
    "ops.adaptive_avg_pool3d(v, (2, 3, None))", "ops.adaptive_max_pool3d(v, (2, 3, 4))",
    "ops.adaptive_max_pool2d(d, 2, True)", "ops.max_unpool2d(u, k, 2, 2, 0, (2, 1, 3, 3))",
    "ops.unfold(d, 2, 1, 1, 2)", "ops.fold(ops.unfold(d, 2, 1, 0, 1), T([6, 5], ms.int32), 2, 1, 0, 1)",
    "ops.Im2Col(2, 2, 1, 1)(d)", "ops.space_to_batch_nd(d, [2, 1], [[0, 0], [1, 0]])",
    "ops.batch_to_space_nd(ops.space_to_batch_nd(d, [2, 1], [[0, 0], [1, 0]]), [2, 1], [[0, 0], [1, 0]])",
    "ops.affine_grid(t, (2, 1, 3, 4))", "ops.affine_grid(t, (2, 1, 3, 4), True)",
    *(f"ops.grid_sample(d, p * 1.2, '{mode}', '{outside}', {corners})"
      for mode in ("bilinear", "nearest")
      for outside in ("zeros", "border", "reflection") for corners in (True, False)),
    "ops.crop_and_resize(d, r[:, [0, 1, 0, 1]] * 0.4, T([0, 1, 0], ms.int32), (3, 2))", "ops.lrn(d, 2, 1.0, 0.5, 0.7)",
    "ops.matrix_diag_part(m, T([-1, 2], ms.int32), T(9.0))", "ops.matrix_diag_part(m, T(1, ms.int32), T(9.0))",
    "ops.matrix_set_diag(m, n[0][:3], T(0, ms.int32))", "ops.matrix_diag(m[0])",
    "ops.matrix_diag(m[:2], T([0, 1], ms.int32), T(4, ms.int32), T(4, ms.int32), T(5.0), align='LEFT_RIGHT')",
    "ops.ctc_loss(f, y, T([5, 4], ms.int32), T([3, 2], ms.int32), 0, 'none')[0]",
    "ops.ctc_loss(f, y, T([5, 4], ms.int32), T([3, 2], ms.int32), 0, 'mean')[0]",
    "ops.nanmedian(T([[1.0, float('nan'), 3.0], [5.0, 2.0, float('nan')]]), 1)",
    "ops.Median(False, 1, True)(m)", "ops.Median(True)(m)[0]", "ops.padding(m[:, :1], 3)",
    "ops.population_count(z)", "ops.InvertPermutation()((2, 0, 1))", "ops.MulNoNan()(m, b * 2)",
    "ops.SquareSumAll()(m, n)", "ops.EmbeddingLookup()(m, T([[5, 2], [4, 7]], ms.int32), 4)",
    "ops.BatchNorm()(m, r[0], n[0], m[1], r[1])[0]", "ops.Hypot()(m, n)",
    "ops.IndexFill()(m, 0, T([1], ms.int32), T(2.0))",
    "ops.InplaceAdd((0, 2))(m, n[:2])", "ops.InplaceSub(1)(m, n[:1])", "ops.CumProd(True, True)(m, 1)",
    "ops.CumProd()(m, 0)", "ops.ReverseSequence(1)(m, T([2, 3, 4], ms.int32))", "ops.GLU(1)(m)",
    "ops.LowerBound()(T([[1, 3, 5]], ms.int32), T([[3, 4]], ms.int32))",
    "ops.UpperBound()(T([[1, 3, 5]], ms.int32), T([[3, 4]], ms.int32))", "ops.ReduceStd(axis=1, keep_dims=True)(m)",
    "ops.ResizeBilinearV2()(d, (8, 9))", "ops.TrilIndices(3, 4, 1)()", "ops.TriuIndices(3, 4)()",
    "ops.IndexPut(1)(m, n[0][:2], [T([0, 1], ms.int32), T([2, 2], ms.int32)])", "ops.ChannelShuffle(2)(d)",
    "ops.LogSpace(4, 2)(T(0.0), T(3.0))", "ops.IsClose()(m, m + 1e-7)", "ops.Addcmul()(m, n, r, T(0.5))",
    "ms.jacfwd(mixed)(q)", "ms.jacrev(mixed)(q)", "ms.jvp(mixed, q, n[:, :3])", "ms.vjp(mixed, q)[1](n[:, :3])",
    "ms.jvp(product, (q, m), (q * 2, n))", "ms.jacrev(product, (0, 1))(q, m)[1]", "ms.vjp(product, q, m)[1](n)",
]

SPARSE_FUNCTIONS = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor", "inv",
    "isfinite", "isinf", "isnan", "log", "log1p", "neg", "relu", "relu6", "round", "sigmoid", "sin", "sinh",
    "softsign", "sqrt", "square", "tan",
)
COO = "ms.COOTensor(T([[0, 3], [1, 1], [2, 0], [2, 2]], ms.int64), {}, (3, 4))"
CSR = "ms.CSRTensor(T([0, 1, 2, 4], ms.int32), T([3, 1, 0, 2], ms.int32), {}, (3, 4))"
STEPS = {
    "ApplyAdamWithAmsgradV2": "{r}, {r}, 0.8, 0.9, 0.01, 0.9, 0.99, 1e-7, n", "ApplyAddSign": "0.1, 1.5, 0.9, 0.8, n",
    "ApplyPowerSign": "0.1, 1.5, 0.9, 0.8, n",
}
CASES += [
    *(f"ops.coo_{name}({COO.format('x')}).values" for name in SPARSE_FUNCTIONS),
    *(f"ops.csr_{name}({CSR.format('x - 2.2')}).values" for name in SPARSE_FUNCTIONS),
    # The reference's tanh is more than 1 for large numbers.
    f"ops.coo_tanh({COO.format('x / 8')}).values", f"ops.csr_tanh({CSR.format('x / 8')}).values",
    f"ops.coo_add({COO.format('x')}, {COO.format('a')}, T(2.6)).indices",
    f"ops.coo_add({COO.format('x')}, {COO.format('a')}, T(2.6)).values",
    f"ops.coo_concat(({COO.format('x')}, {COO.format('a')}), 1).indices",
    f"ops.coo_concat(({COO.format('x')}, {COO.format('a')}), 0).values",
    f"ops.csr_add({CSR.format('x')}, {CSR.format('a')}, T(2.0), T(-1.0)).values",
    f"ops.csr_softmax({CSR.format('x')}, ms.float32).values", f"ops.csr_to_coo({CSR.format('x')}).indices",
    f"ops.csr_to_dense({CSR.format('x')})", f"{COO.format('x')}.to_dense()",
    "ops.dense_to_sparse_coo(b).indices", "ops.dense_to_sparse_csr(b * m).values", "b.to_csr().indptr",
    "ops.SparseTensorDenseMatmul()(T([[0, 1], [2, 3]], ms.int64), x[:2], (3, 4), T([[1.0], [2.0], [3.0], [4.0]]))",
    "ops.SparseTensorDenseAdd()(T([[0, 1], [2, 3]], ms.int64), x[:2], T([3, 4], ms.int64), m)",
    *(("ops." + name + "()({m}, {r}, " + rest + ")").format(**{one: f"ms.Parameter({one} * 1)" for one in "mnr"})
      for name, rest in STEPS.items()),
    "ops.ApplyProximalGradientDescent()(ms.Parameter(m * 1), 0.1, 0.3, 0.2, n)",
]

Z = "ops.Complex()(m, n)"
# Complex numbers and spectra; packed factorizations; images resampled; sequences searched.
CASES += [
    f"{Z} * 2 + {Z}", "ops.polar(r, n)", *(f"ops.{name}({Z})" for name in (
        "abs", "real", "imag", "conj", "angle", "sgn", "isreal", "view_as_real",
    )),
    f"ops.ConjugateTranspose()({Z}, (1, 0))", f"ops.adjoint({Z})", f"{Z} * {Z}", f"ops.exp({Z})",
    f"ops.matmul({Z}, {Z}.T)", f"{Z}.sum(0)",
    *(f"ops.{name}({Z}, norm={norm!r})" for name in ("fft", "ifft", "fft2", "ifftn") for norm in (
        "backward", "ortho", "forward",
    )),
    *(f"ops.{name}({n}norm={norm!r})" for name, n in (
        ("rfft", "m, 6, 0, "), ("rfft2", "d, (4, 7), (1, 3), "), ("rfftn", "l, "), ("ihfft", "m, 3, "),
        ("ihfft2", "m, "), ("ihfftn", "l, (3, 5), "), ("irfft", f"{Z}, 5, "), ("irfft2", f"{Z}, "),
        ("irfftn", "ops.Complex()(l, l * 0), (2, 3, 7), "), ("hfft", f"{Z}, "), ("hfft2", f"{Z}, (3, 5), "),
        ("hfftn", "ops.Complex()(l, l * 0), "),
    ) for norm in ("backward", "ortho", "forward")),
    "ops.fftfreq(5, 0.5)", "ops.rfftfreq(6, 2.0)", "ops.fftshift(l)", "ops.ifftshift(l)", "ops.fftshift(l, (1, 2))",
    "ops.stft(l.reshape(2, 36), 8, 3, 6, r[0, :1] + x.sum() * ops.ones(6))",
    "ops.stft(l.reshape(2, 36), 8, center=False,"
    " normalized=True, onesided=False, return_complex=True)",
    "ops.FFTWithSize(2, False, True)(d)", "ops.FFTWithSize(2, False, False)(ops.Complex()(d, d * 2))",
    "ops.kaiser_window(7, beta=5.0)",
    "ops.geqrf(m)", "ops.orgqr(*ops.geqrf(m[:, :2]))", "ops.lu_unpack(q, T([2, 3, 3], ms.int32))",
    "ops.lu_solve(m, q + 3 * ops.eye(3), T([2, 3, 3], ms.int32))",
    "ops.LuSolve()(q, q + 3 * ops.eye(3), T([1, 3, 3], ms.int32))",
    "ops.MatrixTriangularSolve(False, True)(q + 3 * ops.eye(3), m)", "ops.CholeskySolve()(m, q + 3 * ops.eye(3))",
    "ops.TridiagonalMatMul()(m[:1, :3], m[1:2, :3], m[2:, :3], q)", "ops.DiagPart()(q)",
    *(f"ops.ResizeBicubic({how})(d, T([9, 4], ms.int32))" for how in ("", "True", "False, True")),
    *(f"ops.ResizeLinear1D({how!r})(l, (5,))" for how in ("align_corners", "half_pixel")),
    *(f"ops.UpsampleTrilinear3D({how})(v, [3, 8, 7], None)" for how in ("", "True")),
    "ops.UpsampleNearest3D()(v, None, [2.0, 1.5, 0.5])",
    *(f"ops.ResizeArea({how})(d, T([3, 4], ms.int32))" for how in ("", "True")),
    "ops.NoRepeatNGram(2)(T([[[1, 2, 1], [2, 2, 2]]], ms.int32), r.reshape(1, 2, 6))",
    "ops.ctc_greedy_decoder(f, T([5, 3], ms.int32))[1:]", "ops.ctc_greedy_decoder(f, T([5, 4], ms.int32), False)[1:]",
    "ops.ListDiff()(y[0], y[1])", "ops.SubAndFilter()(y[0], 2, 1)",
    "ops.CompareAndBitpack()(l.reshape(3, 24), T(0.25))",
    *(f"ops.CumulativeLogsumexp({how})(m, T(1))" for how in ("", "True, True", "False, True")),
    "ops.RGBToHSV()(ops.sigmoid(d[..., :3]))", "ops.HSVToRGB()(ops.sigmoid(d[..., :3]))",
    "ops.AdjustHue()(ops.sigmoid(d[..., :3]), T(0.3))", "ops.AdjustSaturation()(ops.sigmoid(d[..., :3]), T(1.7))",
    "ops.AdaptiveMaxPool2D((2, 3))(d)", "ops.AdaptiveMaxPool3D()(v, T([2, 3, 1], ms.int32))",
    "ops.Bucketize([-1.0, 0.0, 1.0])(m)", "ops.Histogram(5, -2.0, 2.0)(m)", "ops.UnravelIndex()(T([2, 5]), T([3, 3]))",
    "ops.PadV3('reflect')(l, T([2, 1]))", "ops.PadV3('constant', False)(m, T([1, 0, 2, 0]), T(1.5))",
    "ops.ScatterAddWithAxis(1)(m, T([[0, 2], [1, 1], [3, 0]]), n[:, :2])", "ops.LeftShift()(i, i - 1)",
    "ops.DataFormatDimMap()(T([0, 1, 2, 3], ms.int32))", "ops.DataFormatVecPermute()(T([1, 4, 2, 3], ms.int32))",
    "ops.isclose(T([2.0, np.inf, -np.inf, np.inf]), T([3.0, np.inf, -np.inf, -np.inf]))", "ops.mean(i, 1)",
    "ops.max(i, 1, where=i > 0, initial=0)", "ops.aminmax(ops.log(m), axis=None)", "ops.baddbmm(m, q, n)",
    # The reference's result is the weight itself; what the call returns is not.
    "(lambda w: (ops.ApplyCenteredRMSProp()(w, b, b * b + 1, b + 1, n, 0.1, 0.5, 0.8, 1e-3), w)[1])"
    "(ms.Parameter(m * 1))",
    "ops.ApplyProximalAdagrad()(ms.Parameter(m * 1), ms.Parameter(r * 1), 0.1, 0.2, 0.3, n)",
    "ops.ApplyAdagradDA()(ms.Parameter(m * 1), ms.Parameter(n * 1), ms.Parameter(r * 1), n, 0.1, 0.0, 0.2, 3)",
    "ops.ApplyFtrl()(ms.Parameter(m * 1), ms.Parameter(r * 1), ms.Parameter(n * 1), m, 0.1, 0.0, 0.3, -0.5)",
    "ops.fractional_max_pool2d(d, 2, (2, 3), None, True, e)",
    "ops.fractional_max_pool2d(d[0], 3, 2, None, False, e[:1])",
    "ops.fractional_max_pool3d(v, (1, 2, 2), None, (0.5, 0.6, 0.5), True, j)",
    "ops.FractionalMaxPool3DWithFixedKsize(2, (2, 3, 4))(v, j)",
    *(f"ops.Fractional{how}Pool([1.0, 2.0, 2.0, 1.0], False, {over})(d)" for how in ("Max", "Avg")
      for over in ("False", "True")),
    "ops.ForiLoop()(0, 4, lambda number, x: x * number + m, m)",
    "ops.WhileLoop()(lambda x: x < 100, lambda x: x * 3, 4)",
    "ops.Scan()(lambda x, y: (x + y, x * y), m, [n, r])[0]", "ops.full((2,), 1.7)", "ops.Cross(1)(q, q.T)",
    "ops.min(i, 1, initial=1, where=i > 0)", "ops.max(i, 1, True, initial=2)", "ops.min(m, 0, initial=-0.5)",
    "ops.sparse_segment_mean(m, T([2, 0, 1, 1], ms.int32), T([0, 0, 2, 2], ms.int32))",
    "(lambda *w: (ops.SparseApplyFtrl(0.1, 0.0, 0.3, -0.5)(*w, n[:2], T([2, 0], ms.int32)), w)[1])"
    "(ms.Parameter(m * 1), ms.Parameter(r * 1), ms.Parameter(n * 1))",
    "(lambda *w: (ops.SparseApplyAdagradV2(0.1, 1e-3)(*w, n[:2], T([2, 0], ms.int32)), w)[1])"
    "(ms.Parameter(m * 1), ms.Parameter(r * 1))",
    "(lambda *w: (ops.FusedSparseFtrl(0.1, 0.0, 0.3, -0.5)(*w, n, T([2, 0, 2], ms.int32)), w)[1])"
    "(ms.Parameter(m * 1), ms.Parameter(r * 1), ms.Parameter(n * 1))",
    "(lambda *w: (ops.FusedSparseProximalAdagrad()(*w, T(0.1), T(0.2), T(0.3), n, T([2, 0, 2], ms.int32)), w)[1])"
    "(ms.Parameter(m * 1), ms.Parameter(r * 1))",
    *(f"(lambda *w: (ops.FusedSparse{how}(use_nesterov={nesterov})(*w, T(0.9), T(0.99), T(0.1), T(0.9), T(0.99), "
      "T(1e-3), n, T([2, 0, 2], ms.int32)), w)[1])(ms.Parameter(m * 1), ms.Parameter(n * 1), ms.Parameter(r * 1))"
      for how in ("Adam", "LazyAdam") for nesterov in (False, True)),
    "ops.Conv2DTranspose(4, (2, 3))(d, back2, (2, 3, 7, 7))",
    "ops.Conv2DTranspose(4, (2, 3), 'same', stride=2)(d, back2, (2, 3, 12, 9))",
    "ops.Conv2DTranspose(4, (2, 3), 'pad', (1, 0, 2, 1), stride=2, dilation=(2, 1))(d, back2, (2, 3, 12, 9))",
    "ops.Conv3DTranspose(2, 3, (2, 3, 2))(v, back3)",
    "ops.Conv3DTranspose(2, 3, (2, 3, 2), 1, 'same', 0, 2)(v, back3)",
    "ops.Conv3DTranspose(2, 3, (2, 3, 2), 1, 'pad', 1, 2, 1, 1, (0, 1, 0))(v, back3)",
    "ops.deformable_conv2d(d, bend, moves[:, :18], (2, 3), (1, 1, 1, 1), (0, 0, 0, 0))",
    "ops.deformable_conv2d(d, bend, moves[:, :, :4], (2, 3), (1, 1, 2, 1), (2, 1, 0, 2), o[:3], (1, 1, 1, 2), 1, 2)",
    "ops.LSTM(4, 3, 1, True, True, 0.0)(seq, h0, h0 * 0.5, gates)[:3]",
    "ops.LSTM(4, 3, 1, False, False, 0.0)(seq, h0[:1], h0[1:], gates[:84])[:3]",
    "ops.CTCLoss()(f * 3, T([[0, 0], [0, 1], [1, 0]], ms.int64), T([1, 1, 2], ms.int32), T([5, 5], ms.int32))",
    *(f"ops.ScaleAndTranslate('{kernel}', {soft})(d, T([3, 7], ms.int32), T([0.7, 1.4]), T([0.3, -0.2]))"
      for kernel in ("lanczos3", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
      for soft in (True, False)),
    "ops.SparseSlice()(T([[0, 1], [1, 2], [1, 3], [2, 2]], ms.int64), T([1.0, 2.0, 3.0, 4.0]), T([3, 4], ms.int64), "
    "T([1, 2], ms.int64), T([5, 1], ms.int64))",
    "ops.MapUniform()(T([0, 1, 5, 7, 11], ms.int32), 4, 3)", "ops.diff_ext(m, 2, 0)",
    "ops.function.math_func.float_power_ext(r, m)", "ops.function.math_func.isnan_ext(m / 0)",
    "ops.MatrixLogarithm()(ops.Complex()(q + 3 * ops.eye(3), q * 0))",
]

# Differentiated by the first tensor, after a sum.
GRADIENTS = {
    "s": [f"ops.bessel_{name}(s)" for name in ("j0", "j1", "i0", "i1", "k0e")],
    "m": [
        "ops.multi_margin_loss(m, c)", "ops.cosine_embedding_loss(m, n, g, 0.2)", "ops.gaussian_nll_loss(m, n, r)",
        "ops.pdist(m)", "ops.matrix_diag_part(m, T([-1, 2], ms.int32), T(9.0))",
    ],
    "v": [
        "ops.conv3d(v, w3, o, 2, 'pad', 1)", "ops.max_pool3d(v, 3, 2, 1)", "ops.avg_pool3d(v, 2, 2)",
        "ops.adaptive_avg_pool3d(v, (2, 3, None))",
    ],
    "moves": ["ops.deformable_conv2d(d, bend, moves[:, :18], (2, 3), (1, 1, 1, 1), (0, 0, 0, 0))"],
    "d": ["ops.Conv2DTranspose(4, (2, 3))(d, back2, (2, 3, 7, 7)) * 2",
          "ops.unfold(d, 2, 1, 1, 2) * 2", "ops.grid_sample(d, p, 'bilinear', 'zeros', True)", "ops.lrn(d, 2)"],
    # By the scores: the reference's gradient is right only behind a log_softmax.
    "f": ["ops.ctc_loss(ops.log_softmax(f, 2), y, T([5, 4], ms.int32), T([3, 2], ms.int32), 0, 'mean')[0]"],
}
