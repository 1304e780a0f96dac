"""`Gradient`: the call that MindSpore train cells make."""

from __future__ import annotations

import numpy as np

import mixtrain
from mixtrain import engine, nn
from mixtrain.nn.step.gradient import Gradient


def test_gradients_are_taken_from_the_start_value_and_come_in_the_order_of_the_weights() -> None:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    x, start = mixtrain.Tensor([[3.0, 4.0]]), mixtrain.Tensor([[2.0]])
    weight, bias = Gradient()(net, [net.weight, net.bias])(x, start)
    assert engine.to_numpy(weight).tolist() == [[6.0, 8.0]]
    assert engine.to_numpy(bias).tolist() == [2.0]


def test_a_weight_that_the_output_does_not_use_has_a_gradient_of_zeros() -> None:
    net, other = nn.Dense(2, 1), mixtrain.Parameter(np.ones(3, np.float32))
    gradients = Gradient()(net, [net.weight, other])(mixtrain.Tensor([[1.0, 1.0]]), mixtrain.Tensor([[1.0]]))
    assert engine.to_numpy(gradients[1]).tolist() == [0.0, 0.0, 0.0]


def test_a_half_network_is_differentiated_from_a_float32_start() -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False).to_float(mixtrain.float16)
    (gradient,) = Gradient()(net, [net.weight])(mixtrain.Tensor([[0.5]]), mixtrain.Tensor([[1024.0]]))
    assert (gradient.dtype.name, float(gradient[0, 0])) == ("float32", 512.0)
