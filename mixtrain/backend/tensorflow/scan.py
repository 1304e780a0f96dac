"""A loop over the first axis of tensors that returns every state, in eager, graph and XLA alike."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from mixtrain.typing import Tree


def scan(step: Callable[[Tree, Tree], Tree], initial: Tree, elements: Tree) -> Tree:
    # Not keras.ops.scan, whose loop has no maximum number of steps: XLA could not differentiate it.
    return tf.scan(step, elements, initializer=initial)
