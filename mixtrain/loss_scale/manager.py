"""Loss-scale managers: what a user hands to `Model`; thin shells over the rule and its state."""

from __future__ import annotations

import abc
import numbers
import warnings
from typing import Any, Final, Literal

from mixtrain import backend, checks
from mixtrain.loss_scale.arguments import checked_rule, checked_scale
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.loss_scale.update_cell import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell


# Where the search for the first loss scale begins.
_SEARCHED_FROM: Final = 2.0**24


class LossScaleManager(abc.ABC):
    """The base of loss-scale managers; a user's own defines `get_loss_scale` and `update_loss_scale`.

    A manager whose `get_update_cell` returns None is driven from Python: after every step `update_loss_scale` is
    called with whether it overflowed, and `get_loss_scale` gives the scale of the next.

    Raises:
        TypeError: A subclass that leaves one of the two out is instantiated.

    Source: MindSpore, `mindspore.amp.LossScaleManager`.
    """

    @abc.abstractmethod
    def get_loss_scale(self) -> Any:
        """Return the loss scale of the next step."""

    @abc.abstractmethod
    def update_loss_scale(self, overflow: Any) -> None:
        """Move the loss scale after a step.

        Args:
            overflow: Whether the step's gradients were not finite.
        """

    def get_update_cell(self) -> Any:
        """Return the cell that moves the scale inside a compiled step, or None to be driven from Python."""
        return None

    def get_drop_overflow_update(self) -> bool:
        """Return whether a step that overflows is dropped; True unless overridden."""
        return True


class FixedLossScaleManager(LossScaleManager):
    """A constant loss scale.

    Args:
        loss_scale: The scale, at least 1.
        drop_overflow_update: Whether a step whose gradients overflow is dropped. With False the optimizer divides:
            give it ``loss_scale=`` the same number (a Keras optimizer needs none, mixtrain divides for it).

    Raises:
        TypeError: `loss_scale` is not a number, or `drop_overflow_update` no bool.
        ValueError: `loss_scale` is under 1 or not finite in float32.

    Example:
        >>> FixedLossScaleManager(1024.0, False).get_loss_scale()
        1024.0

    Source: MindSpore, `mindspore.amp.FixedLossScaleManager`.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        self._loss_scale = checked_scale("FixedLossScaleManager", "loss_scale", loss_scale, example=128.0)
        self._drop_overflow_update = checks.boolean(
            "FixedLossScaleManager", "drop_overflow_update", drop_overflow_update
        )

    def get_loss_scale(self) -> float:
        """Return the scale."""
        return self._loss_scale

    def update_loss_scale(self, overflow: Any) -> None:
        """Do nothing: the scale stays."""

    def get_drop_overflow_update(self) -> bool:
        """Return whether a step that overflows is dropped."""
        return self._drop_overflow_update

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        """Return the update cell, or None where overflowing steps are not dropped."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with."""
        return {"loss_scale": self._loss_scale, "drop_overflow_update": self._drop_overflow_update}


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that is lowered by every overflow and raised after a window of good steps.

    `get_loss_scale` is the live value, in sink feed too: the manager and the compiled step share one state.

    Args:
        init_loss_scale: The first scale, at least 1. "auto": a `Model` finds it on the first batch, which is run again
            at smaller scales, from 2**24 on, until its update is applied; no step is lost to the search.
        scale_factor: What it is divided by and multiplied by, greater than 1.
        scale_window: Good steps in a row before it grows.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> manager = DynamicLossScaleManager(init_loss_scale=16, scale_factor=2, scale_window=3)
        >>> manager.update_loss_scale(True)
        >>> manager.get_loss_scale()
        8.0

    Source: MindSpore, `mindspore.amp.DynamicLossScaleManager`; Micikevicius et al., 2018.
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
        self._state = LossScaleState(self._init, self._rule)
        self._handed_out = False

    @property
    def finds_scale(self) -> bool:
        """Whether the first scale is found on the first batch."""
        return self._finds_scale

    @property
    def scale_factor(self) -> float:
        """What the scale is divided by and multiplied by."""
        return self._rule.factor

    @property
    def scale_window(self) -> int:
        """Good steps in a row before the scale grows."""
        return self._rule.window

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that it was made with."""
        init = "auto" if self._finds_scale else self._init
        return {"init_loss_scale": init, "scale_factor": self.scale_factor, "scale_window": self.scale_window}

    def get_loss_scale(self) -> float:
        """Return the live scale."""
        return self._state.present_scale()

    def update_loss_scale(self, overflow: Any) -> None:
        """Move the scale by one step.

        Args:
            overflow: Whether the step's gradients were not finite.

        Raises:
            TypeError: `overflow` is no truth value.
        """
        value = backend.to_numpy(overflow).reshape(-1)[0] if backend.is_tensor(overflow) else overflow
        if value is None or not (isinstance(value, numbers.Number) or hasattr(value, "__bool__")):
            raise checks.fail_type("update_loss_scale", "overflow must be True or False", overflow, "True")
        self._state.advance(not bool(value))

    def get_drop_overflow_update(self) -> bool:
        """Return True: a step that overflows is always dropped."""
        return True

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        """Return the update cell of one training run; a second run gets a state of its own, from the first scale."""
        if self._handed_out:
            warnings.warn(
                "DynamicLossScaleManager: this manager already drives a Model, which keeps its own loss scale; the new "
                "one starts again from the first scale, and get_loss_scale() follows it. "
                "Write a new DynamicLossScaleManager(...) for each Model.",
                stacklevel=2,
            )
            self._state = LossScaleState(self._init, self._rule)
        self._handed_out = True
        return DynamicLossScaleUpdateCell(
            self._init, self._rule.factor, self._rule.window, state=self._state
        )
