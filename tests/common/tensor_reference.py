"""MindSpore's results of the expressions of tensor_cases.py, and the comparison with mixtrain's."""

from __future__ import annotations

import json
import math
import pathlib
import re
from typing import Any, Final

import keras
import numpy as np

import mixtrain
from tests.backends import ON_TENSORFLOW
from tests.common import tensor_cases, tensor_inputs, tensor_method_cases

KNOWN: Final[dict[str, dict[str, Any]]] = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "tensor_reference.json").read_text()
)

# MindSpore's names of dtypes by the usual ones.
NAMES: Final = {
    "bool": "Bool", "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint8": "UInt8",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Float16", "bfloat16": "BFloat16",
    "float32": "Float32", "float64": "Float64",
}
# What JAX holds 64 bits as outside its 64-bit mode, by MindSpore's names and by NumPy's.
NARROWED: Final = {
    "Int64": "Int32", "UInt64": "UInt32", "Float64": "Float32",
    "int64": "int32", "uint64": "uint32", "float64": "float32",
}

# How near floats of a dtype must be; JAX computes float64 in float32.
TOLERANCE: Final = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 2e-5}

# Errors that say the same: MindSpore raises RuntimeError or ValueError where a kernel meets an index out of range, and
# IndexError where an index or a value has the wrong type.
AS_GOOD: Final[dict[str, tuple[type[Exception], ...]]] = {
    "IndexError": (IndexError, TypeError),
    "RuntimeError": (RuntimeError, IndexError, TypeError, ValueError),
    "TypeError": (TypeError,),
    "ValueError": (ValueError, IndexError),
    "AttributeError": (AttributeError,),
}

# JAX compiles an operator for every dtype and shape, so that quick runs try every third expression of large families.
QUICK: Final = 1 if ON_TENSORFLOW else 3

# Expressions whose values need the 64 bits that JAX does not have.
NEEDS_64_BITS: Final = frozenset({
    "T(1 << 40)", "T(1 << 31)", "T([1 << 31])", "n + (1 << 40) * 0",
    "T([[1, 2, 3], [4, 5, 6]], ms.int32) @ T([[1, 0], [2, 1], [0, 3]], ms.int64)",
    "T([[1, 2, 3], [4, 5, 6]], ms.float32) @ T([[1, 0], [2, 1], [0, 3]], ms.float64)",
})


# Expressions in which MindSpore 2.10 itself goes wrong: it reads the int8 as another dtype, a deep copy shares the
# memory of what was copied, and the initial value of an extreme is left out.
WRONG: Final = frozenset({
    "T(2, ms.int8) * a_int64", "(lambda a: (put(copy.deepcopy(a), 0, 100), a))(c)", "c.max(initial=9.0)",
})

# Intended differences: a view does not see later writes to its base;
# every tensor is contiguous and has no view of its bits; gradients have no hooks of tensors;
# `Parameter.value` is a property and its shape TensorFlow's, as Keras needs them; what is no index says so by
# TypeError, as Python expects.
DIFFERENT: Final = frozenset({
    *(f"(lambda a, b: (put(a, 0, 100), b))(x, x{part})" for part in (
        "[0]", "[:, 1]", "[..., 0]", "[0, 0, 0]", ".reshape(6, 4)", ".T", ".flatten()", ".swapaxes(0, 1)", ".squeeze()",
        ".split(1)[0]",
    )),
    "c.T.is_contiguous()", "x[:, 0].is_contiguous()", "c.T.stride()", "x[1].storage_offset()", "c.view(ms.int32)",
    "callable(c.register_hook(abs).remove)",
    "ms.Parameter(c).shape", "str(ms.Parameter(s, name='p').value())", "ms.Parameter(c).value()", "op.index(s)",
})

LEFT_OUT: Final = frozenset(
    call for name in tensor_method_cases.NOT_HAD for call in tensor_method_cases.CALLS[name]
)

# Large float32 that NumPy writes with an exponent since its version 2.4, and without one before.
BY_NUMPY: Final = frozenset({"str(T(1e10))", "str(T([16777216.0]))", "str(c * 1e6)"})

NUMPY_HAS_EXPONENTS: Final = np.array2string(np.float32([1e7])) != "[10000000.]"

# A NumPy array on the left of an operator leaves it to the Tensor, which gives a Tensor; NumPy computes in MindSpore.
NUMPY_ON_THE_LEFT: Final = re.compile(r"np\.[\w.]+\(.*\) [*<@+] \w+$")


def held(name: str) -> str:
    """Return the dtype in which the backend stores values of a dtype."""
    return name if ON_TENSORFLOW else NARROWED.get(name, name)


def held_in_text(text: str) -> str:
    """Return a printed text with the dtypes that the backend stores."""
    for name in NARROWED:
        text = text.replace(name, held(name))
    return text.replace("mindspore.", "mixtrain.")


def name_of(dtype: Any) -> str:
    """Return MindSpore's name of a dtype, of whichever library it is."""
    try:
        return NAMES[keras.backend.standardize_dtype(dtype)]
    except (KeyError, ValueError):
        return str(dtype)


def difference(result: Any, known: Any) -> str:
    """Return how a result differs from the recorded one, or ''."""
    if isinstance(known, list):
        if not isinstance(result, list):
            return f"{short(result)}, not {short(known)}"
        return arrays_difference(result, [held(known[0]), *known[1:]])
    if "array" in known and "array" in result:
        # NumPy computes in 64 bits with what it is given; an array that was a tensor has the tensor's dtype.
        array = known["array"]
        wide = result["array"][0] == array[0]
        return arrays_difference(result["array"], array if wide else [held(array[0]), *array[1:]])
    kind, value = next(iter(known.items()))
    if not isinstance(result, dict) or kind not in result:
        return f"{short(result)}, not {short(known)}"
    if kind in ("tuple", "list"):
        if len(result[kind]) != len(value):
            return f"{len(result[kind])} items, not {len(value)}"
        return "; ".join(filter(None, map(difference, result[kind], value)))
    if kind == "float":
        same = math.isclose(result[kind], value, rel_tol=1e-5) or math.isnan(value) and math.isnan(result[kind])
    else:
        same = result[kind] == (held(value) if kind == "dtype" else value)
        if kind == "str":
            same = result[kind] in (value.replace("mindspore.", "mixtrain."), held_in_text(value))
    return "" if same else f"{short(result)}, not {short(known)}"


def arrays_difference(result: list[Any], known: list[Any]) -> str:
    """Return how dtype, shape and elements differ from the recorded ones, or ''."""
    dtype, shape, elements = known
    if result[:2] != [dtype, shape]:
        return f"{result[0]} {result[1]}, not {dtype} {shape}"
    tolerance = TOLERANCE.get(dtype.lower())
    same = result[2] == elements
    if tolerance is not None:
        actual, expected = np.array(result[2], np.float64), np.array(elements, np.float64)
        same = np.allclose(actual, expected, tolerance, tolerance, equal_nan=True)
    return "" if same else f"{short(result[2])}, not {short(elements)}"


def short(value: Any) -> str:
    """Return a result on one short line."""
    text = json.dumps(value, default=str)
    return text if len(text) < 160 else f"{text[:160]}..."


def disagreement(expression: str, known: Any) -> str:
    """Return how mixtrain's answer to an expression differs from the recorded one, or ''."""
    refused = known.get("raises") if isinstance(known, dict) else None
    try:
        value = tensor_inputs.evaluate(expression, mixtrain)
        result = tensor_inputs.recorded(value, mixtrain, name_of)
    except Exception as error:
        if refused and isinstance(error, AS_GOOD[refused]):
            return ""
        expected = refused if refused else short(known)
        return f"{type(error).__name__} ({' '.join(str(error).split())[:100]}), not {expected}"
    if NUMPY_ON_THE_LEFT.match(expression) and isinstance(result, list):
        return arrays_difference([known["array"][0], *result[1:]], known["array"])
    return f"{short(result)}, not {refused}" if refused else difference(result, known)


def is_refused(known: Any) -> bool:
    """Whether MindSpore refuses an expression."""
    return isinstance(known, dict) and "raises" in known


def is_held(expression: str, known: Any) -> bool:
    """Whether mixtrain must answer an expression as recorded."""
    if not ON_TENSORFLOW and expression in NEEDS_64_BITS:
        return False
    if expression in LEFT_OUT or expression in WRONG | DIFFERENT or expression in BY_NUMPY and NUMPY_HAS_EXPONENTS:
        return False
    if isinstance(known, dict) and "lacking" in known:
        return False
    return not (is_refused(known) and tensor_cases.may_work(expression))


def held_expressions(family: str, refused: bool) -> dict[str, Any]:
    """Return the records of a family, of what MindSpore computes or of what it refuses, that mixtrain must match."""
    return {
        expression: expected for expression, expected in KNOWN[family].items()
        if is_refused(expected) is refused and is_held(expression, expected)
    }


def check(family: str, refused: bool = False, every: int = 1) -> None:
    """Assert that mixtrain agrees with MindSpore on a family; the message lists every disagreement."""
    cases = list(held_expressions(family, refused).items())[::every]
    wrong = [
        f"{expression}: {message}"
        for expression, expected in cases if (message := disagreement(expression, expected))
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ", *wrong])


def with_refusals(families: list[str]) -> list[str]:
    """Return the families with an expression that MindSpore and mixtrain must refuse."""
    return [family for family in families if held_expressions(family, refused=True)]
