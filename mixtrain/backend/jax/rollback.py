"""Undo the variable writes of a step's forward pass where the step is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras

from mixtrain.backend.jax.live_values import is_live
from mixtrain.backend.jax.state import StateScope, current, put, tracing
from mixtrain.backend.jax.tensor import snapshot
from mixtrain.typing import Tensor


class Rollback:
    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely

    def run(self, function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        if not tracing():
            saved = [(variable, snapshot(variable)) for variable in self._likely()]
            return function(), lambda: _assign(saved)
        with StateScope() as scope:
            result = function()
        written = list(scope.written.values())
        saved = [(variable, current(variable)) for variable in written if not is_live(variable)]
        for variable in written:
            put(variable, scope.state_mapping[id(variable)])

        def undo() -> None:
            for variable, value in saved:
                put(variable, value)

        return result, undo


def _assign(values: Iterable[tuple[keras.Variable, Tensor]]) -> None:
    for variable, value in values:
        variable.assign(value)
