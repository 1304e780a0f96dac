"""The group of processes that train together: this process alone until `communication.init`."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

# MindSpore's names of the group of all processes, one per communication library.
WORLD_NAMES: Final = ("hccl_world_group", "nccl_world_group", "mccl_world_group")


@dataclasses.dataclass(frozen=True)
class ProcessGroup:
    """The position of this process among those that train together.

    Attributes:
        rank: Index of this process.
        size: Number of processes.
        local_rank: Index among the processes of this machine.
        local_size: Number of processes on this machine.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


# How steps are spread over the processes, as set: "parallel_mode" and "gradients_mean", beside what has no effect.
settings: dict[str, Any] = {}


class _Joined:
    group: ProcessGroup | None = None


def current() -> ProcessGroup:
    """Return the group that this process has joined; without one, a group of this process alone."""
    return _Joined.group or ProcessGroup()


def has_joined() -> bool:
    """Whether this process has joined a group."""
    return _Joined.group is not None


def join(group: ProcessGroup | None) -> None:
    """Make this process a member of a group; None makes it a group of one."""
    _Joined.group = group
