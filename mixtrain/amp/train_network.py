"""`build_train_network`: build the train cell of a network with a loss, optimizer, plan and loss scaling."""

from __future__ import annotations

import enum
import inspect
import logging
import warnings
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.compat.apex.amp_optimizer import AmpOptimizer
from mixtrain.compat.apex.initialize import initialized_plan
from mixtrain.dtype import DType, float16, float32
from mixtrain.loss_scale.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mixtrain.loss_scale.update_cell import LossScaleUpdateCell
from mixtrain.network.walk import tree_of
from mixtrain.optim.adapter import drive
from mixtrain.precision.apply import apply_plan, kept_plans
from mixtrain.precision.levels import AmpLevel
from mixtrain.precision.plan import PlanRow, PrecisionPlan
from mixtrain.precision.planner import plan_keeping, plan_precision
from mixtrain.step.loss_cell import WithLossCell
from mixtrain.step.train_cell import TrainOneStepCell, TrainOneStepWithLossScaleCell
from mixtrain.typing import LossFn, Network, Optimizer

_log = logging.getLogger("mixtrain")


class _Default(enum.Enum):
    LEVEL = "the level's default"

    def __repr__(self) -> str:
        return str(self.value)


LEVEL_DEFAULT: Final = _Default.LEVEL


def default_manager(plan: PrecisionPlan, optimizer: Optimizer | None = None) -> LossScaleManager | None:
    """Return a new manager if the loss is scaled by default, else None.

    It is scaled at O2 in float16, and at O0 as in Keras, for layers whose own policy is "mixed_float16", with the scale
    and window of Keras's `LossScaleOptimizer`. An optimizer of `amp.initialize` has its own scaler or none by choice.
    """
    if isinstance(optimizer, AmpOptimizer):
        return None
    if plan.scales_loss:
        return DynamicLossScaleManager()
    mixed = plan.level == "O0" and any(map(_has_mixed_policy, plan.rows))
    if mixed and not _scales_itself(optimizer):
        return DynamicLossScaleManager(init_loss_scale=2**15, scale_window=2000)
    return None


def _has_mixed_policy(row: PlanRow) -> bool:
    """Whether a Keras layer computes in float16 by its own policy, with variables in float32."""
    unchanged = row.cast is None and row.parameter_dtype in (None, float32)
    return unchanged and row.compute_dtype == float16 and isinstance(row.target, keras.Layer)


def _scales_itself(optimizer: Optimizer) -> bool:
    """Whether an optimizer has a loss scale of its own."""
    return optimizer is not None and drive(optimizer).expected_loss_scale is not None


def watching_manager(optimizer: Optimizer) -> LossScaleManager | None:
    """Return the manager that skips steps which are not finite and scales by 1; None where the optimizer scales."""
    if isinstance(optimizer, AmpOptimizer) or drive(optimizer).expected_loss_scale not in (None, 1.0):
        return None
    return FixedLossScaleManager(1.0)


def warn_unscaled(where: str, plan: PrecisionPlan, optimizer: Optimizer) -> None:
    """Warn that a plan computes in float16 without loss scaling.

    Args:
        where: Name of the caller.
        plan: The plan of a network without a manager.
        optimizer: The optimizer; with a scale or scaler of its own there is no warning.
    """
    if float16 not in plan.compute_dtypes() or isinstance(optimizer, AmpOptimizer) or _scales_itself(optimizer):
        return
    warnings.warn(
        f"{where}: layers compute in float16 and the loss is not scaled, so small gradients become 0 and weights may "
        f"not move. Write {where}(..., loss_scale_manager=mixtrain.DynamicLossScaleManager()), "
        "cast_model_type=mixtrain.bfloat16, or loss_scale_manager=None to train without.",
        stacklevel=3,
    )


def named_optimizer(name: str) -> Optimizer:
    """Return Keras's optimizer of a name.

    Raises:
        ValueError: There is none; the error offers the nearest name.
    """
    try:
        return keras.optimizers.get(name)
    except ValueError:
        names = [item.lower() for item in vars(keras.optimizers) if item[0].isupper()]
        (near,) = checks.nearest(name, names)
        raise checks.fail_value(
            "Model", "optimizer must be the name of one of Keras's optimizers", name, f'optimizer="{near}"'
        ) from None


def unwrap_loss_scale_optimizer(optimizer: Optimizer, manager: Any) -> tuple[Optimizer, Any]:
    """Replace a Keras `LossScaleOptimizer` by its inner optimizer and a manager with the same scale and window.

    Args:
        optimizer: A mixtrain or Keras optimizer.
        manager: The loss-scale manager of the user; unless it is the default, nothing is replaced.
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


def build_train_network(
    network: Network,
    optimizer: Optimizer,
    loss_fn: LossFn | None = None,
    level: AmpLevel = "O0",
    boost_level: str = "O0",
    *,
    cast_model_type: DType | str | None = None,
    keep_batchnorm_fp32: bool | None = None,
    loss_scale_manager: LossScaleManager | _Default | None = LEVEL_DEFAULT,
) -> TrainOneStepCell:
    """Build the cell that trains a network, one step per call.

    Args:
        network: A Cell or Keras model (built); without `loss_fn` a Cell returns the loss, a Keras model adds it.
        optimizer: A mixtrain or Keras optimizer; of a Keras `LossScaleOptimizer`, the inner one and the scale.
        loss_fn: A Cell, a Keras loss or its name, or a function; as in `WithLossCell`.
        level: "O0", "O1", "O2", "O3" or "auto".
        boost_level: "O0"; MindSpore's boost mode is not available.
        cast_model_type: float16 or bfloat16; None for float16.
        keep_batchnorm_fp32: Whether normalization is kept in float32; None for the level's rule.
        loss_scale_manager: A manager, None for no loss scaling; by default a new dynamic one for O2 in float16, and
            for layers whose own policy is "mixed_float16". Other float16 without a manager gives a warning.

    Returns:
        A `TrainOneStepCell` in training mode, or a `TrainOneStepWithLossScaleCell` where steps may be skipped.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An unknown level, or a manager and an optimizer whose loss scales contradict each other.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.SGD(net.trainable_params(), 0.1)
        >>> step = build_train_network(net, optimizer, nn.MSELoss(), level="O3", loss_scale_manager=None)
        >>> type(step).__name__
        'TrainOneStepCell'
    """
    checks.one_of("build_train_network", "boost_level", boost_level, ("O0",))
    plan = planned("build_train_network", network, level, keep_batchnorm_fp32, cast_model_type)
    optimizer, loss_scale_manager = unwrap_loss_scale_optimizer(optimizer, loss_scale_manager)
    manager = default_manager(plan, optimizer) if isinstance(loss_scale_manager, _Default) else loss_scale_manager
    check_manager("build_train_network", manager, optimizer)
    if manager is None and isinstance(loss_scale_manager, _Default):
        warn_unscaled("build_train_network", plan, optimizer)
    apply_plan(network, plan)
    needs_loss = loss_fn is not None or isinstance(network, keras.Layer)
    with_loss = WithLossCell(network, loss_fn) if needs_loss else network
    return make_train_cell(with_loss, optimizer, manager).set_train()


def planned(where: str, network: Network, level: Any, keep_batchnorm_fp32: Any, cast_model_type: Any) -> PrecisionPlan:
    """Return a network's plan: that of `amp.initialize` if it was called, else that of the level.

    Without a level, plans that are in force on the network or on parts of it stay in force.

    Raises:
        ValueError: A level is passed after `amp.initialize`.
    """
    initialized = initialized_plan(network)
    by_default = isinstance(level, str) and level == "O0" and keep_batchnorm_fp32 is None and cast_model_type is None
    if not by_default and any(initialized_plan(node.layer) for node in tree_of(network).walk()):
        raise checks.fail_value(
            where, "the precision of a network is decided once, and amp.initialize did", level,
            f"{where} without a level, keep_batchnorm_fp32 and cast_model_type",
        )
    if initialized is not None:
        return initialized
    if not by_default:
        return plan_precision(
            network, level, keep_batchnorm_fp32=keep_batchnorm_fp32, cast_model_type=cast_model_type
        )
    # Another `build_train_network` of the same network takes the place of the one before.
    kept = [plan for plan in kept_plans(network) if where == "Model" or plan.planning or plan.network is not network]
    return plan_keeping(network, [plan.planning() if plan.planning else plan.plan for plan in kept])


def make_train_cell(with_loss: Network, optimizer: Optimizer, manager: LossScaleManager | None) -> TrainOneStepCell:
    """Return the train cell of a network that returns its loss, for a manager or the optimizer's own scaler."""
    if manager is None and isinstance(optimizer, AmpOptimizer) and optimizer.scaler is not None:
        optimizer.claim("a train step")
        return TrainOneStepWithLossScaleCell(with_loss, optimizer, LossScaleUpdateCell(optimizer.scaler.state))
    if manager is None:
        return TrainOneStepCell(with_loss, optimizer)
    if not manager.get_drop_overflow_update():
        return TrainOneStepCell(with_loss, optimizer, sens=float(manager.get_loss_scale()))
    cell = None if host_driven(manager) else manager.get_update_cell()
    if cell is not None:
        return TrainOneStepWithLossScaleCell(with_loss, optimizer, cell)
    scale = backend.to_tensor(float(manager.get_loss_scale()))
    train_cell = TrainOneStepWithLossScaleCell(with_loss, optimizer, scale)
    object.__setattr__(train_cell, "host_manager", manager)
    return train_cell


def host_driven(manager: LossScaleManager) -> bool:
    """Whether a manager's scale must be updated from Python after every step.

    This is the case without an update cell, and for a subclass that overrides `update_loss_scale` or `get_loss_scale`
    of a class whose update cell does not know the override.
    """
    if not manager.get_drop_overflow_update():
        return False
    mro = type(manager).__mro__
    owner = next(base for base in mro if "get_update_cell" in vars(base))
    if owner is LossScaleManager:
        return True
    subclasses = mro[: mro.index(owner)]
    return any(name in vars(base) for base in subclasses for name in ("update_loss_scale", "get_loss_scale"))


def check_manager(where: str, manager: Any, optimizer: Optimizer) -> None:
    """Refuse a manager and an optimizer that would unscale the gradients twice or never.

    Raises:
        TypeError: `manager` is not a LossScaleManager.
        ValueError: The optimizer's `loss_scale` contradicts the manager.
    """
    if manager is not None and not isinstance(manager, LossScaleManager):
        raise checks.fail_type(
            where, "loss_scale_manager must be a LossScaleManager or None", manager, "DynamicLossScaleManager()"
        )
    if manager is not None and isinstance(optimizer, AmpOptimizer) and optimizer.scaler is not None:
        raise checks.fail_value(
            where, "the loss is scaled once, and the optimizer of amp.initialize has its scaler", manager,
            "it without loss_scale_manager, or amp.initialize(..., loss_scale=1.0)",
        )
    driver = drive(optimizer)
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
