"""`BleuScore`: the BLEU score of translations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import rearrange_inputs
from mixtrain.nn.metrics.host_metric import HostMetric


class BleuScore(HostMetric):
    """The BLEU score: the geometric mean of the precisions of 1- to `n_gram`-grams (1 to 4), times a brevity penalty.

    Args: smooth: Whether to add 1 to the counts.

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
        self._numerator = np.zeros(self.n_gram)
        self._denominator = np.zeros(self.n_gram)
        self._length = 0
        self._reference_length = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Update the metric with translations.

        Args: inputs: A list of translations, each a list of words, and a list of references for each translation.
        """
        if len(inputs) != 2 or len(inputs[0]) != len(inputs[1]):
            raise checks.fail_value(
                "BleuScore.update", "it takes translations and as many lists of references",
                [len(column) for column in inputs], "update(translations, references)",
            )
        for words, references in zip(*inputs, strict=True):
            self._length += len(words)
            self._reference_length += min(
                (len(reference) for reference in references), key=lambda length: abs(len(words) - length)
            )
            ngrams = self._ngrams(words)
            reference_ngrams: Counter[tuple[Any, ...]] = Counter()
            for reference in references:
                reference_ngrams |= self._ngrams(reference)
            for counts, totals in ((ngrams & reference_ngrams, self._numerator), (ngrams, self._denominator)):
                for ngram, count in counts.items():
                    totals[len(ngram) - 1] += count

    def eval(self) -> float:
        """Compute the score, a float."""
        self._check_updated(self._length)
        if self._numerator.min() == 0.0:
            return 0.0
        smoothing = 1.0 if self.smooth else 0.0
        precision = (self._numerator + smoothing) / (self._denominator + smoothing)
        brevity_penalty = 1.0
        if self._length <= self._reference_length:
            brevity_penalty = float(np.exp(1.0 - self._reference_length / self._length))
        return brevity_penalty * float(np.exp(np.log(precision).mean()))

    def _ngrams(self, words: Sequence[Any]) -> Counter[tuple[Any, ...]]:
        sizes = range(1, self.n_gram + 1)
        return Counter(tuple(words[i:i + size]) for size in sizes for i in range(len(words) - size + 1))
