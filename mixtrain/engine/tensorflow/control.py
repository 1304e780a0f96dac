"""A branch inside a compiled function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def cond(
    predicate: Any, on_true: Callable[[], Any], on_false: Callable[[], Any], *, writes: Sequence[Any] = ()
) -> None:
    """Run one of two functions for what they write; neither's result is used.

    Args:
        predicate: A scalar bool tensor.
        on_true: Run where `predicate` holds.
        on_false: Run where it does not.
        writes: The variables that either function may assign. (An engine without variables in its graphs needs them
            named; this one does not.)
    """
    del writes

    def effect(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            function()
            return tf.constant(0)

        return run

    tf.cond(predicate, effect(on_true), effect(on_false))
