"""The expressions in which tensors are compared with MindSpore 2.10: operators, indexing, methods and printing.

In an expression `ms` is the library, `T` its Tensor, `np` NumPy, `op` Python's `operator` and `S` NumPy's `s_`; right
names are the tensors and functions of tensor_inputs.py. The recipe tests/data/make_tensor_reference.py evaluates them
in PyNative mode on the CPU.

Left out, because MindSpore's own answer is no example:
- addresses in memory, devices, and the numbers that random methods draw (their dtype and shape are recorded);
- quotients and remainders of integers by zero and differences below zero of unsigned integers, which wrap;
- sums of empty tensors, products over a dimension of size 0 and values of `new_empty`: uninitialized memory;
- masks that are not as long as their dimension, or have basic indices after them (`x[mask23, 1:]` has a wrong shape);
- slices that run backwards past the first element: `x[-1:-3:-1]` loses a row, to assign to `x[::-1]` fails;
- memory shared with NumPy arrays, and what `a += 1` does to right names of `a` (nothing on the CPU);
- complex dtypes, which mixtrain does not have; float16 * 0-d bfloat16, at which MindSpore crashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.common.tensor_inputs import DTYPES, FLOATS, WIDE_UNSIGNED, spelled
from tests.common.tensor_method_cases import CALLS, MAKING, ON_THE_CLASS, PYTHON
from tests.common.tensor_printing_cases import printing

ALL_PAIRS: Final = ("+", "*", "/", "//", "%", "==", "<")
SOME_PAIRS: Final = ("-", "!=", "<=", ">", ">=")
# The dtypes that meet in the operators of SOME_PAIRS.
MEETINGS: Final = (
    *((dtype, dtype) for dtype in DTYPES), ("bool", "int8"), ("int8", "bool"), ("uint8", "int8"), ("int32", "int64"),
    ("int64", "float16"), ("bool", "float32"), ("float16", "bfloat16"), ("bfloat16", "float32"),
    ("float32", "float64"), ("float64", "int32"), ("float32", "float16"),
)
INTEGRAL: Final = DTYPES[:6]
OTHER_NUMBERS: Final = (
    "np.float16(1.5)", "np.float32(1.5)", "np.float64(1.5)", "np.int8(2)", "np.int32(2)", "np.int64(2)",
    "np.bool_(True)", "np.array(1.5)", "np.array([1, 2, 3, 4])", "np.array([1.5, 2, 3, 4], np.float32)",
)


# All pairs of dtypes but the one at which MindSpore crashes.
DTYPE_PAIRS: Final = tuple(
    (left, right) for left in DTYPES for right in DTYPES if {left, right} != {"float16", "bfloat16"}
)


def number(dtype: str) -> str:
    """Return a number of a dtype's kind."""
    return "True" if dtype == "bool" else "1.5" if dtype in FLOATS else "2"


def pairs(symbol: str) -> Iterator[str]:
    """Return the expressions of an operator between tensors."""
    if symbol == "**":
        yield from (f"p_{left} ** e_{right}" for left in DTYPES for right in DTYPES)
    elif symbol in ALL_PAIRS:
        yield from (f"a_{left} {symbol} b_{right}" for left in DTYPES for right in DTYPES)
    elif symbol in SOME_PAIRS:
        yield from (f"a_{left} {symbol} b_{right}" for left, right in MEETINGS)
    else:
        yield from (f"a_{left} {symbol} b_{right}" for left in INTEGRAL for right in INTEGRAL)
        yield from (f"a_{left} {symbol} b_{left}" for left in FLOATS)
    if symbol in ("+", "*"):
        yield from (f"a_{left} {symbol} b_{right}" for left in WIDE_UNSIGNED
                    for right in (left, "uint8", "int8", "int32"))
        yield from (f"a_{left} {symbol} b_{right}" for left in WIDE_UNSIGNED for right in ("bool", "int64", "float16"))


def with_numbers(symbol: str) -> Iterator[str]:
    """Return the expressions of an operator between a tensor and a number, on both sides."""
    if symbol in ("&", "|", "^"):
        yield from (f"a_{dtype} {symbol} {number}" for dtype in (*INTEGRAL, "float32") for number in ("True", "3"))
        yield from (f"{number} {symbol} a_{dtype}" for dtype in ("bool", "int32") for number in ("True", "3"))
        return
    left, right = ("p", "e") if symbol == "**" else ("a", "b")
    for dtype in DTYPES:
        for number in ("True", "2", "1.5"):
            if not (symbol == "-" and dtype == "uint8"):
                yield f"{left}_{dtype} {symbol} {number}"
        # A larger number, so that no difference is below zero.
        for number in (("9", "9.5") if symbol == "-" else ("True", "2", "1.5")):
            yield f"{number} {symbol} {right}_{dtype}"


def with_numpy(symbol: str) -> Iterator[str]:
    """Return the expressions of an operator between a tensor and a NumPy value."""
    for dtype in ("bool", "int32", "float16", "bfloat16", "float32", "float64"):
        yield from (f"a_{dtype} {symbol} {number}" for number in OTHER_NUMBERS)


OPERATORS: Final[dict[str, list[str]]] = {
    **{
        symbol: [*pairs(symbol), *with_numbers(symbol)]
        for symbol in (*ALL_PAIRS, "**", *SOME_PAIRS, "&", "|", "^")
    },
    "numpy": [
        *with_numpy("*"), *with_numpy("/"), *with_numpy("<"),
    ],
    "numpy on the left": [
        *(f"{number} {symbol} a_{dtype}" for symbol in ("*", "<") for dtype in ("int32", "float16", "float32")
          for number in OTHER_NUMBERS),
    ],
    "unary": [
        f"{form.format(f'a_{dtype}')}" for form in ("-{}", "+{}", "~{}", "abs({})", "round({})") for dtype in DTYPES
    ],
    "in place": [
        *(f"op.{name}(a_{left}, b_{right})"
          for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod")
          for left, right in (
              ("int32", "int32"), ("float32", "float32"), ("float16", "float16"), ("float32", "float16"),
              ("float16", "float32"), ("int32", "float32"), ("int32", "int64"), ("int64", "int32"),
              ("bfloat16", "bfloat16"), ("float32", "int32"), ("float64", "float32"), ("int8", "bool"),
          )),
        *(f"op.{name}(a_{dtype}, {number})"
          for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod")
          for dtype in ("int32", "float16", "float32", "bool")
          for number in ("True", "2", "1.5") if not (name == "isub" and dtype == "bool" and number == "True")),
        *(f"op.ipow(p_{left}, {right})"
          for left in ("int32", "float32", "float16") for right in ("2", "1.5", "e_int32")),
        *(f"op.{name}(a_{left}, b_{left})" for name in ("iand", "ior", "ixor") for left in ("bool", "int32")),
        "op.imatmul(q, q)", "op.iadd(c, t3)", "op.iadd(t3, c)", "op.iadd(c, [1.0, 2.0, 3.0])", "op.iadd(c, None)",
        "op.iadd(c, 'a')", "op.ilshift(bits, 1)", "op.iadd(c, c)", "op.iadd(ms.Parameter(c), 1)",
    ],
    "@": [
        *(f"T([[1, 2, 3], [4, 5, 6]], ms.{left}) @ T([[1, 0], [2, 1], [0, 3]], ms.{right})" for left, right in (
            *((dtype, dtype) for dtype in DTYPES if dtype != "bool"), ("float16", "float32"), ("float32", "float16"),
            ("int32", "float32"), ("int32", "int64"), ("float32", "float64"), ("bfloat16", "float32"),
            ("float16", "bfloat16"), ("int8", "float16"), ("int32", "int8"),
        )),
        "t3 @ t3", "t3 @ q", "q @ t3", "c @ c.T", "c.T @ c", "x @ T(np.ones((4, 2)), ms.float32)",
        "x @ x.swapaxes(1, 2)", "x.reshape(2, 1, 3, 4) @ x.swapaxes(1, 2)", "t3 @ x", "x @ v", "c @ c", "s @ c",
        "c @ s", "c @ 2", "2 @ c", "c @ None", "c @ [1.0, 2.0, 3.0]", "z @ q",
        "c @ np.ones((3, 2), np.float32)",
        "np.ones((3, 2), np.float32) @ c",
    ],
    "shapes": [
        "c + t3", "t3 + c", "c * T([[1.0], [2.0]])", "T([[1.0], [2.0]]) - T([[1.0, 2.0, 3.0]])",
        "x + T([1.0, 2, 3, 4])", "x * c", "x + t3", "c + v", "z + t3", "z + c", "z * 2", "z < 1", "s + c", "c - s",
        "s * s", "s / 2", "2 - s", "s == 2.5", "s < T(3.0)", "T(2) + T(3)", "T(2) / T(3)", "T(True) + 1", "T([]) + 1",
        "c + T([[[1.0]]])",
        *(f"a_{left} * T({value}, ms.{right})" for left, right, value in (
            ("float16", "float32", "1.5"), ("float32", "float64", "1.5"), ("int32", "float32", "1.5"),
            ("int8", "int64", "2"), ("int32", "float16", "1.5"), ("bfloat16", "float32", "1.5"),
            ("bool", "int64", "2"), ("float16", "float64", "1.5"),
        )),
    ],
    # For * and / a 0-d tensor beside one with dimensions counts as a number of its kind (bool, integer or float), which
    # does not widen a dtype of the same kind; the other operators promote it as any tensor.
    "0-d": [
        *(f"a_{left} + T({number(right)}, ms.{spelled(right)})" for left, right in DTYPE_PAIRS),
        *(f"T({number(left)}, ms.{spelled(left)}) * a_{right}" for left, right in DTYPE_PAIRS),
        *(f"T({number(left)}, ms.{spelled(left)}) + T({number(right)}, ms.{spelled(right)})"
          for left, right in MEETINGS),
        *(f"{left} {symbol} {right}" for symbol in ("-", "/", "//", "%", "**") for left, right in (
            ("p_float16", "T(1.5, ms.float32)"), ("T(1.5, ms.float32)", "e_float16"), ("p_int16", "T(2, ms.int64)"),
            ("T(2, ms.int64)", "e_int16"), ("p_float32", "T(2.0, ms.float64)"), ("p_int32", "T(2.0, ms.float16)"),
        )),
    ],
    "others": [
        f"c {symbol} {right}"
        for symbol in ("+", "*", "/", "//", "%", "-", "**", "==", "!=", "<", ">=", "&")
        for right in ("None", "'a'", "[1.0, 2.0, 3.0]", "(1.0, 2.0, 3.0)", "[[1], [2]]", "{}", "ms.float32")
    ] + [
        f"{right} {symbol} c" for symbol in ("+", "*", "-", "/", "==", "<")
        for right in ("None", "'a'", "[1.0, 2.0, 3.0]", "(1.0, 2.0, 3.0)")
    ] + [
        "bits << 1", "bits >> 1", "1 << bits", "divmod(n, 2)", "c == c", "c != c", "odd == odd", "odd != odd",
        "odd < odd", "odd + 1", "odd * 0", "c / 0", "-c / 0", "T([0.0]) / 0", "c // 0.0", "c is c", "not s",
        "c in [c]", "d in [c]", "c in [d, c]", "None in [c]", "c != None", "sum([c, d])", "sum(c)", "max(v)",
        "min(v)", "sorted(v)[0]", "all(mask6)", "any(never)", "pow(c, 2)", "math.sqrt(s)", "math.floor(s)",
        "round(s)", "round(c, 1)", "s and c", "never[0] or c", "not mask2[0]", "bool(c)", "bool(mask2)",
        "bool(T([3.0]))", "bool(z)", "bool(T([]))", "s > 2 and s < 3", "1 < s < 3", "2 ** n", "n ** 2", "n ** 0.5",
        "c ** 2", "pos ** 0.5", "pos ** -1", "c ** 0", "2.0 ** c", "n // 2", "-n // 2", "n % 3", "-n % 3",
        "n % -3", "c % -1.5", "-7 // n[:1]", "-7 % T([2, 3])", "7.5 // c", "7.5 % c", "n * 1e3", "n + 1e10",
        "n + 2147483647.0", "half * 1e3", "half + 1e-8", "half * 70000", "n + (1 << 40) * 0", "T([1], ms.int8) + 100",
        "n == 2.0", "n < 1.5", "half < 1.5", "mask2 + mask2", "mask2 * mask2", "mask2 - mask2", "mask2 / mask2",
        "mask2 + 1", "mask2 * 1.5", "-mask2", "mask2 == True", "mask2 == 1", "n == True", "mask2 & True",
        "True | mask2", "mask2 ^ mask2", "~mask2", "~n",
    ],
}

READS: Final = [
    *(f"x[{index}]" for index in (
        "0", "1", "-1", "-2", "2", "-3", "0, 1", "0, -1", "0, 1, 2", "1, 2, 3", "-1, -1, -1", "0, 3", "0, 0, 0, 0",
        "0, 0, 4", ":", "::", "0:1", "1:", ":1", ":-1", "-1:", "0:0", "1:0", "5:", ":10", "-5:5", "::2", "::-1",
        "::-2", "1::-1", ":, ::-1", ":, 1", ":, -1", ":, 1:", ":, ::2", ":, 2:0:-1", ":, :, 0", ":, :, -1",
        ":, :, 1:3", ":, :, ::3", ":, :, ::-3", ":, :, :", ":, :, :, :", "0, :, 1", "0, 1:, ::2", "1:, 0, :2",
        "..., 0", "..., -1", "..., 1:3", "0, ...", "...", "..., 0, 0", "0, ..., 0", "..., ...", ":, ..., 1",
        "0, 0, 0, ...", "..., 0, 0, 0", "None", "None, 0", "0, None", ":, None", "..., None", "None, None",
        "0, None, 1", ":, None, :, None", "None, ..., None", "np.newaxis, 1:", "()", "(0,)", "slice(0, 1)",
        "(slice(None), 1)", "slice(None, None, 2)", "True", "False", "None, True", "True, 0", "0, True", ":, True",
        "[True, False]", "[True]", "[[True, False, True], [False, True, True]]", "mask2", "mask23", "mask23, 0",
        "mask2, 1", "mask2, :, 1:", ":, [True, False, True]", "mask6", "x > 10", "x < 0", "x % 2 == 0", "~mask2",
        "mask2, ..., 0", "mask2, None", "..., [True, False, True, False]", "np.array([True, False])", "T(True)",
        "T(False)", "mask2, i1[:1]", "i0", "T(0)", "T(-1)", "T(2)", "T(1, ms.int64)", "T(1, ms.int8)",
        "T(1, ms.uint8)", "T(1, ms.int16)", "T(1.0)", "i1[1:]", "i2", "neg", "i1", "T([0, 1, 1, 0])",
        "T([], ms.int32)", "T([[0], [1]])", "T([0], ms.int8)", "T([0], ms.uint8)", "T([0.0])", ":, i1", ":, :, i1",
        "..., i1", "0, i1", "i1[1:], 0", "i2, i2", "i2, i1[1:]", "i2, :, 0", "i2, 1:", ":, i2, i2", "i2, :, i2",
        "i2, i2, i2", "0, :, i1", "i0, :, i1", ":, i0, i1", "i0, i0", "i0, i0, i0", ":, i0", "..., i0", "i0, 1:",
        "i1[1:], None", "None, i1[1:]", "i1[1:], None, i1[:2]", "i1[1:], ..., i1[:2]", "i1[:, None] % 2, i1",
        "neg, neg", "T([0, 1]), T([0, 1, 2])", "T([5])", "T([-3])", "T([3])", ":, T([3])", "T(5)", "[0]", "[0, 1]",
        "[1, 0, 1]", "[-1]", "[2]", "[]", "[[0, 1], [1, 0]]", "[[0, 1]], [[2, 2]]", "[0, 1], [1, 2]", "[0, 1], 1",
        "[0, 1], :, 1", "[0, 1], :, [1, 2]", ":, [0, 2]", ":, [0, 2], [1, 3]", ":, [2, 0], ::2", "..., [1, 1]",
        "0, [0, 2]", "0, :, [0, 2]", "[0], None", "([0, 1],)", "([0, 1], [1, 2])", "(0, 1)", "((0, 1),)",
        "(0, 1), (1, 2)", ":, (0, 2)", "[0, slice(None)]", "[(0, 1), (1, 0)]", "[0.5]", "range(2)", "np.array(1)",
        "np.int64(1)", "np.int32(-1)", "np.array([1, 0])", "np.array([[0, 1]])", ":, np.array([0, 2])",
        "np.array([0, 1]), np.array([1, 2])", "np.array([], np.int64)", "np.array([0], np.uint8)", "np.array([0.5])",
        "1.0", "'a'", "None, 'a'", "{}", "1.5:", "T([0, 1]), [1, 2]", "i2, [1, 2]", "T([[0], [1]]), [[0, 1, 2]]",
        "0:1, i1", "::2, ::2, ::2", "i0:", ":i0", "i0:T(2)", "T(0):T(2):T(1)", ":, i0:", "::i0", "T([0]):",
        "np.int64(0):", ":np.int32(1)", "1, ::-1, ::-1", "::0", ":, :, -2:", ":, :, :-2", ":, :, 10:", ":, 1:1",
        "1:1, 0", "...][0", "0][0", ":][..., 0",
    )),
    *(f"v[{index}]" for index in (
        "0", "-6", "6", "::-1", "4:1:-1", "-2:", "mask6", "never", "v > 0", "i1", "[5, -6]", "[6]", "None", ":, None",
        "...", "i0", "T([[0, 1], [2, 3]])", "0, 0", "T([0], ms.int64)", "i1 + 1", "np.array([0, 5])", "True",
        "[True] * 6", "[True] * 5", "np.array([True] * 6)", "(0,)", "[0, 1, 2][1]", "i1.asnumpy()", "T([0, 6])",
    )),
    *(f"s[{index}]" for index in (
        "...", "None", "()", "0", ":", "True", "False", "None, None", "..., None", "T(True)", "i0",
    )),
    *(f"z[{index}]" for index in ("0", ":", ":, 0", "0:5", "T([], ms.int32)", "None", "..., 1:", "z > 0", "[0]", "[]")),
    *(f"m[{index}]" for index in (
        "mask45", "m > 7", "i1, i1", "2, 3", "1:3, 1:3", "[0, 1, 2], [2, 3, 4]", "i1", ":, i1", "::2, ::-2",
        "3, [0, 4]", "T([True, False, True, False])", "..., mask45", "m % 2 == 0, 0",
        "[True, False, True, False], 1:", "[True, False, True, False], [0, 1]", "T([0, 3]), 1:4:2", "i2, i2",
        "-1, -1",
    )),
    *(f"a_{dtype}[{index}]" for dtype in DTYPES for index in ("1", "1:3", "i1", "[0, 2]", "mask6[:4]")),
    "len(x)", "len(x[0])", "len(s)", "len(z)", "[row for row in c]", "list(c)", "tuple(t3)", "list(s)", "list(z)",
    "[*i1]", "a_float32[:0]", "x[:, 0].shape", "(lambda a, b: a + b)(*c)", "next(iter(x))", "dict(enumerate(t3))[1]",
    "list(zip(t3, i1))[0]", "list(reversed(t3))", "[t3.shape[0], t3[0].shape]", "x.shape[0]", "[0, 1, 2, 3][i0]",
    "range(3)[i0]", "'abc'[T(1)]", "np.arange(5)[i1.asnumpy()]", "list(range(T(3)))", "[0, 1, 2][: i0]", "1.0 in t3",
    "9.0 in t3",
]

WRITES: Final = [
    *(f"put(x, S[{index}], {value})" for index, value in (
        ("0", "5"), ("0", "5.5"), ("-1", "True"), ("0", "T(7.0)"), ("0", "T([1.0, 2, 3, 4])"), ("0", "[1, 2, 3, 4]"),
        ("0", "(1, 2, 3, 4)"), ("0", "np.ones((3, 4))"), ("0", "np.float32(2.5)"),
        ("0", "T([[1], [2], [3]], ms.int32)"), ("0", "x[1]"), ("0", "x[1:]"), ("0", "T([1.0, 2, 3])"),
        ("0", "T([[[1.0, 2, 3, 4]]])"), ("0", "T([[[1.0, 2, 3, 4]]] * 2)"), ("2", "1"), ("-3", "1"), ("0, 1", "9"),
        ("0, 1", "T([1.0, 2, 3, 4])"), ("0, 1, 2", "9"), ("0, 1, 2", "T(9.0)"), ("0, 1, 2", "T([9.0])"),
        ("0, 1, 2", "T([9.0, 8])"), ("0, 3", "1"), ("0, 1, 2", "T(9, ms.int64)"), ("0, 0, 0, 0", "1"), (":", "3"),
        (":", "x * 2"), ("...", "4"), ("...", "T([1.0, 2, 3, 4])"), ("()", "4"), ("None", "4"),
        ("None, 0", "T([1.0, 2, 3, 4])"), (":, None", "2"), ("1:", "2"), ("0:0", "2"), ("5:", "2"), (":, 1", "2.5"),
        (":, 1", "T([[1.0], [2.0]])"), (":, 1", "T([1.0, 2.0])"), (":, ::2", "0"),
        (":, ::2", "T([1, 2, 3, 4], ms.float16)"), (":, :, 1:3", "T([1.0, 2.0])"),
        (":, :, 1:3", "T([1.0, 2.0, 3.0])"), ("..., 0", "T([1.0, 2, 3])"), ("..., 0", "7"),
        ("0, ..., 1", "T([1.0, 2, 3])"), ("..., -1:", "T([[1.0], [2], [3]])"), ("..., None", "1"),
        ("0, 1:, ::2", "T([[1.0, 2], [3, 4]])"), ("0, 1:, ::2", "T([1.0, 2])"), ("1, 2, 3", "True"), ("True", "1"),
        ("False", "1"), ("mask2", "1"), ("mask2", "T([1.0, 2, 3, 4])"), ("mask2", "x[:1]"), ("mask23", "0"),
        ("mask23", "T([1.0, 2, 3, 4])"), ("mask23", "T([[1.0], [2], [3], [4]])"), ("mask23", "T([1.0, 2, 3])"),
        ("x > 10", "0"), ("x > 10", "T(2.0)"), ("x > 100", "0"), ("x > 10", "T([1.0, 2])"),
        ("x < 3", "T([7.0, 8, 9])"), ("x < 3", "T([7, 8, 9], ms.int32)"), ("mask2, 1", "3"), ("mask23, 0", "3"),
        (":, [True, False, True]", "3"), ("mask2, :, 1:", "3"), ("mask6", "3"), ("[True, False]", "3"),
        ("np.array([True, False])", "3"), ("T(True)", "3"), ("x > 10", "x"), ("mask2, ..., 0", "T([1.0, 2, 3])"),
        ("i0", "3"), ("i0", "T([1.0, 2, 3, 4])"), ("T(-1)", "3"), ("T(5)", "3"), ("T(1, ms.int64)", "3"),
        ("neg", "3"), ("i2", "3"), ("neg", "x"), ("T([0, 0])", "x"), ("T([1, 1])", "T([[[1.0]], [[2.0]]])"),
        (":, i1", "3"), (":, i1", "T([1.0, 2, 3, 4])"), (":, i1", "x"), (":, :, i1", "T([1.0, 2, 3])"),
        ("..., i1", "0"), ("0, i1", "T([[1.0], [2], [3]])"), ("0, :, i1", "T([1.0, 2, 3])"),
        ("i2, i2", "T([1.0, 2, 3, 4])"), ("i2, i2, i2", "T([[1.0, 2], [3, 4]])"), ("i2, :, i2", "5"), ("i2, 1:", "5"),
        (":, i2, i2", "T([[1.0, 2], [3, 4]])"), ("T([5])", "1"), ("T([], ms.int32)", "1"), ("i1", "1"),
        ("i0, i0, i0", "9"), ("i0, :, i1", "T([1.0, 2, 3])"), (":, i0", "T([1.0, 2, 3, 4])"), ("i1[1:], None", "1"),
        ("i1[1:], ..., i1[:2]", "1"), ("[0]", "1"), ("[0, 1]", "1"), ("[1, 0]", "x"), ("[2]", "1"), ("[]", "1"),
        ("[0, 1], [1, 2]", "T([1.0, 2, 3, 4])"), ("[0, 1], :, 1", "T([1.0, 2, 3])"),
        ("[0, 1], :, [1, 2]", "T([1.0, 2, 3])"), (":, [0, 2]", "T([[1.0], [2.0]])"), (":, [0, 2]", "[[1.0], [2.0]]"),
        (":, [2, 0], ::2", "8"), ("..., [1, 1]", "T([3.0, 4.0])"), ("(0, 1)", "1"), ("((0, 1),)", "1"),
        ("np.array([1, 0])", "x"), ("np.int64(1)", "1"), (":, np.array([0, 2])", "1"), ("np.array(1)", "2"),
        ("0.5", "1"), ("'a'", "1"), ("0", "'a'"), ("0", "None"), ("0", "[[1, 2], [3]]"),
        ("0", "[T(1.0), T(2.0), T(3.0), T(4.0)]"), ("0", "{}"), ("0", "np.ones(5)"), ("0", "[]"), ("0", "T([])"),
        ("0", "math.nan"), ("0", "math.inf"), ("0", "1e10"), ("0", "1 << 40"), ("0", "ms.Parameter(T(2.0))"),
        ("i0:", "3"), ("T(0):T(1)", "3"), ("0", "x[0] + x[1]"), ("::2, ::2, ::2", "T([[1.0, 2], [3, 4]])"),
        ("0", "half[0, 0]"), ("0", "T([1, 2, 3, 4], ms.bfloat16)"), ("0", "T([1, 2, 3, 4], ms.float64)"),
        ("0", "T([True, False, True, False])"), ("0, 0", "range(4)"), ("[True, False, True]", "1"),
    )),
    *(f"put(v, S[{index}], {value})" for index, value in (
        ("0", "9"), ("-1", "9"), ("6", "9"), ("::2", "9"), ("1:4", "[7, 8, 9]"), ("mask6", "9"), ("never", "9"),
        ("v < 0", "0"), ("v < 0", "-v[v < 0]"), ("i1", "T([7.0, 8, 9])"), ("[0, 0]", "T([7.0, 7])"), ("...", "0"),
        ("None", "v + 1"), ("[5, -6]", "0"), ("0", "T([[9.0]])"), ("1:4", "T([9.0])"), ("[6]", "1"),
        ("v > 100", "T([])"), ("mask6", "T([1.0, 2.0, 3.0])"), ("mask6", "T([1.0, 2.0])"),
        ("mask6", "[1.0, 2.0, 3.0]"), ("True", "0"), ("4:1:-1", "[7, 8, 9]"),
    )),
    *(f"put({target}, S[{index}], {value})" for target, index, value in (
        ("m", "0", "2.7"), ("m", "0", "-2.7"), ("m", "0", "T(2.7)"), ("m", "0", "T([1.5] * 5)"), ("m", "0", "True"),
        ("m", "mask45", "-1"), ("m", "mask45", "2.5"), ("m", "m > 7", "7"),
        ("m", "i1", "T([1, 2, 3, 4, 5], ms.int64)"), ("m", "i1, i1", "0"), ("m", "1:3, 1:3", "T([[1, 2], [3, 4]])"),
        ("m", "0, 0", "1 << 20"), ("m", "..., 0", "T([1, 2, 3, 4])"), ("m", "i1", "T(2.7)"), ("m", "[0, 1]", "1.5"),
        ("m", "m > 7", "T(2.5)"), ("m", "0", "np.float64(2.7)"), ("m", "0", "[1.5, 2.5, 3.5, 4.5, 5.5]"),
        ("half", "0", "2.5"), ("half", "0", "c[1]"), ("half", "0", "T(1e5)"), ("half", "half > 0", "0"),
        ("half", "[0]", "c[1]"), ("mask2", "0", "False"), ("mask2", "0", "3"), ("mask2", "0", "0.0"),
        ("mask2", "0", "T(2)"), ("mask2", "~mask2", "True"), ("mask2", "[0, 1]", "T([False, True])"),
        ("s", "...", "9"), ("s", "()", "9"), ("s", "0", "9"), ("s", "None", "9"), ("s", "True", "9"), ("z", ":", "1"),
        ("z", "0", "1"), ("z", "...", "T([1.0, 2.0, 3.0])"), ("z", "z > 0", "1"), ("ms.Parameter(v)", "0", "9"),
        ("ms.Parameter(v)", "mask6", "9"), ("ms.Parameter(v)", "1:3", "T([8.0, 9.0])"),
    )),
    *(f"put(a_{dtype}, S[{index}], {value})" for dtype in DTYPES for index, value in (
        ("1", "True"), ("1:3", "1"), ("i1", "1"), ("mask6[:4]", "1"), ("[0, 2]", "T([1, 0])"),
    )),
    *(f"grow(x, S[{index}], op.{function}, {value})" for index, function, value in (
        ("0", "iadd", "1"), (":, 1", "imul", "2"), ("..., 0", "isub", "0.5"), ("mask23", "iadd", "T([1.0, 2, 3, 4])"),
        ("x > 10", "imul", "0"), ("[0, 1], [1, 2]", "iadd", "1"), ("i2, i2", "iadd", "1"), ("0, 1, 2", "iadd", "1"),
        ("1:, ::2", "itruediv", "2"), ("...", "iadd", "1"),
    )),
    "grow(m, 0, op.iadd, 1)", "grow(m, 0, op.iadd, 1.5)", "grow(m, S[:, 0], op.imul, T([1, 2, 3, 4]))",
    "grow(m, 0, op.itruediv, 2)", "grow(v, 0, op.iadd, 1)", "grow(v, mask6, op.iadd, 10)",
    "(lambda a: put(put(a, 0, 1), S[1:, 0], 2))(x)", "(lambda a, b: (put(a, 0, 1), b))(c, c)",
    "(lambda a: (put(T(a), 0, 1), a))(np.ones(2, np.float32))", "grow(x, S[1:][0], op.iadd, 1)",
]

# A write into a part is seen in the whole: basic indexing and methods of shape give views of the same memory, and what
# advanced indexing gives remembers the tensor and the index that it came from, and writes back.
VIEWS: Final = [
    *(f"put_in_part(x, S[{part}], S[{index}], 100)" for part, index in (
        ("0", "0"), ("0", ":, 1"), (":, 1", "0"), ("..., 0", "..."), ("0, 1", "2"), ("0, 1, 2", "..."),
        ("1:", ":, 0"), ("::2", "0"), ("None", "0"), (":", "0"), ("...", "0"), ("[0]", "0"), ("i0", "0"),
        ("neg", "0"), ("mask2", "0"), ("x > 10", "0"), ("0, [1]", "0"), ("True", "0"), ("0", "x[0] > 2"),
        ("0", "[0, 1]"),
    )),
    *(f"first(x, lambda a: put(a.{part}, 0, 100))" for part in (
        "reshape(6, 4)", "view(6, 4)", "T", "transpose(2, 0, 1)", "swapaxes(0, 2)", "flatten()", "ravel()",
        "squeeze()", "unsqueeze(0)", "expand_dims(0)", "copy()", "clone()", "astype(ms.float32)", "to(ms.float32)",
        "split(1)[1]", "chunk(2)[1]", "unbind()[1]", "permute(1, 0, 2)", "broadcast_to((2, 3, 4))", "expand(2, 3, 4)",
        "contiguous()", "float()", "value()", "select(0, 1)", "narrow(0, 1, 1)", "diagonal()", "data", "mT",
        "view_as(x)", "reshape_as(x)",
    )),
    "first(x, lambda a: put(list(a)[1], 0, 100))", "first(c, lambda a: put(T(a), 0, 100))",
    "first(c, lambda a: put(ms.Parameter(a), 0, 100))",
    *(f"(lambda a, b: (put(a, 0, 100), b))(x, x{part})" for part in (
        "[0]", "[:, 1]", "[..., 0]", "[0, 0, 0]", ".reshape(6, 4)", ".T", ".astype(ms.float32)",
        ".astype(ms.float16)", ".copy()", " + 0", ".flatten()", ".swapaxes(0, 1)", ".squeeze()", ".split(1)[0]",
        ".max()",
    )),
    "first(x, lambda a: put(a[0][1], 2, 100))",
    "first(x, lambda a: put(a[[0]][:, 1], 0, 100))", "first(x, lambda a: grow(a[0], 0, op.iadd, 100))",
    "first(x, lambda a: [put(row, 0, 100) for row in a])",
]

# What MindSpore 2.10 refuses although it, or NumPy, has a meaning for it elsewhere: whoever takes it is not wrong.
MAY_WORK: Final = (
    # NumPy's arrays and numbers and ranges as index, operand, value or dtype; dtypes by other names.
    r"\bnp\.", r"\brange\(", r"asnumpy\(\)\]", r"'float32'\)", r"'float16'\)", r", float\)",
    # Unsigned integers of more than 8 bits beside other dtypes; unsigned integers as index.
    r"uint(16|32|64)", r"ms\.uint8\)\]",
    # Operators that MindSpore leaves out, also with the number on the left.
    r"^(True|3|1|None) ([&|^]|<<) ", r" (<<|>>) ", r"ilshift", r"divmod", r"round\(c, 1\)", r"^f'", r"'ab' \*",
    r"complex\(",
    # Lists as operands, which + - // take and * / % ** < do not.
    r"\[1.0, 2.0, 3.0\]", r"\(1.0, 2.0, 3.0\)", r"\[\[1\], \[2\]\]",
    # Empty indices, False as an index, and 0-d tensors that are indexed.
    r"\[\[\]\]", r"S\[T\(\[\], ms.int32\)\]", r"False\]$", r"\.\.\., mask45", r"s\[T\(True\)\]", r"s\[i0\]", r"s\[:\]",
    r"bool\((z|T\(\[\]\))\)",
    # Values with leading dimensions of size 1, and lists of values where a mask is assigned to.
    r"S\[0\], (x\[1:\]|T\(\[\[\[)", r"S\[0\], T\(\[\[9.0\]\]\)", r"mask6\], \[1.0",
    # Signatures of methods in other versions, or in mint and ops, and dtypes that a method does not take.
    r"\.(item|itemset)\(.", r"\.softmax\(\)", r"dim=1", r"\.(max|min)\(d\)", r"\.flip\(", r"\.repeat\(", r"n\.exp\(\)",
    r"diag\(1\)", r"mask23\.count_nonzero", r"t3\.dot\(", r"^kind\(", r"\.index\(0\)", r"init_data\(", r"accumulate",
    r"inplace_update", r"col2im", r"fold\(", r"reshape\(2\.0",
)


def by_letter() -> dict[str, list[str]]:
    """Return the calls of methods by the first letter of the method."""
    letters = sorted({name[0].lower() for name in CALLS})
    return {
        f"method {letter}": [call for name, calls in CALLS.items() if name[0].lower() == letter for call in calls]
        for letter in letters
    }


def may_work(expression: str) -> bool:
    """Whether mixtrain may accept an expression that MindSpore refuses."""
    return any(re.search(pattern, expression) for pattern in MAY_WORK)


def families() -> dict[str, list[str]]:
    """Return the expressions by family, each once."""
    families = {
        **{f"operator {name}": cases for name, cases in OPERATORS.items()},
        "index read": READS, "index write": WRITES, "index view": VIEWS, **by_letter(),
        "method on the class": ON_THE_CLASS,
        "python": PYTHON, "making": MAKING, **printing(),
    }
    return {name: list(dict.fromkeys(cases)) for name, cases in families.items()}
