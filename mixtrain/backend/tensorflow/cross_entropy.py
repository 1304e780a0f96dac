"""Softmax cross entropy by TensorFlow's fused kernels, which compute the gradient in the forward pass."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
