"""The processes that train together, as this one knows them: it is alone until `communication.init` has joined them."""

from __future__ import annotations

import dataclasses
from typing import Final

# MindSpore's names of the group of all processes, by the library that connects them there.
WORLD_NAMES: Final = ("hccl_world_group", "nccl_world_group", "mccl_world_group")


@dataclasses.dataclass(frozen=True)
class ProcessGroup:
    """The place of this process among those that train together.

    Attributes:
        rank: Its number.
        size: How many there are.
        local_rank: Its number among those of its machine.
        local_size: How many are on its machine.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1


class _Joined:
    group: ProcessGroup | None = None


def current() -> ProcessGroup:
    """Return the group that this process has joined; one of its own where it has joined none."""
    return _Joined.group or ProcessGroup()


def has_joined() -> bool:
    """Whether this process has joined a group."""
    return _Joined.group is not None


def join(group: ProcessGroup | None) -> None:
    """Let this process be one of a group from here on; None lets it be alone."""
    _Joined.group = group
