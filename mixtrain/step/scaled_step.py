"""`scaled_step`: the train step of a network with its loss, for a manager or the optimizer's own scaler."""

from __future__ import annotations

from mixtrain.loss_scale.arguments import STATIC
from mixtrain.loss_scale.manager import LossScaleManager
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.loss_scale.step_scale import StepScale, scale_of
from mixtrain.step.network_loss import NetworkLoss
from mixtrain.step.optimizer_driver import drive
from mixtrain.step.train_step import TrainStep
from mixtrain.typing import Network, Optimizer


def scaled_step(loss: NetworkLoss | Network, optimizer: Optimizer, manager: LossScaleManager | None) -> TrainStep:
    """Return the step of a network that returns its loss.

    Args:
        loss: The network with its loss.
        optimizer: A mixtrain or Keras optimizer.
        manager: The loss-scale manager; None for the optimizer's own scaler, or no scaling.
    """
    driver = drive(optimizer)
    if manager is None and driver.own_scaler is not None:
        driver.claim_scaler()
        return TrainStep(loss, optimizer, StepScale(driver.own_scaler))
    if manager is None:
        return TrainStep(loss, optimizer)
    if not manager.get_drop_overflow_update():
        return TrainStep(loss, optimizer, sens=float(manager.get_loss_scale()))
    scale = scale_of("Model", manager)
    if scale is not None:
        return TrainStep(loss, optimizer, scale)
    step = TrainStep(loss, optimizer, StepScale(LossScaleState(float(manager.get_loss_scale()), STATIC)))
    step.host_manager = manager
    return step
