"""`Checkpoint`: the content of a checkpoint file: parameters by name, and the state that a resumed run needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class RunState:
    """The state besides parameters with which a resumed run continues as if it had not been interrupted.

    Attributes:
        arrays: Counts of loss scaling and states of random-number generators by name, as returned by `values.stored`.
        facts: Plain values: "plan", "seed", and if a run wrote the file "epoch", "step" and "batch_num"; for data of
            unknown size, whose "batch_num" is 0, also "epoch_step", the batches since the last complete epoch.
    """

    arrays: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Checkpoint(dict[str, Any]):
    """A dict from name to Parameter, tensor or str, with the state of the run in `run_state`.

    Entries may be renamed and removed in place; a plain dict made from it has no `run_state`.

    Args:
        parameters: The parameters by name.
        run_state: Loss-scale counts, random states, precision plan, position in the run.
        file: The file that it was read from, for error messages.

    Example: ``load_checkpoint("lenet-3_1875.ckpt").initial_epoch``.
    """

    def __init__(
        self, parameters: Mapping[str, Any] | None = None, *, run_state: RunState | None = None,
        file: str = "a Checkpoint of no file",
    ) -> None:
        super().__init__(parameters or {})
        self.file = file
        self.run_state = RunState() if run_state is None else run_state

    @property
    def epoch(self) -> int | None:
        """Number of the epoch in which the file was written, from 1; None if no run wrote it."""
        return self.run_state.facts.get("epoch")

    @property
    def step(self) -> int | None:
        """Number of the step after which the file was written, from 1; None if no run wrote it."""
        return self.run_state.facts.get("step")

    @property
    def initial_epoch(self) -> int:
        """Number of complete epochs: the argument of `Model.train` with which it resumes."""
        return self.position[0]

    @property
    def initial_step(self) -> int:
        """Number of batches of the epoch after `initial_epoch` that were trained on."""
        return self.position[1]

    @property
    def position(self) -> tuple[int, int]:
        """`initial_epoch` and `initial_step`: of two files of a run, the later one has the greater position."""
        return position_of(self.run_state.facts)


def position_of(facts: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of complete epochs, and of batches since, from the facts of a checkpoint."""
    epoch, step, batch_num = (facts.get(name) or 0 for name in ("epoch", "step", "batch_num"))
    if not epoch:
        return 0, 0
    done = step % batch_num if batch_num else facts.get("epoch_step")
    return (epoch, 0) if done == 0 else (epoch - 1, done or 0)


def said(position: tuple[int, int]) -> str:
    """Describe a position in a run: ``said((2, 3))`` is "after epoch 2 and 3 batches"."""
    epochs, batches = position
    return f"after epoch {epochs}" + (f" and {batches} batches" if batches else "")
