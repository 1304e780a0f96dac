"""`Agreement`: keeps the processes of a run in step: their calls, their learning rate, and where they stop."""

from __future__ import annotations

from collections.abc import Mapping

from mixtrain.distribution.processes import check_equal, in_any_process
from mixtrain.train.callback.rates import settable_rate
from mixtrain.train.run_context import RunContext


class Agreement:
    """Prevents processes from waiting for another that runs other calls or has stopped.

    `where`: The caller, for errors. `settings`: The settings that determine the number of steps in each compiled call,
    by description. `controls`: Whether a callback of this process needs control between steps, and so may stop the run
    there.

    Raises: ValueError if the settings differ; raised in every process.
    """

    def __init__(self, where: str, settings: Mapping[str, float], controls: bool) -> None:
        self._where = where
        check_equal(where, settings)
        self._checks_in_epochs = in_any_process(controls)

    def stopped(self, run_context: RunContext, *, in_epoch: bool) -> bool:
        """Whether the run stops here, in all processes, because one of them requests it.

        Inside an epoch this is checked only if a callback needs control, as it takes a reduction in each step.
        """
        if in_epoch and not self._checks_in_epochs:
            return False
        if not in_any_process(run_context.get_stop_requested()):
            return False
        run_context.request_stop()
        return True

    def check_start(self, epochs: int, batches: int) -> None:
        """Check that all processes begin at the same place, whatever checkpoint each has found.

        Raises: ValueError if the places differ; raised in every process.
        """
        done = {"the epochs that the checkpoint of resume= has": epochs, "the batches after them": batches}
        check_equal(self._where, done)

    def check_rate(self, run_context: RunContext) -> None:
        """Check that all processes have the same learning rate, without which their weights would diverge.

        Raises: ValueError if the rates differ; raised in every process.
        """
        rate = settable_rate(run_context.original_args())
        check_equal(self._where, {"the learning rate after an epoch": -1 if rate is None else rate})
