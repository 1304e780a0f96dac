"""Bayesian layers sample weights around their means, and their loss adds MindSpore's divergences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn
from mixtrain.nn.probability import bnn_layers

X = Tensor(np.linspace(-1, 1, 50).reshape(2, 1, 5, 5).astype(np.float32))
LABELS = Tensor(np.array([0, 2], np.int32))
# Of MindSpore 2.10 for the network below: divergences by layer, and sums of the magnitudes of gradients of the loss.
DIVERGENCES = [25348.9921875, 93676.8671875, 18087.9375]
GRADIENTS = [189.57, 44.36, 31.46, 6.4, 749.97, 176.32, 51.5, 11.28, 132.29, 29.9, 28.63, 6.33]


class Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = bnn_layers.ConvReparam(1, 2, 3, has_bias=True, pad_mode="valid")
        self.dense = bnn_layers.DenseReparam(18, 4, activation="relu")
        self.local = bnn_layers.DenseLocalReparam(4, 3)
        self.flatten = nn.Flatten()

    def construct(self, x: Any) -> Any:
        return self.local(self.dense(self.flatten(self.conv(x))))


def network(scale: float = -6.0) -> Network:
    """Return a network with given means, and deviations of the softplus of about `scale`."""
    result = Network()
    for number, parameter in enumerate(result.get_parameters()):
        wave = np.sin(np.arange(np.prod(parameter.shape)) + number).reshape(parameter.shape) * 0.1
        parameter.set_data(Tensor((wave + scale * ("untransformed" in parameter.name)).astype(np.float32)))
    return result


def test_parameters_are_named_as_in_mindspore() -> None:
    names = [(parameter.name, parameter.requires_grad) for parameter in Network().get_parameters()][:6]
    kinds = ("mean", "untransformed_std")
    posteriors = [f"conv.{name}_posterior.{kind}" for name in ("weight", "bias") for kind in kinds]
    assert names == [("conv.weight", False), ("conv.bias", False), *((name, True) for name in posteriors)]
    assert "(weight_prior): NormalPrior(" in repr(Network()) and "weight_mean=Parameter (name=" in repr(Network())


@pytest.mark.parametrize("compiled", [False, True])
def test_outputs_are_samples_around_those_of_the_means(compiled: bool) -> None:
    net = network(-8.0)
    run = mixtrain.jit(net) if compiled else net
    outputs = np.stack([run(X).asnumpy() for _ in range(20)])
    assert len(np.unique(outputs[:, 0, 0])) > 10
    # The means alone, by MindSpore with deviations of 1e-6.
    expected = [[-0.0626, 0.0534, 0.0931], [-0.0611, 0.0531, 0.0920]]
    np.testing.assert_allclose(outputs.mean(0), expected, atol=1e-3)


@pytest.mark.slow
def test_the_loss_and_its_gradients_are_those_of_mindspore() -> None:
    net = network()
    divergences = [float(cell.compute_kl_loss()) for cell in (net.conv, net.dense, net.local)]
    np.testing.assert_allclose(divergences, DIVERGENCES, rtol=1e-5)
    criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    with_loss = bnn_layers.WithBNNLossCell(net, criterion, 2, 0.001)
    loss, gradients = mixtrain.value_and_grad(with_loss, None, with_loss.trainable_params())(X, LABELS)
    assert float(loss) == pytest.approx(139.34, abs=0.03)
    np.testing.assert_allclose([np.abs(each.asnumpy()).sum() for each in gradients], GRADIENTS, rtol=2e-3)
    step = nn.TrainOneStepCell(with_loss, nn.Momentum(with_loss.trainable_params(), 0.001, 0.9))
    losses = [float(step(X, LABELS)) for _ in range(3)]
    np.testing.assert_allclose(losses, [139.34, 124.526, 105.378], atol=0.03)
    assert with_loss.backbone_network is net


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "channels": (lambda: bnn_layers.DenseReparam(0, 1), ValueError),
    "bias": (lambda: bnn_layers.DenseReparam(1, 1, has_bias=1), TypeError),
    "activation": (lambda: bnn_layers.DenseReparam(1, 1, activation=3), ValueError),
    "prior": (lambda: bnn_layers.DenseReparam(1, 1, weight_prior_fn=nn.SequentialCell(nn.ReLU())), TypeError),
    "posterior": (lambda: bnn_layers.DenseReparam(1, 1, weight_posterior_fn=3), TypeError),
    "pad_mode": (lambda: bnn_layers.ConvReparam(1, 1, 3, pad_mode="x"), ValueError),
    "name": (lambda: bnn_layers.NormalPosterior(1, [2]), TypeError),
    "deviation": (lambda: bnn_layers.NormalPosterior("a", [2], loc_std=-1), TypeError),
    "mean": (lambda: bnn_layers.NormalPosterior("a", [2], loc_mean=True), TypeError),
    "negative factor": (lambda: bnn_layers.WithBNNLossCell(Network(), nn.MSELoss(), -1), ValueError),
    "factor": (lambda: bnn_layers.WithBNNLossCell(Network(), nn.MSELoss(), 1, "a"), TypeError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_mindspores_types_and_say_what_to_write(name: str) -> None:
    call, kind = ERRORS[name]
    with pytest.raises(kind, match="Write "):
        call()
