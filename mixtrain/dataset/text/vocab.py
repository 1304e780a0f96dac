"""Vocabularies: a number for each word, made from lists, files or datasets, and the transform that looks words up."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.text.strings import read_strings
from mixtrain.dtype import as_dtype, int32


class Vocab:
    """A number for each word; made by `from_list`, `from_dict`, `from_file` and `from_dataset`.

    Example:
        >>> vocab = Vocab.from_list(["deep", "learning"], special_tokens=["<unk>"])
        >>> vocab.vocab(), vocab.tokens_to_ids(["deep", "other"]), vocab.ids_to_tokens(2)
        ({'<unk>': 0, 'deep': 1, 'learning': 2}, [1, -1], 'learning')

    Source: MindSpore, `mindspore.dataset.text.Vocab`.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    @classmethod
    def from_list(
        cls, word_list: Sequence[str], special_tokens: Sequence[str] | None = None, special_first: bool = True
    ) -> Vocab:
        """Return the vocabulary of words, numbered in their order.

        Args:
            word_list: The words, each once.
            special_tokens: Words such as "<pad>" and "<unk>", which are none of `word_list`.
            special_first: Whether these have the first numbers, or the last.

        Raises:
            TypeError: A word is not a str.
            ValueError: A word comes twice.
        """
        words, special = list(word_list), list(special_tokens or ())
        words = [*special, *words] if special_first else [*words, *special]
        for word, count in collections.Counter(words).items():
            checks.instance("Vocab", "each word", word, str, '["deep", "learning"]')
            if count > 1:
                raise checks.fail_value("Vocab", "each word must come once", word, "the list without it")
        return cls._numbered(zip(words, itertools.count(), strict=False))

    @classmethod
    def from_dict(cls, word_dict: Mapping[str, int]) -> Vocab:
        """Return the vocabulary of a dict from words to numbers.

        Args:
            word_dict: The number of each word, 0 or more.

        Raises:
            TypeError: A word is not a str, or a number not an int.
            ValueError: A number is negative.
        """
        for word, number in word_dict.items():
            checks.instance("Vocab.from_dict", "each word", word, str, '{"deep": 0}')
            checks.integer("Vocab.from_dict", f"the number of {word!r}", number, at_least=0, example=1)
        return cls._numbered(word_dict.items())

    @classmethod
    def from_file(
        cls,
        file_path: str,
        delimiter: str = "",
        vocab_size: int | None = None,
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Return the vocabulary of a file with a word in each line.

        Args:
            file_path: The file, in UTF-8.
            delimiter: Where a word ends, if not at the end of the line.
            vocab_size: How many lines to read; all by default.
            special_tokens: See `from_list`.
            special_first: See `from_list`.

        Raises:
            OSError: The file cannot be read.
            ValueError: A word comes twice.
        """
        if vocab_size is not None:
            checks.integer("Vocab.from_file", "vocab_size", vocab_size, at_least=1, example=1000)
        with open(file_path, encoding="utf-8") as file:
            lines = (line.rstrip("\r\n") for line in itertools.islice(file, vocab_size))
            words = [line.partition(delimiter)[0] if delimiter else line for line in lines]
        return cls.from_list(words, special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls,
        dataset: Dataset,
        columns: str | Sequence[str] | None = None,
        freq_range: tuple[int | None, int | None] | None = None,
        top_k: int | None = None,
        special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Return the vocabulary of a dataset's words, the most frequent first, equally frequent ones in order.

        Args:
            dataset: One epoch of it is read.
            columns: The columns whose strings are the words; all by default.
            freq_range: How often a word comes at least and at most, to be counted; None for no limit.
            top_k: How many of the words to take; all by default.
            special_tokens: See `from_list`.
            special_first: See `from_list`.

        Raises:
            TypeError: A column has no strings.
            ValueError: A column is unknown, or a limit out of range.
        """
        names = dataset.get_col_names() if columns is None else [columns] if isinstance(columns, str) else columns
        least, most = freq_range or (None, None)
        if top_k is not None:
            checks.integer("Vocab.from_dataset", "top_k", top_k, at_least=1, example=1000)
        counts: collections.Counter[str] = collections.Counter()
        for row in dataset.project(list(names)).create_tuple_iterator(num_epochs=1, output_numpy=True):
            for value in row:
                counts.update(read_strings("Vocab.from_dataset", value).ravel().tolist())
        found = [
            word for word, count in counts.items()
            if (least is None or count >= least) and (most is None or count <= most)
        ]
        return cls.from_list(
            sorted(found, key=lambda word: (-counts[word], word))[:top_k], special_tokens, special_first
        )

    @classmethod
    def _numbered(cls, pairs: Iterable[tuple[str, int]]) -> Vocab:
        vocab = cls()
        vocab._ids = dict(pairs)
        return vocab

    def vocab(self) -> dict[str, int]:
        """Return the number of each word."""
        return dict(self._ids)

    def tokens_to_ids(self, tokens: str | Sequence[str] | np.ndarray) -> int | list[int]:
        """Return the number of a word, or a list of several; -1 for a word that is not there.

        Args:
            tokens: The word or words.
        """
        found = [self._ids.get(word, -1) for word in read_strings("Vocab.tokens_to_ids", tokens).ravel().tolist()]
        return found[0] if len(found) == 1 else found

    def ids_to_tokens(self, ids: int | Sequence[int] | np.ndarray) -> str | list[str]:
        """Return the word of a number, or a list of several; an empty one for a number that is not there.

        Args:
            ids: The number or numbers, 0 or more.

        Raises:
            TypeError: One is not an int.
            ValueError: One is negative.
        """
        words = {number: word for word, number in self._ids.items()}
        numbers = np.asarray(ids).ravel().tolist()
        for number in numbers:
            checks.integer("Vocab.ids_to_tokens", "each number", number, at_least=0, example=1)
        found = [words.get(number, "") for number in numbers]
        return found[0] if len(found) == 1 else found


class Lookup:
    """Words as their numbers in a vocabulary.

    Args:
        vocab: The vocabulary.
        unknown_token: The word of the vocabulary whose number others get; None: others are an error.
        data_type: The dtype of the numbers.

    Raises:
        TypeError: `vocab` is not a Vocab; on use, the value has no strings.
        ValueError: `unknown_token` is not in the vocabulary; on use, a word is not.

    Example:
        >>> Lookup(Vocab.from_list(["<unk>", "deep"]), "<unk>")(["deep", "blue"]).tolist()
        [1, 0]

    Source: MindSpore, `mindspore.dataset.text.Lookup`.
    """

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: Any = int32) -> None:
        self._ids = checks.instance("Lookup", "vocab", vocab, Vocab, "Vocab.from_list([...])").vocab()
        self._unknown = None
        if unknown_token is not None:
            self._unknown = self._ids.get(unknown_token)
            if self._unknown is None:
                raise checks.fail_value(
                    "Lookup", "unknown_token must be in the vocabulary", unknown_token,
                    f"Vocab.from_list(..., special_tokens=[{unknown_token!r}])",
                )
        self.data_type = as_dtype(data_type)

    def __call__(self, value: Any) -> np.ndarray:
        """Return the numbers, in the shape of the words."""
        words = read_strings("Lookup", value)
        numbers = [self._ids.get(word, self._unknown) for word in words.ravel().tolist()]
        if None in numbers:
            raise checks.fail_value(
                "Lookup", "each word must be in the vocabulary", words.ravel().tolist()[numbers.index(None)],
                'Lookup(vocab, unknown_token="<unk>")',
            )
        return np.array(numbers, np.dtype(self.data_type)).reshape(words.shape)
