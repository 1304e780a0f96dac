"""mixtrain's exceptions, besides ValueError and TypeError."""

from __future__ import annotations


class MixtrainError(Exception):
    """Base class of mixtrain's exceptions.

    Example:
        >>> issubclass(LossScaleExhausted, MixtrainError)
        True
    """


class LossScaleExhausted(MixtrainError, RuntimeError):
    """Training stopped because steps kept overflowing and a smaller loss scale did not help.

    Attributes:
        step: The number of the step that stopped the run, counted from 1.
        loss_scale: The loss scale of that step.
        layer: Path of the first layer whose output or gradient was not finite, or None.
    """

    def __init__(self, message: str, *, step: int, loss_scale: float, layer: str | None) -> None:
        super().__init__(message)
        self.step = step
        self.loss_scale = loss_scale
        self.layer = layer


class PrecisionRuleError(MixtrainError, ValueError):
    """A precision rule matches nothing, or two rules contradict each other."""


class UnsupportedBackendError(MixtrainError, ImportError):
    """The Keras backend in use is not supported."""


class CheckpointError(MixtrainError, ValueError):
    """A file is not a mixtrain checkpoint, or is damaged or malformed; the message names it."""
