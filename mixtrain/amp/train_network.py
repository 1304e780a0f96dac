"""`build_train_network`: build the train cell of a network with a loss, optimizer, plan and loss scaling."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.dtype import DType
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.nn.wrap.loss_cell import WithLossCell
from mixtrain.nn.wrap.train_cell import TrainOneStepCell, train_cell
from mixtrain.precision.apply import apply_plan
from mixtrain.precision.levels import AmpLevel
from mixtrain.precision.planned import planned
from mixtrain.step.scaling_choice import (
    LEVEL_DEFAULT,
    LevelDefault,
    check_manager,
    default_manager,
    unwrap_loss_scale_optimizer,
    warn_unscaled,
)
from mixtrain.step.train_step import scaled_step
from mixtrain.typing import LossFn, Network, Optimizer


def build_train_network(
    network: Network, optimizer: Optimizer, loss_fn: LossFn | None = None, level: AmpLevel = "O0",
    boost_level: str = "O0", *, cast_model_type: DType | str | None = None, keep_batchnorm_fp32: bool | None = None,
    loss_scale_manager: LossScaleManager | LevelDefault | None = LEVEL_DEFAULT,
) -> TrainOneStepCell:
    """Build the cell that trains a network, one step per call.

    Args:
        network: A Cell or Keras model (built); without `loss_fn` a Cell returns the loss, a Keras model adds it.
        optimizer: A mixtrain or Keras optimizer; of a Keras `LossScaleOptimizer`, the inner one and the scale.
        loss_fn: A Cell, a Keras loss or its name, or a function; as in `WithLossCell`.
        level: "O0", "O1", "O2", "O3" or "auto".
        boost_level: "O0"; MindSpore's boost mode is not available.
        cast_model_type: float16, bfloat16, "float8" or "float8_delayed" (see `Model`); None for float16.
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
    manager = default_manager(plan, optimizer) if isinstance(loss_scale_manager, LevelDefault) else loss_scale_manager
    check_manager("build_train_network", manager, optimizer)
    if manager is None and isinstance(loss_scale_manager, LevelDefault):
        warn_unscaled("build_train_network", plan, optimizer)
    apply_plan(network, plan)
    needs_loss = loss_fn is not None or isinstance(network, keras.Layer)
    with_loss = WithLossCell(network, loss_fn) if needs_loss else network
    step = scaled_step(with_loss, optimizer, manager)
    return train_cell(step).set_train()
