"""`Gradient`: the gradient function of train cells, called as ``self.grad(network, weights)(*inputs, sens)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import engine
from mixtrain.dtype import float32


class Gradient:
    """Takes gradients of a network by a list of weights, from a start value.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
        >>> x, start = mixtrain.Tensor([[3.0, 4.0]]), mixtrain.Tensor([[1.0]])
        >>> Gradient()(net, net.trainable_params())(x, start)[0].numpy().tolist()
        [[3.0, 4.0]]

    Source: MindSpore, `mindspore.ops.GradOperation` with ``get_by_list=True, sens_param=True``.
    """

    def __call__(self, network: Callable[..., Any], weights: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        """Return ``gradients(*inputs, sens)``; `sens` has the shape of the network's output and multiplies it."""

        def gradients(*inputs: Any) -> tuple[Any, ...]:
            *columns, sens = inputs

            def forward() -> tuple[Any, tuple[()]]:
                output = keras.ops.cast(network(*columns), float32)
                return output * keras.ops.cast(sens, float32), ()

            found = engine.value_and_gradient(forward, weights)[2]
            return tuple(
                keras.ops.zeros(tuple(weight.shape), weight.dtype) if gradient is None else gradient
                for weight, gradient in zip(weights, found, strict=True)
            )

        return gradients
