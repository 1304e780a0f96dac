"""`Watch`: a callback of the library's own that warns, and keeps what it said for the report."""

from __future__ import annotations

import warnings
from typing import Final

from mixtrain.dtype import HALF_DTYPES
from mixtrain.step.train_step import TrainStep
from mixtrain.train.callback.callback import Callback
from mixtrain.train.networks import Networks
from mixtrain.train.run_context import RunContext

# As `sample_every`: no step but the first of a run is sampled.
FIRST_ONLY: Final = 2**62


class Watch(Callback):
    """Base class of callbacks that look at some batches of a run, before their steps.

    Args:
        networks: The networks of the Model.

    Attributes:
        told: What was warned of in the last run.
    """

    def __init__(self, networks: Networks) -> None:
        super().__init__()
        self._networks = networks
        self.sample_every = FIRST_ONLY
        self.told: list[str] = []

    @property
    def active(self) -> bool:
        """Whether the next run is looked at: some layers are low, in the library's own step and one process."""
        networks = self._networks
        own = networks.optimizer is not None and isinstance(networks.step, TrainStep)
        return own and not networks.in_processes and self._low()

    def _low(self) -> bool:
        """Whether layers compute in a precision that is looked at: half."""
        return bool(self._networks.precision.plan.compute_dtypes().intersection(HALF_DTYPES))

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forget what an earlier run was told."""
        self.told, self.sample_every = [], FIRST_ONLY
        super().on_train_begin(run_context)

    def tell(self, text: str) -> None:
        """Warn, and keep the sentence."""
        self.told.append(text)
        warnings.warn(f"Model: {text}", stacklevel=3)
