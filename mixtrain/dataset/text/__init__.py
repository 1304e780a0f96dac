"""Transforms of columns of text, with MindSpore's names: tokenizers, vocabularies and conversions."""

from mixtrain.dataset.text.convert import (
    CaseFold, NormalizeForm, NormalizeUTF8, RegexReplace, SlidingWindow, ToNumber, Truncate, TruncateSequencePair,
    to_bytes, to_str,
)
from mixtrain.dataset.text.tokenizers import (
    BasicTokenizer, PythonTokenizer, RegexTokenizer, UnicodeCharTokenizer, WhitespaceTokenizer,
)
from mixtrain.dataset.text.vocab import Lookup, Vocab
from mixtrain.lazy_names import serve_names

__all__ = [
    "BasicTokenizer", "CaseFold", "Lookup", "NormalizeForm", "NormalizeUTF8", "PythonTokenizer", "RegexReplace",
    "RegexTokenizer", "SlidingWindow", "ToNumber", "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer", "Vocab",
    "WhitespaceTokenizer", "to_bytes", "to_str",
]


serve_names(__name__)
