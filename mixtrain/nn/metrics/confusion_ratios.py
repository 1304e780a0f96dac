"""The ratios that are read off counts of true and false, positive and negative predictions, by their many names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mixtrain import checks


@dataclasses.dataclass(frozen=True)
class Counts:
    """Counts of predictions: true and false positives, true and false negatives; arrays of one shape.

    Attributes:
        tp: Predicted and there.
        fp: Predicted, not there.
        tn: Not predicted, not there.
        fn: Not predicted, but there.
    """

    tp: np.ndarray
    fp: np.ndarray
    tn: np.ndarray
    fn: np.ndarray

    @property
    def p(self) -> np.ndarray:
        """What is there."""
        return self.tp + self.fn

    @property
    def n(self) -> np.ndarray:
        """What is not."""
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
    """Return the quotient; NaN where the denominator is 0."""
    known = np.asarray(denominator) != 0
    return np.divide(numerator, denominator, out=np.full(np.shape(numerator), np.nan), where=known)


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
    "mcc": lambda c: quotient(
        c.tp * c.tn - c.fp * c.fn, np.sqrt((c.tp + c.fp) * c.p * c.n * (c.tn + c.fn))
    ),
    "fm": lambda c: np.sqrt(c.ppv * c.tpr),
    "bm": lambda c: c.tpr + c.tnr - 1.0,
    "mk": lambda c: c.ppv + c.npv - 1.0,
}
_NAMES: Final[dict[str, tuple[str, ...]]] = {
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
_SHORT: Final = {name: short for short, names in _NAMES.items() for name in (short, *names)}


def ratio_by_name(where: str, name: Any) -> Callable[[Counts], np.ndarray]:
    """Return the function that a ratio's name stands for; case and spaces do not matter.

    Raises:
        TypeError: `name` is no str.
        ValueError: No ratio has this name; the error offers the nearest one.
    """
    checks.instance(where, "metric_name", name, str, 'metric_name="sensitivity"')
    return _RATIOS[_SHORT[checks.one_of(where, "metric_name", name.replace(" ", "_").lower(), tuple(_SHORT))]]
