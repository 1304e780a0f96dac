"""Lookup of metrics by name, as MindSpore's scripts do it."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.metrics.factory import metrics_by_name


def names() -> list[str]:
    """Return the sorted names that `get_metric_fn` accepts.

    Example:
        >>> names()[:4]
        ['F1', 'acc', 'accuracy', 'auc']
    """
    return sorted(metrics_by_name())


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """Create a metric by name; "auc" calls the function.

    Args:
        name: One of `names`.
        *args: Positional arguments of its class.
        **kwargs: Keyword arguments of its class.

    Example:
        >>> type(get_metric_fn("topk", 3)).__name__
        'TopKCategoricalAccuracy'
    """
    checks.one_of("get_metric_fn", "name", name, names())
    return metrics_by_name()[name](*args, **kwargs)
