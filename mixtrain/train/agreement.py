"""`Agreement`: what the processes of a run do alike: their calls, their learning rate, and where they end."""

from __future__ import annotations

from collections.abc import Mapping

from mixtrain.distribution.processes import check_alike, in_any_process
from mixtrain.train.callback.rates import settable_rate
from mixtrain.train.run_context import RunContext


class Agreement:
    """Lets no process wait for another that has gone elsewhere.

    Args:
        where: Who asks, for errors.
        calls: What the number of steps in each compiled call depends on, by name.
        controls: Whether a callback of this process needs control between steps, and so may end the run there.

    Raises:
        ValueError: The calls differ; in every process.
    """

    def __init__(self, where: str, calls: Mapping[str, float], controls: bool) -> None:
        self._where = where
        check_alike(where, calls)
        self._asks_in_epochs = in_any_process(controls)

    def stopped(self, run_context: RunContext, *, in_epoch: bool) -> bool:
        """Return whether the run ends here, in all processes, since one of them asks for it.

        In an epoch they ask each other only where a callback needs control, for it takes a reduction for each step.
        """
        if in_epoch and not self._asks_in_epochs:
            return False
        if not in_any_process(run_context.get_stop_requested()):
            return False
        run_context.request_stop()
        return True

    def check_rate(self, run_context: RunContext) -> None:
        """Check that no process has set another learning rate, with which its weights would become others.

        Raises:
            ValueError: One has; in every process.
        """
        rate = settable_rate(run_context.original_args())
        check_alike(self._where, {"the learning rate after an epoch": -1 if rate is None else rate})
