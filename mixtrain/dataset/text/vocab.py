"""Vocabularies, which map words to ids, from lists, files or datasets; and the transform that looks words up."""

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
from mixtrain.typing import DTypeLike


class Vocab:
    """A mapping from words to ids; created by `from_list`, `from_dict`, `from_file` and `from_dataset`.

    Example:
        >>> vocab = Vocab.from_list(["deep", "learning"], special_tokens=["<unk>"])
        >>> vocab.vocab(), vocab.tokens_to_ids(["deep", "other"]), vocab.ids_to_tokens(2)
        ({'<unk>': 0, 'deep': 1, 'learning': 2}, [1, -1], 'learning')
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    @classmethod
    def from_list(
        cls, word_list: Sequence[str], special_tokens: Sequence[str] | None = None, special_first: bool = True
    ) -> Vocab:
        """Return the vocabulary of words, numbered in order.

        Args:
            word_list: The words, without duplicates.
            special_tokens: Words such as "<pad>" and "<unk>", which must not be in `word_list`.
            special_first: Whether the special tokens have the first ids, or the last.
        """
        words, special = list(word_list), list(special_tokens or ())
        words = [*special, *words] if special_first else [*words, *special]
        for word, count in collections.Counter(words).items():
            checks.instance("Vocab", "each word", word, str, '["deep", "learning"]')
            if count > 1:
                raise checks.fail_value("Vocab", "each word must come once", word, "the list without it")
        return cls._from_pairs(zip(words, itertools.count(), strict=False))

    @classmethod
    def from_dict(cls, word_dict: Mapping[str, int]) -> Vocab:
        """Return the vocabulary of a dict from words to ids. `word_dict`: the id of each word, 0 or more."""
        for word, number in word_dict.items():
            checks.instance("Vocab.from_dict", "each word", word, str, '{"deep": 0}')
            checks.integer("Vocab.from_dict", f"the number of {word!r}", number, at_least=0, example=1)
        return cls._from_pairs(word_dict.items())

    @classmethod
    def from_file(
        cls, file_path: str, delimiter: str = "", vocab_size: int | None = None,
        special_tokens: Sequence[str] | None = None, special_first: bool = True,
    ) -> Vocab:
        """Return the vocabulary of a file with a word in each line.

        Args:
            special_tokens, special_first: See `from_list`.
            file_path: The file, in UTF-8.
            delimiter: The string after a word; by default a word is a whole line.
            vocab_size: Maximum number of lines to read; all by default.
        """
        if vocab_size is not None:
            checks.integer("Vocab.from_file", "vocab_size", vocab_size, at_least=1, example=1000)
        with open(file_path, encoding="utf-8") as file:
            lines = (line.rstrip("\r\n") for line in itertools.islice(file, vocab_size))
            words = [line.partition(delimiter)[0] if delimiter else line for line in lines]
        return cls.from_list(words, special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, columns: str | Sequence[str] | None = None,
        freq_range: tuple[int | None, int | None] | None = None, top_k: int | None = None,
        special_tokens: Sequence[str] | None = None, special_first: bool = True,
    ) -> Vocab:
        """Return the vocabulary of a dataset's words, by descending frequency, then alphabetically.

        Args:
            special_tokens, special_first: See `from_list`.
            dataset: The dataset, of which one epoch is read.
            columns: The columns of words; all by default.
            freq_range: Minimum and maximum frequency of a word; None for no limit.
            top_k: Maximum number of words; all by default.
        """
        names = dataset.get_col_names() if columns is None else [columns] if isinstance(columns, str) else columns
        minimum, maximum = freq_range or (None, None)
        if top_k is not None:
            checks.integer("Vocab.from_dataset", "top_k", top_k, at_least=1, example=1000)
        counts: collections.Counter[str] = collections.Counter()
        for row in dataset.project(list(names)).create_tuple_iterator(num_epochs=1, output_numpy=True):
            for value in row:
                counts.update(read_strings("Vocab.from_dataset", value).ravel().tolist())
        words = [
            word for word, count in counts.items()
            if (minimum is None or count >= minimum) and (maximum is None or count <= maximum)
        ]
        words.sort(key=lambda word: (-counts[word], word))
        return cls.from_list(words[:top_k], special_tokens, special_first)

    @classmethod
    def _from_pairs(cls, pairs: Iterable[tuple[str, int]]) -> Vocab:
        vocab = cls()
        vocab._ids = dict(pairs)
        return vocab

    def vocab(self) -> dict[str, int]:
        """Return the dict from words to ids."""
        return dict(self._ids)

    def tokens_to_ids(self, tokens: str | Sequence[str] | np.ndarray) -> int | list[int]:
        """Return the id of a word, or a list for several; -1 for a word that is not in the vocabulary.

        Args: tokens: The word or words.
        """
        ids = [self._ids.get(word, -1) for word in read_strings("Vocab.tokens_to_ids", tokens).ravel().tolist()]
        return ids[0] if len(ids) == 1 else ids

    def ids_to_tokens(self, ids: int | Sequence[int] | np.ndarray) -> str | list[str]:
        """Return the word with an id, or a list for several; an empty string for an id that is not in the vocabulary.

        Args: ids: The id or ids, 0 or more.
        """
        words = {number: word for word, number in self._ids.items()}
        numbers = np.asarray(ids).ravel().tolist()
        for number in numbers:
            checks.integer("Vocab.ids_to_tokens", "each number", number, at_least=0, example=1)
        tokens = [words.get(number, "") for number in numbers]
        return tokens[0] if len(tokens) == 1 else tokens


class Lookup:
    """The ids, of dtype `data_type`, of words in the vocabulary `vocab`.

    Args: unknown_token: The word whose id is used for unknown words; None: an unknown word is an error.

    Example:
        >>> Lookup(Vocab.from_list(["<unk>", "deep"]), "<unk>")(["deep", "blue"]).tolist()
        [1, 0]
    """

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: DTypeLike = int32) -> None:
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
        words = read_strings("Lookup", value)
        ids = [self._ids.get(word, self._unknown) for word in words.ravel().tolist()]
        if None in ids:
            raise checks.fail_value(
                "Lookup", "each word must be in the vocabulary", words.ravel().tolist()[ids.index(None)],
                'Lookup(vocab, unknown_token="<unk>")',
            )
        return np.array(ids, np.dtype(self.data_type)).reshape(words.shape)
