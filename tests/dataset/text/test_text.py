"""Transforms of text give what MindSpore 2.10 gave for the same strings (recorded from it)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset, text

WORDS = "the cat sat on the mat the cat b b a".split()
PUNCTUATED = "can't stop, e.g. 3.14 #x @y"

TOKENS: list[tuple[Any, str, list[str]]] = [
    (text.WhitespaceTokenizer(), "  a  b\tc\n", ["a", "b", "c"]),
    (text.WhitespaceTokenizer(), "", [""]),
    (text.BasicTokenizer(), "北京欢迎您！", ["北", "京", "欢", "迎", "您", "！"]),
    (text.BasicTokenizer(), "我喜欢China!", ["我", "喜", "欢", "China", "!"]),
    (text.BasicTokenizer(), "Hello [UNK] x[CLS]", ["Hello", "[UNK]", "x", "[CLS]"]),
    (
        text.BasicTokenizer(), PUNCTUATED,
        ["can", "'", "t", "stop", ",", "e", ".", "g", ".", "3", ".", "14", "#", "x", "@", "y"],
    ),
    (text.BasicTokenizer(lower_case=True), "Ünïcode Ａé", ["unicode", "ae"]),
    (text.BasicTokenizer(keep_whitespace=True), "  a  b\tc\n", ["  ", "a", "  ", "b", " ", "c", " "]),
    (text.BasicTokenizer(preserve_unused_token=False), "x[CLS]", ["x", "[", "CLS", "]"]),
    (text.BasicTokenizer(normalization_form=text.NormalizeForm.NFKC), "Ａé！", ["Aé", "!"]),
    (text.UnicodeCharTokenizer(), "to 北", ["t", "o", " ", "北"]),
    (text.RegexTokenizer(r"\s+"), PUNCTUATED, ["can't", "stop,", "e.g.", "3.14", "#x", "@y"]),
    (
        text.RegexTokenizer(r"\s+|[,!]", keep_delim_pattern=r"[,!]"), PUNCTUATED,
        ["can't", "stop", ",", "e.g.", "3.14", "#x", "@y"],
    ),
    (text.PythonTokenizer(str.split), "Welcome to Beijing", ["Welcome", "to", "Beijing"]),
    (text.PythonTokenizer(str.split), "", []),
]


@pytest.mark.parametrize(("tokenizer", "value", "tokens"), TOKENS)
def test_tokenizers(tokenizer: Callable[[Any], np.ndarray], value: str, tokens: list[str]) -> None:
    result = tokenizer(value)
    assert result.tolist() == tokens and result.dtype.kind == "U"
    assert tokenizer(np.array(value)).tolist() == tokens


def test_offsets_are_bytes_of_utf8() -> None:
    tokens, starts, ends = text.BasicTokenizer(with_offsets=True)("我喜欢China!")
    assert tokens.tolist() == ["我", "喜", "欢", "China", "!"]
    assert starts.tolist() == [0, 3, 6, 9, 14] and ends.tolist() == [3, 6, 9, 14, 15] and starts.dtype == np.uint32
    rows = NumpySlicesDataset(["a b", "c d"], ["t"], shuffle=False)
    cut = rows.map(text.WhitespaceTokenizer(with_offsets=True), ["t"], ["t", "s", "e"])
    assert [[value.tolist() for value in row] for row in cut.create_tuple_iterator(output_numpy=True)] == [
        [["a", "b"], [0, 2], [1, 3]], [["c", "d"], [0, 2], [1, 3]],
    ]


@pytest.mark.parametrize(("transform", "value", "result"), [
    (text.CaseFold(), "Ünïcode Ａé！", "ünïcode aé!"),
    (text.CaseFold(), ["AB", "C"], ["ab", "c"]),
    (text.NormalizeUTF8(), "Ａ！", "A!"),
    (text.NormalizeUTF8(text.NormalizeForm.NFD), "é", "e\u0301"),
    (text.NormalizeUTF8(text.NormalizeForm.NONE), "Ａ", "Ａ"),
    (text.RegexReplace(r"\s+", "_"), "  a  b\tc\n", "_a_b_c_"),
    (text.RegexReplace(r"\s+", "_", replace_all=False), "  a  b\tc\n", "_a  b\tc\n"),
    (text.ToNumber(mixtrain.int32), ["123456", " 12", "1.5"], [123456, 12, 1]),
    (text.ToNumber(mixtrain.float16), ["1.5", "-2", "1e3"], [1.5, -2.0, 1000.0]),
    (text.SlidingWindow(3), ["a", "b", "c", "d"], [["a", "b", "c"], ["b", "c", "d"]]),
    (text.SlidingWindow(5), ["a", "b"], []),
    (text.Truncate(2), [["a", "b", "c"], ["d", "e", "f"]], [["a", "b"], ["d", "e"]]),
    (text.to_bytes, ["a", "é"], [b"a", b"\xc3\xa9"]),
    (text.to_str, [b"a", b"b"], ["a", "b"]),
])
def test_conversions(transform: Callable[[Any], np.ndarray], value: Any, result: Any) -> None:
    assert transform(value).tolist() == result


def test_a_pair_loses_its_longer_end() -> None:
    first, second = text.TruncateSequencePair(5)(np.array([1, 2, 3, 4]), np.array([5, 6, 7]))
    assert first.tolist() == [1, 2, 3] and second.tolist() == [5, 6]


def test_vocabularies(tmp_path: pathlib.Path) -> None:
    vocab = text.Vocab.from_list(["w1", "w2", "w3"], special_tokens=["<unk>"])
    assert vocab.vocab() == {"<unk>": 0, "w1": 1, "w2": 2, "w3": 3}
    assert text.Vocab.from_list(["a"], ["<unk>"], special_first=False).vocab() == {"a": 0, "<unk>": 1}
    assert vocab.tokens_to_ids(["w1", "nope"]) == [1, -1] and vocab.tokens_to_ids("w2") == 2
    assert vocab.ids_to_tokens([1, 9]) == ["w1", ""] and vocab.ids_to_tokens(0) == "<unk>"
    assert text.Vocab.from_dict({"home": 3, "behind": 2}).vocab() == {"home": 3, "behind": 2}
    path = tmp_path / "words.txt"
    path.write_text("a,1\nb,2\n\nc,3\n", encoding="utf-8")
    assert text.Vocab.from_file(str(path), ",").vocab() == {"a": 0, "b": 1, "": 2, "c": 3}
    assert text.Vocab.from_file(str(path), ",", 2, ["<p>"], False).vocab() == {"a": 0, "b": 1, "<p>": 2}


def test_vocabularies_of_datasets() -> None:
    data = NumpySlicesDataset({"t": WORDS, "u": WORDS[::-1]}, shuffle=False)
    assert text.Vocab.from_dataset(data, "t").vocab() == {
        "the": 0, "b": 1, "cat": 2, "a": 3, "mat": 4, "on": 5, "sat": 6,
    }
    assert text.Vocab.from_dataset(data, "t", top_k=3, special_tokens=["<p>", "<u>"]).vocab() == {
        "<p>": 0, "<u>": 1, "the": 2, "b": 3, "cat": 4,
    }
    limited = text.Vocab.from_dataset(data, ["t", "u"], (3, 6), special_tokens=["<p>"], special_first=False)
    assert limited.vocab() == {"the": 0, "b": 1, "cat": 2, "<p>": 3}
    with pytest.raises(TypeError, match="must be a str"):
        text.Vocab.from_dataset(NumpySlicesDataset([1, 2], shuffle=False))


def test_lookup_in_a_pipeline() -> None:
    data = GeneratorDataset(["Welcome to Beijing"], "text").map(text.BasicTokenizer())
    data = data.map(text.Lookup(text.Vocab.from_dataset(data)))
    (row,) = data.create_tuple_iterator(output_numpy=True)
    assert row[0].tolist() == [1, 2, 0] and row[0].dtype == np.int32


def test_lookup_of_unknown_words() -> None:
    vocab = text.Vocab.from_list(["<unk>", "w1", "w2"])
    assert text.Lookup(vocab, "<unk>")(["x", "w2"]).tolist() == [0, 2]
    assert text.Lookup(vocab, data_type=mixtrain.float32)(["w1"]).dtype == np.float32
    with pytest.raises(ValueError, match="Lookup: each word must be in the vocabulary; got 'x'"):
        text.Lookup(vocab)("x")
    with pytest.raises(ValueError, match="unknown_token must be in the vocabulary"):
        text.Lookup(vocab, "zz")


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: text.ToNumber(mixtrain.int8)(["300"]), ValueError, "must be a number of int8; got '300'"),
    (lambda: text.ToNumber(mixtrain.float16)(["70000"]), ValueError, "must be a number of float16"),
    (lambda: text.ToNumber(mixtrain.int32)(["a"]), ValueError, "got 'a'"),
    (lambda: text.ToNumber(mixtrain.bool_), TypeError, "a dtype of numbers"),
    (lambda: text.RegexTokenizer(r"\p{Han}"), ValueError, "regular expression of Python's re"),
    (lambda: text.WhitespaceTokenizer()(3), TypeError, "must be a str"),
    (lambda: text.WhitespaceTokenizer()(["a b", "c"]), ValueError, "must be one str"),
    (lambda: text.Vocab.from_list(["a", "a"]), ValueError, "each word must come once"),
    (lambda: text.Vocab.from_dict({"a": -3}), ValueError, "at least 0"),
    (lambda: text.JiebaTokenizer("a", "b"), NotImplementedError, "Write it in Python"),  # type: ignore[attr-defined]
])
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
