"""Transforms of strings: case, Unicode normalization, replacement, numbers, and windows and truncation of tokens."""

from __future__ import annotations

import enum
import unicodedata
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.text.strings import map_strings, read_pattern, read_strings
from mixtrain.dtype import as_dtype, is_float
from mixtrain.typing import DTypeLike


class NormalizeForm(enum.IntEnum):
    """Unicode normalization forms.

    Example:
        >>> NormalizeForm.NFKC.name
        'NFKC'
    """

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


def normalized(text: str, form: NormalizeForm) -> str:
    """Return a text in a Unicode normalization form."""
    return text if form is NormalizeForm.NONE else unicodedata.normalize(form.name, text)  # type: ignore[arg-type]


def case_folded(text: str) -> str:
    """Return a text for caseless comparison, as Unicode's NFKC_Casefold."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


class CaseFold:
    """Strings with their case folded, which is more than `str.lower`: "ß" becomes "ss", fullwidth letters plain ones.

    Example:
        >>> str(CaseFold()("Welcome To"))
        'welcome to'
    """

    def __call__(self, value: Any) -> np.ndarray:
        return map_strings(case_folded, read_strings("CaseFold", value))


class NormalizeUTF8:
    """Strings in the Unicode normalization form `normalize_form`.

    Example:
        >>> str(NormalizeUTF8(NormalizeForm.NFKC)("Ａ"))
        'A'
    """

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        self.normalize_form = checks.instance(
            "NormalizeUTF8", "normalize_form", normalize_form, NormalizeForm, "NormalizeForm.NFKC"
        )

    def __call__(self, value: Any) -> np.ndarray:
        return map_strings(lambda text: normalized(text, self.normalize_form), read_strings("NormalizeUTF8", value))


class RegexReplace:
    r"""Strings with all matches of `pattern`, a regular expression of Python's `re`, replaced by `replace`.

    Args: replace_all: Whether to replace all matches, or the first in each string.

    Example:
        >>> str(RegexReplace(r"\s+", "_")("one  two"))
        'one_two'
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        self._pattern = read_pattern("RegexReplace", "pattern", pattern)
        self._replace = checks.instance("RegexReplace", "replace", replace, str, '"_"')
        self._count = 0 if checks.boolean("RegexReplace", "replace_all", replace_all) else 1

    def __call__(self, value: Any) -> np.ndarray:
        texts = read_strings("RegexReplace", value)
        return map_strings(lambda text: self._pattern.sub(self._replace, text, count=self._count), texts)


class ToNumber:
    """Strings as numbers; for integer dtypes, decimals are dropped.

    Args: data_type: The dtype, for example ``mixtrain.int32``.

    Example:
        >>> import mixtrain
        >>> ToNumber(mixtrain.int32)(["123", "-4"]).tolist()
        [123, -4]
    """

    def __init__(self, data_type: DTypeLike) -> None:
        self.data_type = as_dtype(data_type)
        if self.data_type.name == "bool" or np.dtype(self.data_type).kind not in "iuf":
            raise checks.fail_type("ToNumber", "data_type must be a dtype of numbers", data_type, "mixtrain.int32")

    def __call__(self, value: Any) -> np.ndarray:
        texts = read_strings("ToNumber", value)
        return np.array([*map(self._number, texts.ravel().tolist())], np.dtype(self.data_type)).reshape(texts.shape)

    def _number(self, text: str) -> int | float:
        try:
            if is_float(self.data_type):
                number = float(text)
                fits = abs(number) <= float(np.finfo(np.dtype(self.data_type)).max) or "inf" in text.lower()
            else:
                number = int(text.partition(".")[0])
                limits = np.iinfo(np.dtype(self.data_type))
                fits = limits.min <= number <= limits.max
        except ValueError:
            fits = False
        if not fits:
            raise checks.fail_value(
                "ToNumber", f"a string must be a number of {self.data_type.name}", text, "another data_type"
            )
        return number


class SlidingWindow:
    """Sliding windows of `width` values over an array with one axis; `axis` is 0 or -1.

    Returns: Shape (n - width + 1, width); empty if the array is shorter than a window.

    Example:
        >>> SlidingWindow(2)(["a", "b", "c"]).tolist()
        [['a', 'b'], ['b', 'c']]
    """

    def __init__(self, width: int, axis: int = 0) -> None:
        self.width = checks.integer("SlidingWindow", "width", width, at_least=1, example=3)
        self.axis = checks.one_of("SlidingWindow", "axis", axis, (0, -1))

    def __call__(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.ndim != 1:
            raise checks.fail_value("SlidingWindow", "the value must have one axis", array.shape, "a list of tokens")
        if len(array) < self.width:
            return array[:0]
        return np.lib.stride_tricks.sliding_window_view(array, self.width).copy()


class Truncate:
    """A list of tokens, or each row of a table of them, truncated to a length. `max_seq_len`: maximum number of tokens.

    Example:
        >>> Truncate(2)(["a", "b", "c"]).tolist()
        ['a', 'b']
    """

    def __init__(self, max_seq_len: int) -> None:
        self.max_seq_len = checks.integer("Truncate", "max_seq_len", max_seq_len, at_least=0, example=128)

    def __call__(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.ndim not in (1, 2):
            raise checks.fail_value("Truncate", "the value must have one axis or two", array.shape, "a list of tokens")
        return array[..., : self.max_seq_len].copy()


class TruncateSequencePair:
    """Two lists of tokens, truncated to a total length; tokens are removed from the longer list.

    Args: max_length: Maximum number of tokens of both lists together.

    Example:
        >>> [part.tolist() for part in TruncateSequencePair(4)(["a", "b", "c"], ["d", "e"])]
        [['a', 'b'], ['d', 'e']]
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = checks.integer("TruncateSequencePair", "max_length", max_length, at_least=0, example=128)

    def __call__(self, first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the lists `first` and `second`, truncated."""
        first, second = np.asarray(first), np.asarray(second)
        while len(first) + len(second) > self.max_length:
            if len(first) > len(second):
                first = first[:-1]
            else:
                second = second[:-1]
        return first.copy(), second.copy()


def to_bytes(array: np.ndarray, encoding: str = "utf8") -> np.ndarray:
    """Encode the strings of `array` as bytes in `encoding`.

    Example:
        >>> to_bytes(["a", "é"]).tolist()
        [b'a', b'\\xc3\\xa9']
    """
    return np.char.encode(read_strings("to_bytes", array), encoding)


def to_str(array: np.ndarray, encoding: str = "utf8") -> np.ndarray:
    """Decode the bytes of `array` as strings in `encoding`.

    Example:
        >>> to_str([b"a", b"b"]).tolist()
        ['a', 'b']
    """
    array = np.asarray(array)
    if array.dtype.kind != "S":
        raise checks.fail_type("to_str", "array must have bytes", array.dtype, 'to_str(np.array([b"a"]))')
    return np.char.decode(array, encoding)
