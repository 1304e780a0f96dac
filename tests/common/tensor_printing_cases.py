"""Tensors that are printed: `str` and `repr` of each are recorded, and of dtypes, shapes and containers."""

from __future__ import annotations

from typing import Final

TENSORS: Final = [
    "T(1)", "T(-7)", "T(2.5)", "T(True)", "T(1e10)", "T(1e-10)", "T(math.nan)", "T(-math.inf)", "T(0.0)",
    "T(1.0, ms.float16)", "T([1, 2, 3])", "T([1.0, 2.0, 3.0])", "T([0.1, 0.2])", "T([1.5])", "T([True, False])",
    "T([-1, 10, -100])", "T([1e-10, 1.0])", "T([1e10, 1.0])", "T([1e30, 1e-30])", "T([123456.789, 0.001])",
    "T([1 / 3, 2 / 3])", "T([math.nan, 1.0, math.inf])", "T([0.0, -0.0])", "T([16777216.0])", "T([100000, 1])",
    "T([2147483647], ms.int32)", "T([-128, 127], ms.int8)", "T([255, 0], ms.uint8)", "T([1.5, -2.25], ms.float16)",
    "T([0.1], ms.float16)", "T([65504.0, 6e-5], ms.float16)", "T([1.5, 2.0], ms.bfloat16)", "T([0.1], ms.bfloat16)",
    "T([[1.5, 2.0], [3.0, -4.0]], ms.bfloat16)", "T([1.5, 2.0], ms.float64)", "T([1, 2], ms.int16)",
    "T([1, 2], ms.int64)", "T([7], ms.uint16)", "T([])", "T([], ms.int32)", "z", "T(np.ones((0,)))",
    "T(np.zeros((2, 0)), ms.float32)", "T([[1, 2], [3, 4]])", "c", "q", "n", "odd", "mask23", "half", "x", "x[0]",
    "x[0, 0]", "x[0, 0, 0]", "T(np.ones((2, 1, 2, 2)), ms.float32)",
    "T(np.arange(12).reshape(3, 4) * 1000.5, ms.float32)", "T([[1.0]])", "T([[[1]]])", "T(np.arange(1001), ms.int32)",
    "T(np.arange(2000), ms.float32)", "T(np.zeros((1200,)), ms.float32)",
    "T(np.arange(3000).reshape(50, 60), ms.float32)", "T(np.arange(40).reshape(2, 20), ms.float32)",
    "T(np.arange(60) / 8, ms.float32)", "c > 0", "c.sum()", "n.float()", "c.T", "c * 1e6", "c / 3", "t3 * 1e-5",
    "ms.Parameter(T([1.0, 2.0]), name='weight')",
    "ms.Parameter(T([1, 2], ms.int32), name='step', requires_grad=False)", "ms.Parameter(T(1.0), name='scale')",
    "ms.Parameter(c, name='a.b')", "ms.Parameter(half, name='h')",
]

DTYPES: Final = [
    *(f"{form}(ms.{name})" for form in ("str", "repr") for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "bfloat16",
    )),
]

OTHERS: Final = [
    # More than a thousand elements are abbreviated.
    *(f"'...' in {form}(T(np.zeros({size}), ms.int32))" for form in ("str", "repr") for size in (1000, 1001)),
    "str(c.dtype)", "repr(c.dtype)", "f'{c.dtype}'", "'%s' % n.dtype", "str(mask2.dtype)", "str(c.shape)",
    "repr(s.shape)", "str(t3.shape)", "f'{c.shape}'", "str([c.dtype, n.dtype])", "str({'dtype': c.dtype})", "f'{t3}'",
    "f'{s}'", "'{}'.format(s)", "'%s' % t3", "'%s' % s", "str([t3, s])", "str((s,))", "str({'a': s})", "repr([s])",
    "str([t3])", "f'{s!r}'", "str(x.strides)", "str(s.item())", "str(c.size)", "f'{s:.3f}'", "f'{T(3):d}'",
    "format(s, '')", "f'{t3:>20}'", "str(c.type())", "str(ms.float32) + ' and ' + str(c.dtype)",
    "str(ms.dtype_to_nptype(ms.float32))", "str(list(t3))", "str(c.tolist())",
    "str(ms.Parameter(s, name='p').value())", "str(ms.Parameter(s, name='p') + 1)",
    "repr(ms.Parameter(s, name='p') + 1)", "ms.Parameter(s, name='p').name",
    "str(list(ms.Parameter(s, name='p') for _ in range(2)))", "str(c.asnumpy().dtype)", "ms.Tensor.__str__(s)",
    "ms.Tensor.__repr__(s)",
]


def printing() -> dict[str, list[str]]:
    """Return the expressions that give a text, by family."""
    return {
        "printing str": [f"str({tensor})" for tensor in TENSORS],
        "printing repr": [f"repr({tensor})" for tensor in TENSORS],
        "printing dtypes": DTYPES,
        "printing in texts": OTHERS,
    }
