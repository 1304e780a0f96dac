"""`AmpOptimizer`: the optimizer that `amp.initialize` returns, with its loss scaler and its float32 copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.compat.pytorch.grad_scaler import GradScaler
from mixtrain.compat.pytorch.scaler_gradients import apply
from mixtrain.optim.cell_driver import CellDriver
from mixtrain.optim.optimizer import Optimizer
from mixtrain.optim.trained import TrainedParameters
from mixtrain.precision.master_weights import presented_in_float32, updating
from mixtrain.step.optimizer_driver import OptimizerDriver, drive, register_driver
from mixtrain.typing import Network, Tensor, Variable

ScaledBy = Literal["amp.scale_loss", "a train step"]


class AmpOptimizer(Optimizer):
    """An optimizer with a loss scaler, which updates float32 copies of parameters stored in half.

    In a custom loop, pass the gradients of the loss from `amp.scale_loss` to `apply_gradients` or `step`, which unscale
    them, skip the update if they are not finite, and update the scale. A `Model` does the same by itself. Other
    attributes are those of the inner optimizer.

    Args:
        inner: A mixtrain or Keras optimizer.
        parameters: The variables that it trains.
        scaler: The scaler of its loss; None for no scaling.

    Attributes:
        inner: The inner optimizer.
        scaler: The `amp.GradScaler`, or None.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> optimizer = AmpOptimizer(nn.SGD(net.trainable_params(), 0.5), net.trainable_params(), None)
        >>> bool(optimizer.step([mixtrain.Tensor([[-4.0]])])), net.weight.asnumpy().tolist()
        (True, [[2.0]])

    Source: NVIDIA apex, `amp.initialize`.
    """

    loss_scale = 1.0

    def __init__(self, inner: Optimizer, parameters: Sequence[Tensor], scaler: GradScaler | None) -> None:
        Cell.__init__(self, auto_prefix=False)
        driver = checked_driver(inner)
        trained = TrainedParameters.checked("amp.initialize", driver.select(parameters))
        for name, value in {
            "inner": inner, "scaler": scaler, "driver": driver, "parameters": trained, "_parameters": trained,
            "_scaled_by": None, "_stepping": False,
        }.items():
            object.__setattr__(self, name, value)
        if isinstance(inner, Cell):
            self._cells["inner"] = inner
        with presented_in_float32(trained, "nearest"):
            driver.build(trained)

    # ---- a step ---------------------------------------------------------------------------------------------------
    def __call__(self, gradients: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Update the parameters with gradients that are already unscaled, as a train step does.

        `gradients`: One for each of `parameters`, or None.

        Raises: RuntimeError if `amp.scale_loss` is in use, so that gradients are still scaled.
        """
        if self._scaled_by == "amp.scale_loss" and not self._stepping:
            raise RuntimeError(
                "amp.initialize: expected gradients of a scaled loss to be divided; got them in a call of the "
                "optimizer, which does not. Write optimizer.step(gradients), or optimizer.apply_gradients(...)."
            )
        return Cell.__call__(self, gradients)

    def construct(self, gradients: Sequence[Tensor]) -> Any:
        """Update the float32 copies with the inner optimizer, and cast them; other half parameters in float32, too.

        An optimizer that computes in the dtype of its variables needs this: Adam's 0.999 is 1 in bfloat16.
        """
        with updating(self.parameters, "nearest"):
            apply(self.driver, list(gradients), list(self.parameters))
        return (True,) * len(self.parameters)

    def step(self, gradients: Sequence[Tensor], variables: Sequence[Variable] | None = None) -> Any:
        """Unscale gradients, update the parameters if they are finite, and update the scale.

        Args:
            gradients: The gradients of the loss from `amp.scale_loss`, or the result of ``scaler.unscale_``.
            variables: The variables that they belong to; None for `parameters`.

        Returns:
            A bool scalar tensor: whether the update was applied.

        Raises:
            RuntimeError: The loss was never scaled.
            ValueError: There is not one gradient for each variable.
        """
        variables = list(self.parameters if variables is None else variables)
        if self.scaler is None:
            drive(self).apply(list(gradients), variables)
            return backend.to_tensor(True)
        object.__setattr__(self, "_stepping", True)
        try:
            applied = self.scaler.step(self, list(gradients), variables)
        finally:
            object.__setattr__(self, "_stepping", False)
        self.scaler.update()
        return applied

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Tensor, Tensor]]) -> Any:
        """Call `step` with Keras's pairs of gradients and variables.

        Args:
            grads_and_vars: Pairs of gradient and variable.

        Returns:
            A bool scalar tensor: whether the update was applied.
        """
        pairs = list(grads_and_vars)
        return self.step([gradient for gradient, _ in pairs], [variable for _, variable in pairs])

    def claim(self, by: ScaledBy) -> None:
        """Record what scales the loss; a second one is refused, so that the loss is never scaled twice.

        Raises:
            ValueError: Something else scales it.
        """
        if self._scaled_by not in (None, by):
            raise ValueError(
                f"amp.initialize: expected the loss of an optimizer to be scaled by one; got {by} after "
                f"{self._scaled_by}. Write a loop with amp.scale_loss, or a Model, not both."
            )
        object.__setattr__(self, "_scaled_by", by)

    # ---- state ----------------------------------------------------------------------------------------------------
    @property
    def global_step(self) -> Any:  # type: ignore[override]
        """The number of updates applied so far."""
        return self.driver.iterations

    @property
    def _counter(self) -> Any:
        """The variable that counts the updates."""
        return self.driver.counter

    def _own_lr(self) -> Any:
        """Return the learning rate of the next update, for parameters whose group has none of its own."""
        return self.driver.learning_rate

    def state_variables(self) -> list[Variable]:
        """Return every variable of the inner optimizer."""
        return self.driver.state_variables()

    def own_parameters(self) -> dict[str, Variable]:
        """Return none: they belong to the inner optimizer."""
        return {}

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("inner")
        if inner is None or name.startswith("__"):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'.")
        return getattr(inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "learning_rate" and "inner" in self.__dict__:
            setattr(self.inner, name, value)
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"AmpOptimizer({type(self.inner).__name__})"


def checked_driver(inner: Optimizer) -> OptimizerDriver:
    """Return the driver of an optimizer that an `AmpOptimizer` can wrap.

    Raises: TypeError if it is not an optimizer. ValueError if it divides by a loss scale of its own, averages the
    weights, or is an `AmpOptimizer`.
    """
    if isinstance(inner, AmpOptimizer):
        raise checks.fail_value("amp.initialize", "an optimizer is initialized once", inner, "a new optimizer")
    driver = drive(inner)
    if driver.loss_scale != 1.0:
        raise checks.fail_value(
            "amp.initialize", "the scaler divides the gradients, so the optimizer must not do it as well",
            f"loss_scale={driver.loss_scale:g}", f"{type(inner).__name__}(...) without it",
        )
    if getattr(inner, "use_ema", False):
        raise checks.fail_value(
            "amp.initialize", "the optimizer's averages would not become the weights", "use_ema=True", "use_ema=False"
        )
    return driver


def trained_by(optimizer: Optimizer, network: Network) -> list[Variable]:
    """Return the variables that an optimizer trains: its own, or the network's for a Keras optimizer."""
    if isinstance(optimizer, Optimizer):
        return list(optimizer.parameters)
    return list(network.trainable_weights if isinstance(network, keras.Layer) else network.trainable_params())


class _AmpDriver(CellDriver):
    """The driver of an `AmpOptimizer`, whose scaler a train step takes over."""

    optimizer: AmpOptimizer
    chosen_scaling = True

    @property
    def own_scaler(self) -> Any:  # type: ignore[override]
        return None if self.optimizer.scaler is None else self.optimizer.scaler.state

    def claim_scaler(self) -> None:
        self.optimizer.claim("a train step")


register_driver(AmpOptimizer, _AmpDriver)
