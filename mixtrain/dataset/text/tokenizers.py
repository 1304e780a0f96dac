"""Tokenizers: the tokens of a text as an array, optionally with their offsets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.text.convert import NormalizeForm, case_folded, normalized
from mixtrain.dataset.text.strings import read_pattern, read_string

# The first and the last character of a part of a text, the latter exclusive.
Span = tuple[int, int]

_CHINESE: Final = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_SPECIAL_TOKENS: Final = re.compile(r"\[(?:CLS|SEP|UNK|PAD|MASK|unused\d+)\]")


class _Tokenizer:
    """Base class of tokenizers: a subclass defines `spans`."""

    def __init__(self, with_offsets: bool = False) -> None:
        self.with_offsets = checks.boolean(type(self).__name__, "with_offsets", with_offsets)

    def prepare(self, text: str) -> str:
        """Return the text that is split into tokens."""
        return text

    def spans(self, text: str) -> Iterable[Span]:
        """Return the spans of the tokens of a text."""
        raise NotImplementedError

    def __call__(self, value: Any) -> Any:
        """Return the tokens of one text; with offsets, a tuple of tokens, starts and ends, in bytes of UTF-8."""
        text = self.prepare(read_string(type(self).__name__, value))
        spans = [span for span in self.spans(text) if span[0] < span[1]] or [(0, 0)]
        tokens = np.array([text[start:end] for start, end in spans], np.str_)
        if not self.with_offsets:
            return tokens
        offsets = np.cumsum([0, *(len(letter.encode()) for letter in text)]).astype(np.uint32)
        starts, ends = np.array(spans).T
        return tokens, offsets[starts], offsets[ends]


class WhitespaceTokenizer(_Tokenizer):
    """The parts of a text between whitespace.

    Args: with_offsets: Whether to return the start and end of each token too, in bytes.
    Returns: An array of strings; with offsets, a tuple of it and two uint32 arrays. An empty text has one empty token.

    Example:
        >>> WhitespaceTokenizer()("Welcome to  Beijing").tolist()
        ['Welcome', 'to', 'Beijing']
    """

    def spans(self, text: str) -> Iterable[Span]:
        return (match.span() for match in re.finditer(r"\S+", text))


class UnicodeCharTokenizer(_Tokenizer):
    """The characters of a text. `with_offsets`: whether to return the start and end of each token too, in bytes.

    Returns: An array of strings; with offsets, a tuple of it and two uint32 arrays.

    Example:
        >>> UnicodeCharTokenizer()("to go").tolist()
        ['t', 'o', ' ', 'g', 'o']
    """

    def spans(self, text: str) -> Iterable[Span]:
        return ((index, index + 1) for index in range(len(text)))


class RegexTokenizer(_Tokenizer):
    r"""The parts of a text between the matches of a regular expression, in the syntax of Python's `re`.

    Args:
        delim_pattern: The regular expression between tokens.
        keep_delim_pattern: Matches of it that are tokens themselves; none if it is empty.
        with_offsets: Whether to return the start and end of each token too, in bytes.

    Returns: An array of strings; with offsets, a tuple of it and two uint32 arrays.

    Example:
        >>> RegexTokenizer(r"\s+|,", keep_delim_pattern=",")("one, two").tolist()
        ['one', ',', 'two']
    """

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        self._delimiter = read_pattern("RegexTokenizer", "delim_pattern", delim_pattern)
        self._keep = read_pattern("RegexTokenizer", "keep_delim_pattern", keep_delim_pattern)

    def spans(self, text: str) -> Iterable[Span]:
        end = 0
        for match in self._delimiter.finditer(text):
            yield end, match.start()
            end = match.end()
            if self._keep.fullmatch(match.group()):
                yield match.span()
        yield end, len(text)


class BasicTokenizer(_Tokenizer):
    """Words, punctuation marks and Chinese characters, each a token; the first step of BERT's tokenizer.

    Args:
        lower_case: Whether to fold case and to strip accents.
        keep_whitespace: Whether whitespace is a token too.
        normalization_form: The Unicode normalization form, used if `lower_case` is False.
        preserve_unused_token: Whether special tokens such as "[CLS]" and "[UNK]" are preserved.
        with_offsets: Whether to return the start and end of each token too, in bytes of the normalized text.

    Returns: An array of strings; with offsets, a tuple of it and two uint32 arrays.

    Example:
        >>> BasicTokenizer()("Hello, [UNK] world!").tolist()
        ['Hello', ',', '[UNK]', 'world', '!']
    """

    def __init__(
        self, lower_case: bool = False, keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE, preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        super().__init__(with_offsets)
        self.lower_case = checks.boolean("BasicTokenizer", "lower_case", lower_case)
        self.keep_whitespace = checks.boolean("BasicTokenizer", "keep_whitespace", keep_whitespace)
        self.normalization_form = checks.instance(
            "BasicTokenizer", "normalization_form", normalization_form, NormalizeForm, "NormalizeForm.NFKC"
        )
        self.preserve_unused_token = checks.boolean("BasicTokenizer", "preserve_unused_token", preserve_unused_token)

    def prepare(self, text: str) -> str:
        if not self.preserve_unused_token:
            return self._normalized(text)
        parts, end = [], 0
        for match in _SPECIAL_TOKENS.finditer(text):
            parts += [self._normalized(text[end : match.start()]), match.group()]
            end = match.end()
        return "".join([*parts, self._normalized(text[end:])])

    def _normalized(self, text: str) -> str:
        if self.lower_case:
            letters = unicodedata.normalize("NFD", case_folded(text))
            text = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
        else:
            text = normalized(text, self.normalization_form)
        return "".join(" " if unicodedata.category(letter) in ("Cc", "Cf") else letter for letter in text)

    def spans(self, text: str) -> Iterable[Span]:
        end = 0
        for match in _SPECIAL_TOKENS.finditer(text) if self.preserve_unused_token else ():
            yield from self._words(text, end, match.start())
            yield match.span()
            end = match.end()
        yield from self._words(text, end, len(text))

    def _words(self, text: str, start: int, end: int) -> Iterable[Span]:
        while start < end:
            stop, kind = start + 1, _character_kind(text[start])
            while kind != "mark" and stop < end and _character_kind(text[stop]) == kind:
                stop += 1
            if kind != "space" or self.keep_whitespace:
                yield start, stop
            start = stop


def _character_kind(letter: str) -> str:
    """Return "space" for whitespace, "mark" for a character that is a token by itself, else "word"."""
    if letter.isspace():
        return "space"
    is_mark = (letter.isascii() and letter.isprintable() and not letter.isalnum()) or re.match(f"[{_CHINESE}]", letter)
    return "mark" if is_mark or unicodedata.category(letter).startswith("P") else "word"


class PythonTokenizer:
    """A tokenizer from a function. `tokenizer`: a function from a str to a list of str.

    Example:
        >>> PythonTokenizer(str.split)("Welcome to Beijing").tolist()
        ['Welcome', 'to', 'Beijing']
    """

    def __init__(self, tokenizer: Callable[[str], Any]) -> None:
        if not callable(tokenizer):
            raise checks.fail_type("PythonTokenizer", "tokenizer must be a function", tokenizer, "tokenizer=str.split")
        self.tokenizer = tokenizer

    def __call__(self, value: Any) -> np.ndarray:
        return np.array(self.tokenizer(read_string("PythonTokenizer", value)), np.str_)
