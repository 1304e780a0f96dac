"""Tokenizers: a text as an array of its parts, and where each begins and ends."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.text.convert import NormalizeForm, case_folded, normalized
from mixtrain.dataset.text.strings import read_pattern, read_string

# A part of a text: from which character to which.
Span = tuple[int, int]

_CHINESE: Final = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_KEPT_WORDS: Final = re.compile(r"\[(?:CLS|SEP|UNK|PAD|MASK|unused\d+)\]")


class _Tokenizer:
    """The base: a subclass says which spans of a text are its tokens."""

    def __init__(self, with_offsets: bool = False) -> None:
        self.with_offsets = checks.boolean(type(self).__name__, "with_offsets", with_offsets)

    def prepare(self, text: str) -> str:
        """Return the text that is cut into tokens."""
        return text

    def spans(self, text: str) -> Iterable[Span]:
        """Return where the tokens of a text are."""
        raise NotImplementedError

    def __call__(self, value: Any) -> Any:
        """Return the tokens of one text; with offsets, a tuple of tokens, begins and ends, in bytes of UTF-8."""
        text = self.prepare(read_string(type(self).__name__, value))
        spans = [span for span in self.spans(text) if span[0] < span[1]] or [(0, 0)]
        tokens = np.array([text[start:end] for start, end in spans], np.str_)
        if not self.with_offsets:
            return tokens
        sizes = np.cumsum([0, *(len(letter.encode()) for letter in text)]).astype(np.uint32)
        starts, ends = np.array(spans).T
        return tokens, sizes[starts], sizes[ends]


class WhitespaceTokenizer(_Tokenizer):
    """The parts of a text between white space.

    Args:
        with_offsets: Whether to return the tokens' begins and ends as well, in bytes.

    Returns:
        An array of strings; with offsets, a tuple of it and two uint32 arrays. An empty text has one empty token.

    Raises:
        TypeError: `with_offsets` is not a bool; on use, the value is not a str.

    Example:
        >>> WhitespaceTokenizer()("Welcome to  Beijing").tolist()
        ['Welcome', 'to', 'Beijing']

    Source: MindSpore, `mindspore.dataset.text.WhitespaceTokenizer`.
    """

    def spans(self, text: str) -> Iterable[Span]:
        """Return where the tokens of a text are."""
        return (match.span() for match in re.finditer(r"\S+", text))


class UnicodeCharTokenizer(_Tokenizer):
    """The characters of a text.

    Args:
        with_offsets: Whether to return the tokens' begins and ends as well, in bytes.

    Returns:
        An array of strings; with offsets, a tuple of it and two uint32 arrays.

    Raises:
        TypeError: `with_offsets` is not a bool; on use, the value is not a str.

    Example:
        >>> UnicodeCharTokenizer()("to go").tolist()
        ['t', 'o', ' ', 'g', 'o']

    Source: MindSpore, `mindspore.dataset.text.UnicodeCharTokenizer`.
    """

    def spans(self, text: str) -> Iterable[Span]:
        """Return where the tokens of a text are."""
        return ((place, place + 1) for place in range(len(text)))


class RegexTokenizer(_Tokenizer):
    r"""The parts of a text between the matches of a regular expression, in the syntax of Python's `re`.

    Args:
        delim_pattern: What parts the tokens.
        keep_delim_pattern: Of these matches, which are tokens themselves; none where it is empty.
        with_offsets: Whether to return the tokens' begins and ends as well, in bytes.

    Returns:
        An array of strings; with offsets, a tuple of it and two uint32 arrays.

    Raises:
        TypeError: A pattern is not a str, `with_offsets` not a bool; on use, the value is not a str.
        ValueError: A pattern is no regular expression of Python's.

    Example:
        >>> RegexTokenizer(r"\s+|,", keep_delim_pattern=",")("one, two").tolist()
        ['one', ',', 'two']

    Source: MindSpore, `mindspore.dataset.text.RegexTokenizer`.
    """

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        self._delimiter = read_pattern("RegexTokenizer", "delim_pattern", delim_pattern)
        self._keep = read_pattern("RegexTokenizer", "keep_delim_pattern", keep_delim_pattern)

    def spans(self, text: str) -> Iterable[Span]:
        """Return where the tokens of a text are."""
        end = 0
        for match in self._delimiter.finditer(text):
            yield end, match.start()
            end = match.end()
            if self._keep.fullmatch(match.group()):
                yield match.span()
        yield end, len(text)


class BasicTokenizer(_Tokenizer):
    """Words, marks of punctuation and Chinese characters, each a token; what BERT's tokenizer does first.

    Args:
        lower_case: Whether to fold case and to leave out accents.
        keep_whitespace: Whether white space is a token too.
        normalization_form: How characters are normalized before, where `lower_case` is False.
        preserve_unused_token: Whether words such as "[CLS]" and "[UNK]" stay as they are.
        with_offsets: Whether to return the tokens' begins and ends as well, in bytes of the text as it is cut.

    Returns:
        An array of strings; with offsets, a tuple of it and two uint32 arrays.

    Raises:
        TypeError: An argument has the wrong type; on use, the value is not a str.

    Example:
        >>> BasicTokenizer()("Hello, [UNK] world!").tolist()
        ['Hello', ',', '[UNK]', 'world', '!']

    Source: MindSpore, `mindspore.dataset.text.BasicTokenizer`.
    """

    def __init__(
        self,
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
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
        """Return the text that is cut into tokens."""
        if not self.preserve_unused_token:
            return self._cleaned(text)
        parts, end = [], 0
        for match in _KEPT_WORDS.finditer(text):
            parts += [self._cleaned(text[end : match.start()]), match.group()]
            end = match.end()
        return "".join([*parts, self._cleaned(text[end:])])

    def _cleaned(self, text: str) -> str:
        if self.lower_case:
            letters = unicodedata.normalize("NFD", case_folded(text))
            text = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
        else:
            text = normalized(text, self.normalization_form)
        return "".join(" " if unicodedata.category(letter) in ("Cc", "Cf") else letter for letter in text)

    def spans(self, text: str) -> Iterable[Span]:
        """Return where the tokens of a text are."""
        end = 0
        for match in _KEPT_WORDS.finditer(text) if self.preserve_unused_token else ():
            yield from self._words(text, end, match.start())
            yield match.span()
            end = match.end()
        yield from self._words(text, end, len(text))

    def _words(self, text: str, begin: int, end: int) -> Iterable[Span]:
        start = begin
        while start < end:
            stop, kind = start + 1, _kind(text[start])
            while kind != "mark" and stop < end and _kind(text[stop]) == kind:
                stop += 1
            if kind != "space" or self.keep_whitespace:
                yield start, stop
            start = stop


def _kind(letter: str) -> str:
    """Return whether a character is white space, stands alone or belongs to a word."""
    if letter.isspace():
        return "space"
    alone = (letter.isascii() and letter.isprintable() and not letter.isalnum()) or re.match(f"[{_CHINESE}]", letter)
    return "mark" if alone or unicodedata.category(letter).startswith("P") else "word"


class PythonTokenizer:
    """A tokenizer that is a function of yours.

    Args:
        tokenizer: Takes a str, returns a list of str.

    Raises:
        TypeError: `tokenizer` cannot be called; on use, the value is not a str.

    Example:
        >>> PythonTokenizer(str.split)("Welcome to Beijing").tolist()
        ['Welcome', 'to', 'Beijing']

    Source: MindSpore, `mindspore.dataset.text.PythonTokenizer`.
    """

    def __init__(self, tokenizer: Callable[[str], Any]) -> None:
        if not callable(tokenizer):
            raise checks.fail_type("PythonTokenizer", "tokenizer must be a function", tokenizer, "tokenizer=str.split")
        self.tokenizer = tokenizer

    def __call__(self, value: Any) -> np.ndarray:
        """Return the tokens of one text."""
        return np.array(self.tokenizer(read_string("PythonTokenizer", value)), np.str_)
