"""`StepsPerCall`: learns how long a step takes, and how many steps a compiled call should run."""

from __future__ import annotations

import math
from typing import Final

from mixtrain.backend import GroupInfo

# A call has an overhead of one to two milliseconds where steps are long, while processors wait at its ends: a
# transformer's steps of 45 ms took 0.95 of the time in calls of 0.3 seconds compared with 0.1, and no less in calls of
# one second. Calls this short keep progress and Ctrl-C prompt.
SECONDS_A_CALL: Final = 0.3
MAX_STEPS: Final = 32
# Without step hooks, where the compiled call reads its batches one after the other instead of a stack of them.
MAX_STREAMED_STEPS: Final = 256
# Maximum size of the stacked batches of a call.
MAX_BYTES: Final = 2**26
# Calls that are timed, by waiting for their results, where a call returns before its work is done.
_TIMED_CALLS: Final = 4


class StepsPerCall:
    """Measures the time of steps and estimates how many a call should run.

    `groups`: When the backend is faster with several steps per call.

    Example:
        >>> per_call = StepsPerCall(GroupInfo(after=2))
        >>> per_call.estimate(batch_bytes=1024)
        1
        >>> for _ in range(3):
        ...     per_call.learn(seconds=0.01, steps=1)
        >>> per_call.estimate(batch_bytes=1024), per_call.estimate(batch_bytes=2**25)
        (30, 2)
    """

    def __init__(self, groups: GroupInfo) -> None:
        self._groups = groups
        self._calls = 0
        self._seconds = math.inf
        self._alone = False

    def run_alone(self) -> None:
        """Run one step per call from now on."""
        self._alone = True

    @property
    def waits(self) -> bool:
        """Whether to wait for the results of the next call, which is timed but returns before its work is done."""
        return self._groups.early and self._learns()

    def _learns(self) -> bool:
        """Whether the next call is timed: not the first, which compiles; and only a few that must be waited for."""
        timed = range(self._groups.after - _TIMED_CALLS, self._groups.after)
        return self._calls > 0 and (not self._groups.early or self._calls in timed)

    def learn(self, seconds: float, steps: int) -> None:
        """Record the time of a call of some steps."""
        if self._learns():
            self._seconds = min(self._seconds, seconds / steps)
        self._calls += 1

    def estimate(self, batch_bytes: int, max_steps: int = MAX_STEPS) -> int:
        """Return how many steps a call should run.

        `batch_bytes`: Size of a batch; the batches of a call are stacked in memory. `max_steps`: Maximum number of
        steps.
        """
        if self._alone or self._calls < self._groups.after:
            return 1
        steps = SECONDS_A_CALL / max(self._seconds, SECONDS_A_CALL / max_steps)
        # Rounded first: 0.3 / 0.1 is a little under 3.
        steps = max(1, min(int(round(steps, 6)), MAX_BYTES // max(batch_bytes, 1)))
        size = self._groups.size
        return steps if size is None else size if steps >= size else 1
