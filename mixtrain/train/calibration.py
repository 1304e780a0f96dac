"""`calibrate_loss_scale`: finds a loss scale for a few batches, without training on them."""

from __future__ import annotations

import itertools
from typing import Final

from mixtrain import checks
from mixtrain.loss_scale.manager import DynamicLossScaleManager
from mixtrain.train.model import Model
from mixtrain.train.trial import MAX_EXPONENT, largest_exponent
from mixtrain.typing import DatasetLike

_WHERE: Final = "calibrate_loss_scale"
# The scale returned is the largest that did not overflow, divided by this.
_MARGIN: Final = 2.0


def calibrate_loss_scale(model: Model, dataset: DatasetLike, steps: int = 8) -> DynamicLossScaleManager:
    """Return a manager that starts at a loss scale at which none of some batches overflows.

    Each batch is trained on at several scales, and each of these steps is undone: weights, optimizer, moving
    statistics, random states and the model's own loss scale are as before.

    Args:
        model: A `Model` with loss scaling that can skip steps, as at O2.
        dataset: Batches, as for `Model.train`; the first `steps` are read.
        steps: Number of batches to try.

    Returns: A new `DynamicLossScaleManager` whose scale is half of the largest power of two at which all gradients of
        these batches are finite.

    Raises: TypeError if `model` is not a Model, or `steps` is not an int. ValueError if the model has no loss scaling,
        or a batch overflows at every scale, with a diagnosis of it.

    Example: ``manager = mixtrain.calibrate_loss_scale(model, dataset)``, for a new Model.
    """
    checks.instance(_WHERE, "model", model, Model, "calibrate_loss_scale(mixtrain.Model(...), dataset)")
    checks.integer(_WHERE, "steps", steps, at_least=1, example=8)
    networks = model._networks
    with model._ready_for(_WHERE, dataset) as feed:
        scale = networks.step.scale
        if scale is None:
            raise checks.fail_value(
                _WHERE, "the model must have loss scaling that skips", model.loss_scale_manager,
                "Model(..., loss_scale_manager=DynamicLossScaleManager())",
            )
        largest = MAX_EXPONENT
        for batch in itertools.islice(feed.batches(), steps):
            exponent = largest_exponent(model._compiled.stepper, scale.variable, batch, largest)
            if exponent is None:
                finding = model._compiled.diagnosis(batch, 1.0)
                raise ValueError(
                    f"{_WHERE}: each batch must have finite gradients at some loss scale; one has none at scale 1. "
                    f"Found: {finding}."
                )
            largest = exponent
    return DynamicLossScaleManager(max(2.0**largest / _MARGIN, 1.0))
