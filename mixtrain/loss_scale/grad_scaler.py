"""`GradScaler`: PyTorch's scaler for loops that users write, a shell over the loss-scaling rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.loss_scale import scaler_gradients as gradients
from mixtrain.loss_scale.arguments import checked_growth, checked_scale
from mixtrain.loss_scale.rule import SMALLEST_NORMAL, LossScaleState
from mixtrain.loss_scale.scaler_stages import OptimizerStage, ScalerStages


class GradScaler:
    """Scales losses, unscales gradients, skips updates that are not finite, and moves the scale.

    Gradients are values here, not attributes of parameters: `unscale_` returns them and `step` takes them. One scaler
    serves several optimizers and several losses: one whose gradients are finite steps even where another is skipped;
    `update`, once per iteration, lowers the scale where any were not finite. It works eagerly, compiled and with XLA.

    Args:
        init_scale: The first scale, a positive number.
        growth_factor: What the scale is multiplied by after `growth_interval` good iterations in a row, above 1.
        backoff_factor: What it is multiplied by after an iteration with gradients that are not finite, under 1.
        growth_interval: Good iterations in a row before the scale grows.
        enabled: False to pass everything through.

    Attributes:
        state: The scale and the counts kept beside it, a `LossScaleState`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
        >>> optimizer, scaler = nn.SGD(net.trainable_params(), 0.5), GradScaler(init_scale=2.0**10)
        >>> forward = lambda x, y: scaler.scale(nn.MSELoss()(net(x), y))
        >>> gradient_of = mixtrain.value_and_grad(forward, None, optimizer.parameters)
        >>> loss, grads = gradient_of(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))
        >>> bool(scaler.step(optimizer, grads, optimizer.parameters)), net.weight.asnumpy().tolist()
        (True, [[2.0]])
        >>> scaler.update()
        >>> scaler.get_scale(), scaler.get_growth_tracker()
        (1024.0, 1)

    Source: PyTorch, `torch.amp.GradScaler`.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        where = "GradScaler"
        start = checked_scale(where, "init_scale", init_scale, example=2.0**16, minimum=SMALLEST_NORMAL)
        rule = checked_growth(where, growth_factor, backoff_factor, growth_interval)
        self._enabled = checks.boolean(where, "enabled", enabled)
        self.state = LossScaleState(start, rule, changeable=True)
        # How many times gradients were looked at since the last update, and how many of them were not finite.
        self._looks = keras.Variable(np.zeros(2, np.int32), trainable=False, dtype="int32", name="looks")
        self._stages = ScalerStages()
        self._scaled = False

    # ---- the four calls of an iteration -----------------------------------------------------------------------
    @backend.as_written
    def scale(self, outputs: Any) -> Any:
        """Return a loss, or each tensor of a structure of losses, in at least float32 and multiplied by the scale.

        Args:
            outputs: A tensor, or a tuple, list or dict of tensors; None entries stay None.
        """
        if not self._enabled:
            return outputs
        self._scaled = True
        return gradients.all_scaled(outputs, self.state.loss_scale)

    @backend.as_written
    def unscale_(self, grads: Any, optimizer: Any) -> Any:
        """Return an optimizer's gradients divided by the scale, to clip or look at them before `step`.

        Call it once per optimizer and iteration, when its gradients are complete; `step` does it where you do not.

        Args:
            grads: A tuple or list of gradients, dense, sparse (they stay so) or None.
            optimizer: The mixtrain or Keras optimizer that they are for.

        Returns:
            A tuple or list of the same length, in at least float32. `step` remembers that they are unscaled.

        Raises:
            RuntimeError: It was called already, or `step` was, since the last `update`; or `scale` never was.
            TypeError: `grads` is no tuple or list, or `optimizer` no optimizer.
            ValueError: All gradients are None, or the optimizer divides by a loss scale of its own.
        """
        gradients.scaled_driver("GradScaler.unscale_", optimizer)
        gradients.check_gradients("GradScaler.unscale_", grads)
        if not self._enabled:
            return grads
        self._check_scaled("unscale_")
        stage = self._stages.find(optimizer)
        if stage is not None:
            raise RuntimeError(
                f"GradScaler.unscale_: it must be called once per iteration for {type(optimizer).__name__}, before "
                f"step(); got a call after {'step()' if stage.stepped else 'unscale_()'}. Write scaler.update() at the "
                "end of each iteration, and unscale_() once before step()."
            )
        unscaled, finite = gradients.all_unscaled(grads, self.state.loss_scale)
        self._note(finite)
        self._stages.put(OptimizerStage(optimizer, finite, grads))
        return unscaled

    @backend.as_written
    def step(self, optimizer: Any, grads: Sequence[Any], variables: Sequence[Any] | None = None) -> Any:
        """Update an optimizer's variables where the gradients are finite; otherwise leave them and the optimizer alone.

        Args:
            optimizer: A mixtrain or Keras optimizer.
            grads: A tuple or list of gradients, dense, sparse or None: those that `unscale_` returned, clipped or not;
                without `unscale_`, the gradients of the scaled loss.
            variables: The variables that they belong to, in their order; None for those of a mixtrain optimizer.

        Returns:
            A bool scalar tensor: whether the update was applied.

        Raises:
            RuntimeError: It was called already since the last `update`; `scale` never was; or `unscale_` got `grads`.
            TypeError: `grads` is no tuple or list, or `optimizer` no optimizer.
            ValueError: All gradients are None, there is not one for each variable, or the optimizer divides by a loss
                scale of its own.
        """
        driver = gradients.scaled_driver("GradScaler.step", optimizer)
        gradients.check_gradients("GradScaler.step", grads)
        variables = gradients.variables_of("GradScaler.step", driver, grads, variables)
        driver.build(variables)
        if not self._enabled:
            gradients.apply(driver, grads, variables)
            return backend.to_tensor(True)
        self._check_scaled("step")
        stage = self._stages.find(optimizer)
        if stage is None:
            grads, finite = gradients.all_unscaled(grads, self.state.loss_scale)
        else:
            stage.check_step(grads)
            finite = keras.ops.logical_and(stage.finite, backend.all_finite(grads))
        self._note(finite)
        backend.cond(
            finite,
            lambda: gradients.apply(driver, grads, variables),
            lambda: None,
            writes=[*variables, *driver.state_variables()],
        )
        self._stages.put(OptimizerStage(optimizer, None))
        return finite

    @backend.as_written
    def update(self, new_scale: Any = None) -> None:
        """Move the scale at the end of an iteration: down where gradients were not finite, up after enough good ones.

        Args:
            new_scale: A positive number or scalar tensor that the scale is set to instead; the growth tracker stays.

        Raises:
            RuntimeError: There was no `unscale_` or `step` since the last `update`.
            TypeError: `new_scale` is not a number.
            ValueError: It is out of range.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self.state.loss_scale.assign(gradients.new_scale("GradScaler.update", new_scale))
        elif backend.is_tracing():
            if self._stages.none_anywhere():
                raise _nothing_to_go_by()
            looks = backend.snapshot(self._looks)
            if self._stages.some_here():
                self.state.advance(looks[1] == 0)
            else:  # The steps ran in other compiled functions; or they did not.
                backend.cond(looks[0] > 0, lambda: self.state.advance(looks[1] == 0), lambda: None)
        else:
            looked, bad = backend.to_numpy(self._looks).tolist()
            if not looked:
                raise _nothing_to_go_by()
            self.state.advance(bad == 0)
        self._looks.assign(np.zeros(2, np.int32))
        self._stages.clear(everything=new_scale is not None)

    # ---- what it is made of -----------------------------------------------------------------------------------
    @backend.as_written
    def get_scale(self) -> Any:
        """Return the scale, a float; in a function being compiled a float32 scalar tensor; 1.0 where disabled."""
        return gradients.reading(self.state.loss_scale, float) if self._enabled else 1.0

    @backend.as_written
    def get_growth_tracker(self) -> Any:
        """Return how many good iterations there were in a row, an int; in a function being compiled a tensor."""
        return gradients.reading(self.state.good_steps, int) if self._enabled else 0

    def get_growth_factor(self) -> float:
        """Return what the scale is multiplied by after `get_growth_interval()` good iterations in a row."""
        return float(self.state.rule.factor)

    def set_growth_factor(self, new_factor: float) -> None:
        """Change the growth factor to `new_factor`, above 1; in functions that are compiled already too."""
        self._change(growth_factor=new_factor)

    def get_backoff_factor(self) -> float:
        """Return what the scale is multiplied by after an iteration with gradients that are not finite."""
        return float(self.state.rule.backoff)

    def set_backoff_factor(self, new_factor: float) -> None:
        """Change the backoff factor to `new_factor`, between 0 and 1; in functions that are compiled already too."""
        self._change(backoff_factor=new_factor)

    def get_growth_interval(self) -> int:
        """Return how many good iterations in a row let the scale grow."""
        return int(self.state.rule.window)

    def set_growth_interval(self, new_interval: int) -> None:
        """Change the growth interval to `new_interval`, an int; in functions that are compiled already too."""
        self._change(growth_interval=new_interval)

    def is_enabled(self) -> bool:
        """Return whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return scale, factors, interval and growth tracker under PyTorch's keys; {} where disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), **self._settings(), "_growth_tracker": self.get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned, here or in PyTorch; nothing happens where disabled.

        Args:
            state_dict: A dict with "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker".

        Raises:
            RuntimeError: It is empty, so it was saved by a disabled scaler.
            TypeError: It is not a dict, or a value no number.
            ValueError: A key is missing, or a value out of range.
        """
        where = "GradScaler.load_state_dict"
        if not self._enabled:
            return
        checks.instance(where, "state_dict", state_dict, dict, "scaler.load_state_dict(other.state_dict())")
        if not state_dict:
            raise RuntimeError(
                f"{where}: state_dict must hold a scale; got an empty dict, as a disabled scaler gives. "
                "Write GradScaler(enabled=True) where it is saved, or do not load it."
            )
        missing = {"scale", *self._settings(), "_growth_tracker"} - set(state_dict)
        if missing:
            write = "scaler.load_state_dict(other.state_dict())"
            raise checks.fail_value(where, f"state_dict must hold {sorted(missing)}", sorted(state_dict), write)
        scale = checked_scale(where, "scale", state_dict["scale"], example=2.0**16, minimum=SMALLEST_NORMAL)
        tracker = checks.integer(where, "_growth_tracker", state_dict["_growth_tracker"], at_least=0)
        settings = {name: state_dict[name] for name in self._settings()}
        if settings != self._settings():  # They may be those of a constant loss scale.
            self._change(**settings)
        self.state.loss_scale.assign(scale)
        self.state.counts.assign([tracker, *backend.to_numpy(self.state.counts)[1:].tolist()])

    # ---- inside -----------------------------------------------------------------------------------------------
    def _settings(self) -> dict[str, Any]:
        return {
            "growth_factor": self.get_growth_factor(),
            "backoff_factor": self.get_backoff_factor(),
            "growth_interval": self.get_growth_interval(),
        }

    def _note(self, finite: Any) -> None:
        """Keep on the device that gradients were looked at, for an update that may run in another function."""
        self._looks.assign_add(keras.ops.stack([1, 1 - keras.ops.cast(finite, "int32")]))

    def _check_scaled(self, name: str) -> None:
        if not self._scaled:
            raise RuntimeError(
                f"GradScaler.{name}: the loss must have been scaled; got {name}() before scale(). "
                "Write gradients of scaler.scale(loss), not of loss."
            )

    def _change(self, **settings: Any) -> None:
        self.state.change_rule(checked_growth("GradScaler", **{**self._settings(), **settings}))


def _nothing_to_go_by() -> RuntimeError:
    return RuntimeError(
        "GradScaler.update: gradients must have been looked at since the last update(); got no unscale_() and no "
        "step(). Write scaler.step(optimizer, grads, variables) first, and scaler.update() once per iteration."
    )
