"""Bayesian layers, which sample their weights in each call, and the loss that holds these to a prior."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from mixtrain import checks, ops
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.activation import ActivationLike, get_activation
from mixtrain.nn.layer.conv import Conv2d
from mixtrain.nn.probability.bnn_layers.normal import NormalPrior, normal_post_fn
from mixtrain.nn.probability.distribution import Normal
from mixtrain.typing import LossFn, Network, Tensor

# A Cell such as a `NormalPrior`, or a function that makes one.
Prior = Cell | Callable[[], Cell]
# A function of `name` and `shape`.
Posterior = Callable[..., Cell]


def _check_normal(where: str, name: str, distribution: Cell) -> Cell:
    for key in distribution.name_cells():
        if key != "normal":
            raise checks.fail_type(where, f"{name} must hold one distribution, as normal", key, "NormalPrior")
    return distribution


class Variational(Cell):
    """The base of Bayesian layers: a prior and a posterior of each weight, and the divergence between them."""

    takes_tensors = True

    def _set_distributions(
        self, shapes: dict[str, list[int]], priors: list[Prior], posteriors: list[Posterior]
    ) -> None:
        """Set the prior and the posterior of each weight, by its name and shape."""
        where = type(self).__name__
        self._weights = list(shapes)
        for (name, shape), prior, posterior in zip(shapes.items(), priors, posteriors, strict=False):
            prior = _check_normal(where, f"{name}_prior_fn", prior if isinstance(prior, Cell) else prior())
            for distribution in prior.cells():
                if None in distribution.get_dist_args():
                    raise checks.fail_type(where, f"{name}_prior_fn must have a mean and an sd", None, "NormalPrior()")
            try:
                made = posterior(shape=shape, name=f"bnn_{name}")
            except TypeError as error:
                expected = f"{name}_posterior_fn must be a function of name and shape"
                raise checks.fail_type(where, expected, posterior, "NormalPosterior") from error
            setattr(self, f"{name}_prior", prior)
            setattr(self, f"{name}_posterior", _check_normal(where, f"{name}_posterior_fn", made))

    def _posterior_repr(self) -> str:
        pairs = [(name, getattr(self, f"{name}_posterior")) for name in self._weights]
        texts = [f"{name}_mean={each.mean}, {name}_std={each.untransformed_std}" for name, each in pairs]
        return f"{texts[0]}, has_bias={self.has_bias}{''.join(f', {text}' for text in texts[1:])}"

    def _add_bias(self, outputs: Tensor) -> Tensor:
        """Add a sample of the bias along the second axis of the outputs."""
        if not self.has_bias:
            return outputs
        bias = self.bias_posterior("sample")
        return outputs + bias.reshape((1, -1) + (1,) * (outputs.ndim - 2))

    def compute_kl_loss(self) -> Tensor:
        """Return the sum of the divergences of the priors from the posteriors, as `WithBNNLossCell` adds it."""
        total = 0.0
        for name in self._weights:
            posterior = getattr(self, f"{name}_posterior")
            total += getattr(self, f"{name}_prior")(
                "kl_loss", posterior("get_dist_type"), *posterior("get_dist_args")
            ).sum()
        return total


class _Dense(Variational):
    """Base of Bayesian dense layers; see `DenseReparam`."""

    def __init__(
        self, in_channels: int, out_channels: int, activation: ActivationLike | None = None, has_bias: bool = True,
        weight_prior_fn: Prior = NormalPrior, weight_posterior_fn: Posterior = normal_post_fn,
        bias_prior_fn: Prior = NormalPrior, bias_posterior_fn: Posterior = normal_post_fn,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.in_channels = checks.integer(where, "in_channels", in_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        shapes = {"weight": [out_channels, in_channels]} | ({"bias": [out_channels]} if has_bias else {})
        self._set_distributions(shapes, [weight_prior_fn, bias_prior_fn], [weight_posterior_fn, bias_posterior_fn])
        activation = get_activation(activation) if isinstance(activation, str) else activation
        if activation is not None and not isinstance(activation, Cell):
            raise checks.fail_value(where, "activation must be a name or a Cell", activation, 'activation="relu"')
        self.activation = activation

    def _multiply(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: a subclass multiplies. Write def _multiply(self, x): ...")

    def construct(self, x: Tensor) -> Tensor:
        """Compute the outputs (N, out_channels) of inputs (N, in_channels) with sampled weights."""
        outputs = self._add_bias(self._multiply(x))
        return outputs if self.activation is None else self.activation(outputs)

    def extend_repr(self) -> str:
        """Return the sizes and the parameters of the posteriors."""
        text = f"in_channels={self.in_channels}, out_channels={self.out_channels}, {self._posterior_repr()}"
        return text if self.activation is None else f"{text}, activation={self.activation}"


class DenseReparam(_Dense):
    """A dense layer whose weights are sampled in each call by the reparameterization trick.

    Args:
        in_channels, out_channels: Size of the last axis of the input and of the output.
        activation: A name ("relu", ...) or a Cell.
        has_bias: Whether a bias is added.
        weight_prior_fn, bias_prior_fn: A Cell such as `NormalPrior`, or its class.
        weight_posterior_fn, bias_posterior_fn: A function of `name` and `shape` that returns a `NormalPosterior`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A number of channels is below 1, or `activation` is no Cell.

    Example:
        >>> import mixtrain, numpy as np
        >>> from mixtrain.nn.probability import bnn_layers
        >>> tuple(bnn_layers.DenseReparam(4, 2)(mixtrain.Tensor(np.ones((3, 4), np.float32))).shape)
        (3, 2)
    """

    def _multiply(self, x: Tensor) -> Tensor:
        return ops.matmul(x, self.weight_posterior("sample").T)


class DenseLocalReparam(_Dense):
    """`DenseReparam` that samples the products rather than the weights, which has less variance (Kingma et al., 2015).

    Example:
        >>> import mixtrain, numpy as np
        >>> from mixtrain.nn.probability import bnn_layers
        >>> tuple(bnn_layers.DenseLocalReparam(4, 2)(mixtrain.Tensor(np.ones((3, 4), np.float32))).shape)
        (3, 2)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.normal = Normal()

    def _multiply(self, x: Tensor) -> Tensor:
        mean = ops.matmul(x, self.weight_posterior("mean").T)
        var = ops.matmul(ops.square(x), ops.square(self.weight_posterior("sd")).T)
        return self.normal("sample", mean=mean, sd=ops.sqrt(var))


class ConvReparam(Variational, Conv2d):
    """A convolution of images whose kernels are sampled in each call by the reparameterization trick.

    Args:
        in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias: As in `Conv2d`.
        weight_prior_fn, weight_posterior_fn, bias_prior_fn, bias_posterior_fn: As in `DenseReparam`.

    Example:
        >>> import mixtrain, numpy as np
        >>> from mixtrain.nn.probability import bnn_layers
        >>> tuple(bnn_layers.ConvReparam(1, 2, 3)(mixtrain.Tensor(np.ones((1, 1, 8, 8), np.float32))).shape)
        (1, 2, 8, 8)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        pad_mode: str = "same", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, group: int = 1,
        has_bias: bool = False, weight_prior_fn: Prior = NormalPrior, weight_posterior_fn: Posterior = normal_post_fn,
        bias_prior_fn: Prior = NormalPrior, bias_posterior_fn: Posterior = normal_post_fn,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, "normal",
            "zeros",
        )
        for parameter in self.own_parameters().values():  # As in MindSpore, they are there and unused.
            parameter.requires_grad = False
        shapes = {"weight": list(self.weight.shape)} | ({"bias": [out_channels]} if has_bias else {})
        self._set_distributions(shapes, [weight_prior_fn, bias_prior_fn], [weight_posterior_fn, bias_posterior_fn])

    def construct(self, x: Tensor) -> Tensor:
        """Convolve images (N, in_channels, H, W) with sampled kernels."""
        return self._add_bias(self.conv2d(x, self.weight_posterior("sample")))

    def extend_repr(self) -> str:
        """Return the settings and the parameters of the posteriors."""
        names = ("in_channels", "out_channels", "kernel_size", "stride", "pad_mode", "padding", "dilation", "group")
        return ", ".join([*(f"{name}={getattr(self, name)}" for name in names), self._posterior_repr()])


class WithBNNLossCell(Cell):
    """The loss of a network with Bayesian layers: `dnn_factor` * loss + `bnn_factor` * the divergences of the layers.

    Args:
        backbone: The network.
        loss_fn: A loss of its outputs and labels.
        dnn_factor: At least 0.
        bnn_factor: At least 0.

    Raises:
        TypeError: A factor is not a number.
        ValueError: A factor is negative.

    Example:
        >>> import mixtrain.nn as nn
        >>> from mixtrain.nn.probability import bnn_layers
        >>> bnn_layers.WithBNNLossCell(bnn_layers.DenseReparam(4, 2), nn.MSELoss(), 1, 0.1).bnn_factor
        0.1
    """

    takes_tensors = True

    def __init__(self, backbone: Network, loss_fn: LossFn, dnn_factor: float = 1, bnn_factor: float = 1) -> None:
        super().__init__(auto_prefix=False)
        for name, value in (("dnn_factor", dnn_factor), ("bnn_factor", bnn_factor)):
            if isinstance(value, numbers.Real):
                checks.number("WithBNNLossCell", name, value, at_least=0)
            else:
                raise checks.fail_type("WithBNNLossCell", f"{name} must be a number", value, f"{name}=1")
        self._backbone, self._loss_fn = backbone, loss_fn
        self.dnn_factor, self.bnn_factor = dnn_factor, bnn_factor
        self.kl_loss = [
            cell.compute_kl_loss for _, cell in backbone.cells_and_names() if isinstance(cell, Variational)
        ]

    def construct(self, x: Tensor, label: Tensor) -> Tensor:
        """Compute the loss."""
        loss = self._loss_fn(self._backbone(x), label) * self.dnn_factor
        return loss + sum(kl_loss() for kl_loss in self.kl_loss) * self.bnn_factor

    @property
    def backbone_network(self) -> Any:
        """The network."""
        return self._backbone
