"""`StepsPerCall`: how many steps a compiled call should run, learned from how long steps take."""

from __future__ import annotations

import math
from typing import Final

from mixtrain.backend import GroupInfo

# What a call costs by itself, with processors that wait at its ends, is one to two milliseconds where steps are long:
# a transformer's steps of 45 ms took 0.95 of the time in calls of 0.3 seconds beside 0.1, and no less in calls of one
# second. Progress and Ctrl-C stay prompt.
SECONDS_A_CALL: Final = 0.3
MAX_STEPS: Final = 32
# Where nobody is told of steps, and batches need not lie in memory together.
MAX_UNREAD_STEPS: Final = 256
MAX_BYTES: Final = 2**26
_WAITED_FOR: Final = 4


class StepsPerCall:
    """Learns how long a step takes.

    Args:
        groups: When the backend gains by groups.

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
        """Run steps one by one from here on."""
        self._alone = True

    @property
    def waits(self) -> bool:
        """Whether the next call is learned from, and returns before its work is done."""
        return self._groups.early and self._learns()

    def _learns(self) -> bool:
        """Whether the next call is learned from: not the first of all, which compiles; and few to be waited for."""
        few = range(self._groups.after - _WAITED_FOR, self._groups.after)
        return self._calls > 0 and (not self._groups.early or self._calls in few)

    def learn(self, seconds: float, steps: int) -> None:
        """Take in how long a call of some steps took."""
        if self._learns():
            self._seconds = min(self._seconds, seconds / steps)
        self._calls += 1

    def estimate(self, batch_bytes: int, most: int = MAX_STEPS) -> int:
        """Return how many steps a call should run.

        Args:
            batch_bytes: Size of a batch: those of a call lie in memory together.
            most: How many at most.
        """
        if self._alone or self._calls < self._groups.after:
            return 1
        fit = SECONDS_A_CALL / max(self._seconds, SECONDS_A_CALL / most)
        # Rounded first: 0.3 / 0.1 is a little under 3.
        found = max(1, min(int(round(fit, 6)), MAX_BYTES // max(batch_bytes, 1)))
        size = self._groups.size
        return found if size is None else size if found >= size else 1
