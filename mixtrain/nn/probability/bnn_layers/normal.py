"""`NormalPrior` and `NormalPosterior`: the distributions of a Bayesian layer's weights."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from mixtrain import checks, ops
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import Normal as NormalValues, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32
from mixtrain.nn.probability.distribution import Normal
from mixtrain.typing import DTypeLike


class NormalPrior(Cell):
    """The normal distribution of `mean` and `std`, in `dtype`, that weights are held to; called as a distribution is.

    Example:
        >>> import mixtrain
        >>> from mixtrain.nn.probability import bnn_layers
        >>> bnn_layers.NormalPrior(std=0.5)("cdf", mixtrain.Tensor([0.0])).numpy().tolist()
        [0.5]
    """

    takes_tensors = True

    def __init__(self, dtype: DTypeLike = float32, mean: float = 0, std: float = 0.1) -> None:
        super().__init__()
        self.normal = Normal(mean, std, dtype=dtype)

    def construct(self, *inputs: Any) -> Any:
        """Compute a function of the distribution by its name."""
        return self.normal(*inputs)


class NormalPosterior(Cell):
    """The normal distribution of a weight, with a trained mean and deviation; called as a distribution is.

    Args:
        name: What the names of its parameters start with.
        shape: Shape of the weight, a tuple or list.
        dtype: dtype of the parameters.
        loc_mean, loc_std: Mean and deviation of the initial means.
        untransformed_scale_mean, untransformed_scale_std: Those of the initial deviations before the softplus.

    Raises: TypeError: An argument has the wrong type, or a deviation is negative.

    Example:
        >>> from mixtrain.nn.probability import bnn_layers
        >>> tuple(bnn_layers.NormalPosterior("weight", (2, 3))("sample").shape)
        (2, 3)
    """

    takes_tensors = True

    def __init__(
        self, name: str, shape: Sequence[int], dtype: DTypeLike = float32, loc_mean: float = 0, loc_std: float = 0.1,
        untransformed_scale_mean: float = -5, untransformed_scale_std: float = 0.1,
    ) -> None:
        super().__init__()
        checks.instance("NormalPosterior", "name", name, str, 'name="weight"')
        checks.instance("NormalPosterior", "shape", shape, (tuple, list), "shape=(2, 3)")
        means = {"loc_mean": loc_mean, "untransformed_scale_mean": untransformed_scale_mean}
        deviations = {"loc_std": loc_std, "untransformed_scale_std": untransformed_scale_std}
        for key, value in (means | deviations).items():
            number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not number or key in deviations and value < 0:
                least = " of at least 0" if key in deviations else ""
                raise checks.fail_type("NormalPosterior", f"{key} must be a number{least}", value, f"{key}=0.1")
        loc = NormalValues(loc_std, loc_mean)
        untransformed = NormalValues(untransformed_scale_std, untransformed_scale_mean)
        self.mean = Parameter(initializer(loc, tuple(shape), dtype), name=f"{name}_mean")
        self.untransformed_std = Parameter(
            initializer(untransformed, tuple(shape), dtype), name=f"{name}_untransformed_std"
        )
        self.normal = Normal()

    def construct(self, *inputs: Any) -> Any:
        """Compute a function of the distribution by its name."""
        # MindSpore adds the constant, so that the deviation is never 0.
        return self.normal(*inputs, mean=self.mean, sd=1e-6 + ops.softplus(self.untransformed_std))


def normal_post_fn(name: str, shape: Sequence[int]) -> NormalPosterior:
    """Return the default posterior of a weight of a `name` and a `shape`: `normal_post_fn("weight", (2, 3))`."""
    return NormalPosterior(name=name, shape=shape)
