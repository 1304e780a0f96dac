"""Loss-scale managers, which users pass to `Model`: thin shells over the rule and its state."""

from __future__ import annotations

import abc
import functools
import numbers
import warnings
from typing import Any, Final, Literal

from mixtrain import backend, checks, faces
from mixtrain.loss_scale.rule import STATIC, LossScaleState, checked_rule, checked_scale

# The scale at which the search of init_loss_scale="auto" starts; it only goes down from there.
_SEARCHED_FROM: Final = 2.0**24


class LossScaleManager(abc.ABC):
    """Base class of loss-scale managers; subclasses define `get_loss_scale` and `update_loss_scale`.

    If `get_update_cell` returns None, the manager is driven from Python: `update_loss_scale` is called after each step
    with its overflow flag, and `get_loss_scale` returns the scale of the next step.

    Raises: TypeError if a subclass that lacks one of the two methods is instantiated.
    """

    @abc.abstractmethod
    def get_loss_scale(self) -> Any:
        """Return the loss scale of the next step."""

    @abc.abstractmethod
    def update_loss_scale(self, overflow: Any) -> None:
        """Update the loss scale after a step. `overflow`: Whether the gradients of the step are not finite."""

    def get_update_cell(self) -> Any:
        """Return the cell that updates the scale inside a compiled step, or None to be driven from Python."""
        return None

    def get_drop_overflow_update(self) -> bool:
        """Whether an overflowing step is skipped; True unless overridden."""
        return True


class FixedLossScaleManager(LossScaleManager):
    """A constant loss scale.

    Args:
        loss_scale: The scale, at least 1.
        drop_overflow_update: Whether a step whose gradients overflow is skipped. With False the optimizer divides by
            the scale: pass it the same ``loss_scale=`` (mixtrain divides for Keras optimizers).

    Raises: TypeError if `loss_scale` is not a number, or `drop_overflow_update` is not a bool. ValueError if
        `loss_scale` is under 1 or not finite in float32.

    Example: ``FixedLossScaleManager(1024.0, drop_overflow_update=False)``.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._loss_scale = checked_scale("FixedLossScaleManager", "loss_scale", loss_scale, example=128.0)
        self._drop_overflow_update = checks.boolean(
            "FixedLossScaleManager", "drop_overflow_update", drop_overflow_update
        )

    def get_loss_scale(self) -> float:
        return self._loss_scale

    def update_loss_scale(self, overflow: Any) -> None:
        """Do nothing: the scale is constant."""

    def get_drop_overflow_update(self) -> bool:
        return self._drop_overflow_update

    def get_update_cell(self) -> Any:
        """Return the update cell, or None if overflowing steps are not skipped."""
        return faces.face("fixed_update_cell", self._loss_scale) if self._drop_overflow_update else None

    def new_state(self) -> LossScaleState:
        """Return the state of a training run."""
        return LossScaleState(self._loss_scale, STATIC)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {"loss_scale": self._loss_scale, "drop_overflow_update": self._drop_overflow_update}


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that every overflow lowers and every window of good steps raises.

    `get_loss_scale` returns the current value, in sink feed too: the manager and the compiled step share one state.

    Args:
        init_loss_scale: The first scale, at least 1. With "auto" a `Model` finds it on the first batch: the batch is
            repeated at smaller scales, from 2**24 down, until its update is applied. No step is lost.
        scale_factor: Factor by which the scale is divided and multiplied, greater than 1.
        scale_window: Number of consecutive good steps before the scale grows.

    Raises: TypeError if an argument has the wrong type. ValueError if an argument is out of range.

    Example: ``DynamicLossScaleManager(init_loss_scale=2**16, scale_window=1000)``.
    """

    def __init__(
        self, init_loss_scale: float | Literal["auto"] = 2**24, scale_factor: float = 2, scale_window: int = 2000
    ) -> None:
        where = type(self).__name__
        self._finds_scale = isinstance(init_loss_scale, str) and init_loss_scale == "auto"
        if self._finds_scale:
            init_loss_scale = _SEARCHED_FROM
        self._init = checked_scale(where, "init_loss_scale", init_loss_scale, example=2.0**24)
        self._rule = checked_rule(where, scale_factor, scale_window)
        if scale_factor >= 100 and float(scale_factor).is_integer() and self._init < 100:
            warnings.warn(
                f"{where}: scale_factor={scale_factor:g} looks like a window: by position the arguments are "
                f"init_loss_scale={self._init:g} and scale_factor={scale_factor:g}. If a window was meant, write "
                f"{where}(init_loss_scale=2**24, scale_factor={self._init:g}, scale_window={int(scale_factor)}).",
                stacklevel=2,
            )
        self._handed_out = False

    @functools.cached_property
    def _state(self) -> LossScaleState:
        # Made when it is used: a script may make the manager before it imports the layers whose Parameters the scale
        # then is one of.
        return LossScaleState(self._init, self._rule)

    @property
    def finds_scale(self) -> bool:
        """Whether the first scale is to be found on the first batch."""
        return self._finds_scale

    @property
    def scale_factor(self) -> float:
        """Factor by which the scale is divided and multiplied."""
        return self._rule.factor

    @property
    def scale_window(self) -> int:
        """Number of consecutive good steps before the scale grows."""
        return self._rule.window

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        init = "auto" if self._finds_scale else self._init
        return {"init_loss_scale": init, "scale_factor": self.scale_factor, "scale_window": self.scale_window}

    def get_loss_scale(self) -> float:
        return self._state.current_scale()

    def update_loss_scale(self, overflow: Any) -> None:
        """Update the scale after a step. Raises: TypeError if `overflow` has no truth value."""
        value = backend.to_numpy(overflow).reshape(-1)[0] if backend.is_tensor(overflow) else overflow
        if value is None or not (isinstance(value, numbers.Number) or hasattr(value, "__bool__")):
            raise checks.fail_type("update_loss_scale", "overflow must be True or False", overflow, "True")
        self._state.advance(not bool(value))

    def get_update_cell(self) -> Any:
        """Return the update cell of one training run; for another run, one with a new state at the first scale."""
        state = self.new_state()
        return faces.face("dynamic_update_cell", self._init, self._rule.factor, self._rule.window, state=state)

    def new_state(self) -> LossScaleState:
        """Return the state of one training run; for another run, a new one at the first scale."""
        if self._handed_out:
            warnings.warn(
                "DynamicLossScaleManager: this manager already drives a Model, which keeps its own loss scale; the new "
                "one starts again from the first scale, and get_loss_scale() follows it. "
                "Write a new DynamicLossScaleManager(...) for each Model.",
                stacklevel=3,
            )
            self._state = LossScaleState(self._init, self._rule)
        self._handed_out = True
        return self._state


def owner_of_update_cell(manager: LossScaleManager) -> type:
    """Return the class that defines a manager's `get_update_cell`."""
    return next(base for base in type(manager).__mro__ if "get_update_cell" in vars(base))


def host_driven(manager: LossScaleManager) -> bool:
    """Whether a manager's scale must be updated from Python after every step.

    This is the case without an update cell, and for a subclass that overrides `update_loss_scale` or `get_loss_scale`
    of a class whose update cell does not know the override.
    """
    if not manager.get_drop_overflow_update():
        return False
    owner, mro = owner_of_update_cell(manager), type(manager).__mro__
    if owner is LossScaleManager:
        return True
    subclasses = mro[: mro.index(owner)]
    return any(name in vars(base) for base in subclasses for name in ("update_loss_scale", "get_loss_scale"))
