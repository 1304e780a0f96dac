"""`BleuScore`: how much of translations is found in their references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.nn.metrics.metric import Metric, rearrange_inputs


class BleuScore(Metric):
    """The BLEU score: the geometric mean of the shares of known word sequences, less for short translations.

    Args:
        n_gram: The longest sequence of words that is counted, 1 to 4.
        smooth: Whether 1 is added to counts, so that long sequences that are rare weigh less.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `n_gram` is out of range.

    Example:
        >>> score = BleuScore(n_gram=2)([["the", "cat", "sat"]], [[["the", "cat", "sat", "down"]]])
        >>> round(float(score), 4)
        0.7165

    Source: Papineni et al., 2002; MindSpore, `mindspore.train.BleuScore`.
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        self.n_gram = checks.integer("BleuScore", "n_gram", n_gram, at_least=1, example=4)
        if self.n_gram > 4:
            raise checks.fail_value("BleuScore", "n_gram must be at most 4", n_gram, "n_gram=4")
        self.smooth = checks.boolean("BleuScore", "smooth", smooth)
        self.clear()

    def clear(self) -> None:
        """Forget what was gathered."""
        self._numerator = np.zeros(self.n_gram)
        self._denominator = np.zeros(self.n_gram)
        self._length = 0
        self._reference_length = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take in translations.

        Args:
            inputs: A list of translations, each a list of words; and for each a list of references.

        Raises:
            ValueError: There are not two inputs of one length.
        """
        if len(inputs) != 2 or len(inputs[0]) != len(inputs[1]):
            raise checks.fail_value(
                "BleuScore.update", "it takes translations and as many lists of references",
                [len(column) for column in inputs], "update(translations, references)",
            )
        for words, references in zip(*inputs, strict=True):
            self._length += len(words)
            self._reference_length += min((len(reference) for reference in references),
                                          key=lambda length: abs(len(words) - length))
            found = self._sequences(words)
            known: Counter[tuple[Any, ...]] = Counter()
            for reference in references:
                known |= self._sequences(reference)
            for counts, into in ((found & known, self._numerator), (found, self._denominator)):
                for sequence, number in counts.items():
                    into[len(sequence) - 1] += number

    def eval(self) -> Any:
        """Return the score, a float.

        Raises:
            RuntimeError: There was no translation.
        """
        self._mean(0.0, self._length)
        if self._numerator.min() == 0.0:
            return 0.0
        added = 1.0 if self.smooth else 0.0
        precision = (self._numerator + added) / (self._denominator + added)
        enough = self._length > self._reference_length
        penalty = 1.0 if enough else float(np.exp(1.0 - self._reference_length / self._length))
        return penalty * float(np.exp(np.log(precision).mean()))

    def _sequences(self, words: Sequence[Any]) -> Counter[tuple[Any, ...]]:
        sizes = range(1, self.n_gram + 1)
        return Counter(tuple(words[i:i + size]) for size in sizes for i in range(len(words) - size + 1))
