"""Which loss scale a step gets: that of a manager, the level's default, the optimizer's own, or none."""

from __future__ import annotations

import enum
import inspect
import logging
import warnings
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float16, float32
from mixtrain.loss_scale.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mixtrain.precision.plan import PlanRow, PrecisionPlan
from mixtrain.step.optimizer_driver import drive
from mixtrain.typing import Optimizer

_log = logging.getLogger("mixtrain")


class LevelDefault(enum.Enum):
    LEVEL = "the level's default"

    def __repr__(self) -> str:
        return str(self.value)


LEVEL_DEFAULT: Final = LevelDefault.LEVEL


def default_manager(plan: PrecisionPlan, optimizer: Optimizer | None = None) -> LossScaleManager | None:
    """Return a new manager if the loss is scaled by default, else None.

    It is scaled at O2 in float16, and at O0 as in Keras, for layers whose own policy is "mixed_float16", with the scale
    and window of Keras's `LossScaleOptimizer`. An optimizer of `amp.initialize` has its own scaler or none by choice.
    """
    if optimizer is not None and drive(optimizer).chosen_scaling:
        return None
    if plan.scales_loss:
        return DynamicLossScaleManager(init_loss_scale=2**15 if saturates(plan) else 2**24)
    mixed = plan.level == "O0" and any(map(_has_mixed_policy, plan.rows))
    if mixed and not _scales_itself(optimizer):
        return DynamicLossScaleManager(init_loss_scale=2**15, scale_window=2000)
    return None


def saturates(plan: PrecisionPlan) -> bool:
    """Whether Keras quantizes a layer to float8: its gradients are clipped at a large scale, and no step overflows."""
    return any(getattr(row.target, "quantization_mode", None) == "float8" for row in plan.rows)


def _has_mixed_policy(row: PlanRow) -> bool:
    """Whether a Keras layer computes in float16 by its own policy, with variables in float32."""
    unchanged = row.cast is None and row.parameter_dtype in (None, float32)
    return unchanged and row.compute_dtype == float16 and isinstance(row.target, keras.Layer)


def _scales_itself(optimizer: Optimizer) -> bool:
    """Whether an optimizer has a loss scale of its own."""
    return optimizer is not None and drive(optimizer).expected_loss_scale is not None


def watching_manager(optimizer: Optimizer) -> LossScaleManager | None:
    """Return the manager that skips steps which are not finite and scales by 1; None where the optimizer scales."""
    driver = drive(optimizer)
    if driver.chosen_scaling or driver.expected_loss_scale not in (None, 1.0):
        return None
    return FixedLossScaleManager(1.0)


def warn_unscaled(where: str, plan: PrecisionPlan, optimizer: Optimizer) -> None:
    """Warn that a plan computes in float16 without loss scaling.

    `where`: Name of the caller. `plan`: The plan of a network without a manager. `optimizer`: The optimizer; with a
    scale or scaler of its own there is no warning.
    """
    if float16 not in plan.compute_dtypes() or drive(optimizer).chosen_scaling or _scales_itself(optimizer):
        return
    warnings.warn(
        f"{where}: layers compute in float16 and the loss is not scaled, so small gradients become 0 and weights may "
        f"not move. Write {where}(..., loss_scale_manager=mixtrain.DynamicLossScaleManager()), "
        "cast_model_type=mixtrain.bfloat16, or loss_scale_manager=None to train without.",
        stacklevel=3,
    )


def unwrap_loss_scale_optimizer(optimizer: Optimizer, manager: Any) -> tuple[Optimizer, Any]:
    """Replace a Keras `LossScaleOptimizer` by its inner optimizer and a manager with the same scale and window.

    `optimizer`: A mixtrain or Keras optimizer. `manager`: The loss-scale manager of the user; unless it is the default,
    nothing is replaced.
    """
    if type(optimizer) is not keras.optimizers.LossScaleOptimizer or manager is not LEVEL_DEFAULT:
        return optimizer, manager
    scale = float(backend.to_numpy(optimizer.dynamic_scale)) if optimizer.built else float(optimizer.initial_scale)
    inner = optimizer.inner_optimizer
    _log.info(
        "LossScaleOptimizer: taken over as %s with DynamicLossScaleManager(%g, 2, %d)",
        type(inner).__name__, scale, optimizer.dynamic_growth_steps,
    )
    return inner, DynamicLossScaleManager(scale, 2, int(optimizer.dynamic_growth_steps))


def check_manager(where: str, manager: Any, optimizer: Optimizer) -> None:
    """Refuse a manager and an optimizer that would unscale the gradients twice or never.

    Raises: TypeError if `manager` is not a LossScaleManager. ValueError if the optimizer's `loss_scale` contradicts the
    manager.
    """
    if manager is not None and not isinstance(manager, LossScaleManager):
        raise checks.fail_type(
            where, "loss_scale_manager must be a LossScaleManager or None", manager, "DynamicLossScaleManager()"
        )
    driver = drive(optimizer)
    if manager is not None and driver.own_scaler is not None:
        raise checks.fail_value(
            where, "the loss is scaled once, and the optimizer of amp.initialize has its scaler", manager,
            "it without loss_scale_manager, or amp.initialize(..., loss_scale=1.0)",
        )
    if not driver.divides_by_loss_scale:
        return
    optimizer_scale = driver.loss_scale
    if manager is None or manager.get_drop_overflow_update():
        if manager is not None and optimizer_scale != 1.0:
            raise ValueError(
                f"{where}: with a manager that drops overflowing steps the step itself divides the gradients, so the "
                f"optimizer's loss_scale must be 1; got {optimizer_scale:g}, which would divide twice. "
                f"Write {_with_scale(optimizer, 1.0)}."
            )
        return
    manager_scale = float(manager.get_loss_scale())
    if manager_scale != optimizer_scale:
        raise ValueError(
            f"{where}: with drop_overflow_update=False the optimizer divides the gradients, so its loss_scale must be "
            f"the manager's {manager_scale:g}; got {optimizer_scale:g}. "
            f"Write {_with_scale(optimizer, manager_scale)}."
        )


def _with_scale(optimizer: Optimizer, loss_scale: float) -> str:
    """Return the code that sets the loss scale of an optimizer, or an alternative if it has none."""
    name = type(optimizer).__name__
    accepted = inspect.signature(type(optimizer).__init__).parameters
    for keyword in ("loss_scale", "loss_scale_factor"):
        if keyword in accepted:
            return f"{name}(..., {keyword}={loss_scale:g})"
    return f"FixedLossScaleManager({loss_scale:g}), which drops overflowing steps and needs no loss_scale in {name}"
