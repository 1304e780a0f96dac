"""Softmax cross entropy by TensorFlow's fused kernels, which compute the gradient in the forward pass."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropy of class numbers.

    Args:
        labels: Class numbers (...), int32 or int64.
        logits: Scores (..., C), float32.

    Returns:
        Losses (...), float32. A label outside [0, C) is an error on CPU; where a kernel cannot raise one (XLA, GPU)
        its loss is NaN.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropy of class probabilities.

    Args:
        labels: Probabilities (..., C), float32; each row sums to 1, which the gradient relies on.
        logits: Scores (..., C), float32.

    Returns:
        Losses (...), float32.
    """
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
