"""The arguments of transforms of text: strings, arrays of strings and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from mixtrain import checks


def read_strings(where: str, value: Any) -> np.ndarray:
    """Return a string, a list or an array of strings as an array; bytes are read as UTF-8."""
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind != "U":
        raise checks.fail_type(where, "the value must be a str or an array of them", value, f'{where}(...)("a text")')
    return array


def read_string(where: str, value: Any) -> str:
    """Return one string."""
    array = read_strings(where, value)
    if array.ndim:
        raise checks.fail_value(where, "the value must be one str", f"shape {array.shape}", "a map of each of them")
    return str(array)


def map_strings(function: Callable[[str], str], texts: np.ndarray) -> np.ndarray:
    """Apply a function to each string of an array."""
    return np.array([function(text) for text in texts.ravel().tolist()], np.str_).reshape(texts.shape)


def read_pattern(where: str, argument: str, value: Any) -> re.Pattern[str]:
    r"""Return a regular expression, in Python's syntax."""
    try:
        return re.compile(checks.instance(where, argument, value, str, r'r"\s+"'))
    except re.error as error:
        raise ValueError(
            f"{where}: expected {argument} to be a regular expression of Python's re; got {value!r} ({error}). Write "
            r"classes of characters as [a-z], \w or \s."
        ) from error
