"""Ratios of the entries of a binary confusion matrix, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mixtrain import checks


@dataclasses.dataclass(frozen=True)
class Counts:
    """Entries of a binary confusion matrix, as arrays of one shape.

    Attributes:
        tp: True positives.
        fp: False positives.
        tn: True negatives.
        fn: False negatives.
    """

    tp: np.ndarray
    fp: np.ndarray
    tn: np.ndarray
    fn: np.ndarray

    @property
    def p(self) -> np.ndarray:
        """Positive labels."""
        return self.tp + self.fn

    @property
    def n(self) -> np.ndarray:
        """Negative labels."""
        return self.fp + self.tn

    @property
    def tpr(self) -> np.ndarray:
        """The true positive rate."""
        return quotient(self.tp, self.p)

    @property
    def tnr(self) -> np.ndarray:
        """The true negative rate."""
        return quotient(self.tn, self.n)

    @property
    def ppv(self) -> np.ndarray:
        """The positive predictive value."""
        return quotient(self.tp, self.tp + self.fp)

    @property
    def npv(self) -> np.ndarray:
        """The negative predictive value."""
        return quotient(self.tn, self.tn + self.fn)


def quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide; NaN where the denominator is 0."""
    nonzero = np.asarray(denominator) != 0
    return np.divide(numerator, denominator, out=np.full(np.shape(numerator), np.nan), where=nonzero)


_RATIOS: Final[dict[str, Callable[[Counts], np.ndarray]]] = {
    "tpr": lambda c: c.tpr,
    "tnr": lambda c: c.tnr,
    "ppv": lambda c: c.ppv,
    "npv": lambda c: c.npv,
    "fnr": lambda c: quotient(c.fn, c.p),
    "fpr": lambda c: quotient(c.fp, c.n),
    "fdr": lambda c: quotient(c.fp, c.fp + c.tp),
    "for": lambda c: quotient(c.fn, c.fn + c.tn),
    "pt": lambda c: quotient(np.sqrt(c.tpr * (1.0 - c.tnr)) + c.tnr - 1.0, c.tpr + c.tnr - 1.0),
    "ts": lambda c: quotient(c.tp, c.tp + c.fn + c.fp),
    "acc": lambda c: quotient(c.tp + c.tn, c.p + c.n),
    "ba": lambda c: (c.tpr + c.tnr) / 2.0,
    "f1": lambda c: quotient(2.0 * c.tp, 2.0 * c.tp + c.fn + c.fp),
    "mcc": lambda c: quotient(c.tp * c.tn - c.fp * c.fn, np.sqrt((c.tp + c.fp) * c.p * c.n * (c.tn + c.fn))),
    "fm": lambda c: np.sqrt(c.ppv * c.tpr),
    "bm": lambda c: c.tpr + c.tnr - 1.0,
    "mk": lambda c: c.ppv + c.npv - 1.0,
}
_LONG_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "tpr": ("sensitivity", "recall", "hit_rate", "true_positive_rate"),
    "tnr": ("specificity", "selectivity", "true_negative_rate"),
    "ppv": ("precision", "positive_predictive_value"),
    "npv": ("negative_predictive_value",),
    "fnr": ("miss_rate", "false_negative_rate"),
    "fpr": ("fall_out", "false_positive_rate"),
    "fdr": ("false_discovery_rate",),
    "for": ("false_omission_rate",),
    "pt": ("prevalence_threshold",),
    "ts": ("threat_score", "critical_success_index", "csi"),
    "acc": ("accuracy",),
    "ba": ("balanced_accuracy",),
    "f1": ("f1_score",),
    "mcc": ("matthews_correlation_coefficient",),
    "fm": ("fowlkes_mallows_index",),
    "bm": ("informedness", "bookmaker_informedness"),
    "mk": ("markedness", "deltap"),
}
_SHORT_NAMES: Final = {name: short for short, names in _LONG_NAMES.items() for name in (short, *names)}


def ratio_by_name(where: str, name: Any) -> Callable[[Counts], np.ndarray]:
    """Return the function of a ratio by its short or long name, ignoring case and treating spaces as underscores."""
    checks.instance(where, "metric_name", name, str, 'metric_name="sensitivity"')
    name = name.replace(" ", "_").lower()
    return _RATIOS[_SHORT_NAMES[checks.one_of(where, "metric_name", name, tuple(_SHORT_NAMES))]]
