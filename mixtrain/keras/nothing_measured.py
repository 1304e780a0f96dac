"""Keep Keras's callbacks from taking the nan of an epoch that measured nothing for the best value of a run."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import keras

from mixtrain.network.interpose import Forward


def with_bests_checked(original: Forward, nothing_measured: Callable[[], bool]) -> Forward:
    """Return a model's `fit`, which adds a `ForgetNan` to its callbacks."""

    @functools.wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(original).bind(*args, **kwargs)
        callbacks = call.arguments.get("callbacks")
        if isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks = callbacks.callbacks  # The list itself is Keras's to run, and the user's.
            if not any(isinstance(callback, ForgetNan) for callback in callbacks):
                callbacks.append(ForgetNan(callbacks, nothing_measured))
        elif callbacks:
            users = keras.tree.flatten(callbacks)
            call.arguments["callbacks"] = [*users, ForgetNan(users, nothing_measured)]
        return original(*call.args, **call.kwargs)

    return fit


class ForgetNan(keras.callbacks.Callback):
    """Lets callbacks begin anew whose best value is nan, after an epoch that measured nothing.

    Keras (3.15) takes the first value of a metric for the best so far. Nothing compares better than nan, so the weights
    of that epoch would be kept as the best of the run. (The worst value of a metric is reported where its direction is
    known, see `worst_like`.)

    `callbacks`: The callbacks, which run before this one. `nothing_measured`: Whether the last epoch had no applied
    step.
    """

    def __init__(self, callbacks: Iterable[keras.callbacks.Callback], nothing_measured: Callable[[], bool]) -> None:
        super().__init__()
        self._callbacks = callbacks
        self._nothing_measured = nothing_measured

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Set best values that are nan to None."""
        for callback in self._callbacks if self._nothing_measured() else ():
            best = getattr(callback, "best", None)
            if isinstance(best, float) and math.isnan(best):
                callback.best = None
