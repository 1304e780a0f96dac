"""`GradScaler`: PyTorch's gradient scaler for custom training loops, a shell over the loss-scaling rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, boundary, checks
from mixtrain.compat.pytorch import scaler_gradients as gradients
from mixtrain.compat.pytorch.changeable_scale import ChangeableScale, checked_growth
from mixtrain.compat.pytorch.scaler_stages import OptimizerStage, ScalerStages
from mixtrain.loss_scale.rule import SMALLEST_NORMAL, checked_scale
from mixtrain.typing import Optimizer, Tensor, TensorLike, Tree, Variable


class GradScaler:
    """Scales losses, unscales gradients, skips updates that are not finite, and updates the scale.

    Gradients are values, not attributes of parameters: `unscale_` returns them and `step` takes them. One scaler serves
    several optimizers and losses. An optimizer with finite gradients steps even if another is skipped; `update`, once
    per iteration, lowers the scale if any gradients were not finite. Works eagerly, compiled and with XLA.

    Args:
        init_scale: The first scale, a positive number.
        growth_factor: Multiplies the scale after `growth_interval` consecutive good iterations, above 1.
        backoff_factor: Multiplies the scale after an iteration with non-finite gradients, between 0 and 1.
        growth_interval: Number of consecutive good iterations before the scale grows.
        enabled: False to pass everything through.

    Attributes:
        state: The scale and its counters, a `LossScaleState`.

    Raises: TypeError if an argument has the wrong type. ValueError if an argument is out of range.

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

    __module__ = "mixtrain.loss_scale.grad_scaler"  # By which pickles name it.

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:
        where = "GradScaler"
        start = checked_scale(where, "init_scale", init_scale, example=2.0**16, minimum=SMALLEST_NORMAL)
        rule = checked_growth(where, growth_factor, backoff_factor, growth_interval)
        self._enabled = checks.boolean(where, "enabled", enabled)
        self.state = ChangeableScale(start, rule)
        # The number of times gradients were checked since the last update, and how often they were not finite. On the
        # device, because `update` may run in another compiled function than the checks.
        self._checks = keras.Variable(np.zeros(2, np.int32), trainable=False, dtype="int32", name="looks")
        self._stages = ScalerStages()
        self._scaled = False

    @backend.without_autograph
    def scale(self, outputs: Tree) -> Tree:
        """Multiply a loss, or each in a tuple, list or dict, by the scale, in at least float32; None stays None."""
        if not self._enabled:
            return outputs
        self._scaled = True
        return _like_inputs(gradients.all_scaled(outputs, self.state.loss_scale), outputs)

    @backend.without_autograph
    def unscale_(self, grads: Tree, optimizer: Optimizer) -> Tree:
        """Divide the gradients of an optimizer by the scale, to clip or inspect them before `step`.

        Call it once per optimizer and iteration, when its gradients are complete. Without it `step` unscales.

        `grads`: A tuple or list of gradients: dense, sparse (they stay sparse) or None. `optimizer`: The mixtrain or
        Keras optimizer that gets the gradients.

        Returns: A tuple or list of the same length, in at least float32. `step` will not unscale them again. In place
            of the next values of float8 scales there are zeros, which count in no norm; `step` applies the values.
            They are known by `value_and_grad`; for gradients of another origin, build a Keras optimizer before.

        Raises: RuntimeError if it, or `step`, was already called since the last `update`; or `scale` was never called.
            TypeError if `grads` is not a tuple or list, or `optimizer` is not an optimizer. ValueError if all gradients
            are None, or the optimizer divides by a loss scale of its own.
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
        to_store = gradients.are_next_values(grads, optimizer)
        unscaled, finite = gradients.unscaled_to_clip(grads, self.state.loss_scale, to_store)
        self._count_check(finite)
        self._stages.put(OptimizerStage(optimizer, finite, grads, to_store))
        return _like_inputs(unscaled, grads)

    @backend.without_autograph
    def step(self, optimizer: Optimizer, grads: Sequence[Tensor], variables: Sequence[Variable] | None = None) -> Any:
        """Apply gradients if all of them are finite; otherwise leave the variables and the optimizer unchanged.

        `optimizer`: A mixtrain or Keras optimizer. `grads`: A tuple or list of gradients, dense, sparse or None: those
        that `unscale_` returned, clipped or not; without `unscale_`, the gradients of the scaled loss. `variables`: The
        variables of the gradients, in their order; None for those of a mixtrain optimizer.

        Returns: Whether the update was applied, a bool scalar tensor.

        Raises: RuntimeError if it was already called since the last `update`; `scale` was never called; or `grads` are
            those passed to `unscale_`. TypeError if `grads` is not a tuple or list, or `optimizer` is not an optimizer.
            ValueError if all gradients are None, their number is not that of the variables, the optimizer divides by a
            loss scale of its own, or `unscale_` could not know which of them are next values.
        """
        driver = gradients.scaled_driver("GradScaler.step", optimizer)
        gradients.check_gradients("GradScaler.step", grads)
        variables = gradients.variables_of("GradScaler.step", driver, grads, variables)
        driver.build(variables)
        if not self._enabled:
            gradients.apply(driver, grads, variables)
            return _like_inputs(backend.to_tensor(True), grads)
        self._check_scaled("step")
        stage, passed = self._stages.find(optimizer), grads
        if stage is None:
            grads, finite = gradients.all_unscaled(grads, self.state.loss_scale, variables)
        else:
            stage.check_step(grads, variables)
            grads = stage.with_next_values(grads, variables)
            finite = keras.ops.logical_and(stage.finite, backend.all_finite(grads))
        self._count_check(finite)
        backend.cond(
            finite, lambda: gradients.apply(driver, grads, variables), lambda: None,
            writes=[*variables, *driver.state_variables()],
        )
        self._stages.put(OptimizerStage(optimizer, None))
        return _like_inputs(finite, passed)

    @backend.without_autograph
    def update(self, new_scale: TensorLike | None = None) -> None:
        """Update the scale at the end of an iteration: down if gradients were not finite, up after enough good ones.

        `new_scale`: A positive number or scalar tensor to set the scale to instead; the growth tracker stays.

        Raises: RuntimeError if there was no `unscale_` or `step` since the last `update`. TypeError if `new_scale` is
            not a number. ValueError if `new_scale` is out of range.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self.state.loss_scale.assign(gradients.new_scale("GradScaler.update", new_scale))
        elif backend.is_tracing():
            if self._stages.none_anywhere():
                raise _nothing_checked()
            checked, bad = keras.ops.unstack(backend.snapshot(self._checks), 2)
            if self._stages.some_here():
                self.state.advance(bad == 0)
            else:  # The steps, if any, ran in other compiled functions: only the device knows.
                backend.cond(checked > 0, lambda: self.state.advance(bad == 0), lambda: None)
        else:
            checked, bad = backend.to_numpy(self._checks).tolist()
            if not checked:
                raise _nothing_checked()
            self.state.advance(bad == 0)
        self._checks.assign(np.zeros(2, np.int32))
        self._stages.clear(everything=new_scale is not None)

    @backend.without_autograph
    def get_scale(self) -> Any:
        """Return the scale, a float; in a function being compiled a float32 scalar tensor; 1.0 if disabled."""
        return gradients.reading(self.state.loss_scale, float) if self._enabled else 1.0

    @backend.without_autograph
    def get_growth_tracker(self) -> Any:
        """Return the number of consecutive good iterations, an int; in a function being compiled a tensor."""
        return gradients.reading(self.state.good_steps, int) if self._enabled else 0

    def get_growth_factor(self) -> float:
        """Return the factor of the scale after `get_growth_interval()` consecutive good iterations."""
        return float(self.state.rule.factor)

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor, above 1; functions that are already compiled follow."""
        self._change(growth_factor=new_factor)

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after an iteration with non-finite gradients."""
        return float(self.state.rule.backoff)

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the backoff factor, between 0 and 1; functions that are already compiled follow."""
        self._change(backoff_factor=new_factor)

    def get_growth_interval(self) -> int:
        """Return the number of consecutive good iterations before the scale grows."""
        return int(self.state.rule.window)

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the growth interval, an int; functions that are already compiled follow."""
        self._change(growth_interval=new_interval)

    def is_enabled(self) -> bool:
        """Whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return scale, factors, interval and growth tracker under PyTorch's keys; {} if disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), **self._settings(), "_growth_tracker": self.get_growth_tracker()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a `state_dict()` of this class or of PyTorch's; without effect if disabled.

        `state_dict`: A dict with "scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker".

        Raises: RuntimeError if the dict is empty, so a disabled scaler returned it. TypeError if `state_dict` is not a
            dict, or a value is not a number. ValueError if a key is missing, or a value is out of range.
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
        # Equal settings are not checked again: a constant scale has factors that `checked_growth` refuses.
        if settings != self._settings():
            self._change(**settings)
        self.state.loss_scale.assign(scale)
        self.state.counts.assign([tracker, *backend.to_numpy(self.state.counts)[1:].tolist()])

    def _settings(self) -> dict[str, Any]:
        return {
            "growth_factor": self.get_growth_factor(), "backoff_factor": self.get_backoff_factor(),
            "growth_interval": self.get_growth_interval(),
        }

    def _count_check(self, finite: Tensor) -> None:
        """Count that gradients were checked, and whether they were not finite."""
        self._checks.assign_add(keras.ops.stack([1, 1 - keras.ops.cast(finite, "int32")]))

    def _check_scaled(self, name: str) -> None:
        if not self._scaled:
            raise RuntimeError(
                f"GradScaler.{name}: the loss must have been scaled; got {name}() before scale(). "
                "Write gradients of scaler.scale(loss), not of loss."
            )

    def _change(self, **settings: Any) -> None:
        self.state.change_rule(checked_growth("GradScaler", **{**self._settings(), **settings}))


def _like_inputs(results: Tree, inputs: Tree) -> Tree:
    """Return Tensors if there are some among the inputs, so that their methods (`gradient.norm()`) work on the results.

    The mode of the call does not matter: a gradient tape inside `jit` needs the tensors of the backend.
    """
    given_tensors = any(isinstance(value, boundary.UserTensor) for value in keras.tree.flatten(inputs))
    return boundary.to_tensors(results) if given_tensors else results


def _nothing_checked() -> RuntimeError:
    return RuntimeError(
        "GradScaler.update: gradients must have been looked at since the last update(); got no unscale_() and no "
        "step(). Write scaler.step(optimizer, grads, variables) first, and scaler.update() once per iteration."
    )


# Its `__module__` would hide its example from doctest.
__test__ = {"GradScaler": GradScaler}
