"""Communication between processes, as one process means it: rank 0 of a group of 1."""

from __future__ import annotations

import os
from typing import Final

from mixtrain import checks

NCCL_WORLD_COMM_GROUP: Final = "nccl_world_group"
HCCL_WORLD_COMM_GROUP: Final = "hccl_world_group"
MCCL_WORLD_COMM_GROUP: Final = "mccl_world_group"

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_rank",
    "init",
    "release",
]

_SIZES: Final = ("RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE")


class GlobalComm:
    """Names of the communication in use.

    Example:
        >>> GlobalComm.WORLD_COMM_GROUP
        'hccl_world_group'

    Source: MindSpore, `mindspore.communication.GlobalComm`.
    """

    BACKEND: Final = ""
    WORLD_COMM_GROUP: Final = HCCL_WORLD_COMM_GROUP


def init(backend_name: str | None = None) -> None:
    """Begin communication; one process needs none.

    Args:
        backend_name: "hccl", "nccl", "mccl", or None.

    Raises:
        ValueError: Another backend.
        RuntimeError: The environment says that several processes train together.

    Example:
        >>> init("nccl")
        >>> get_rank(), get_group_size()
        (0, 1)

    Source: MindSpore, `mindspore.communication.init`.
    """
    if backend_name is not None:
        checks.one_of("init", "backend_name", backend_name, ("hccl", "nccl", "mccl"))
    for name in _SIZES:
        size = os.environ.get(name, "1")
        if size != "1":
            raise RuntimeError(
                f"init: training must run in one process; got {name}={size} in the environment, and each process would "
                f"train alone. Write {name}=1, or train a Keras model under tf.distribute."
            )


def release() -> None:
    """End communication. Example: ``release()``. Source: MindSpore, `mindspore.communication.release`."""


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's number among those of a group, 0.

    Args:
        group: Name of the group.

    Example:
        >>> get_rank()
        0

    Source: MindSpore, `mindspore.communication.get_rank`.
    """
    checks.instance("get_rank", "group", group, str, "no group")
    return 0


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return how many processes are in a group, 1.

    Args:
        group: Name of the group.

    Example:
        >>> get_group_size()
        1

    Source: MindSpore, `mindspore.communication.get_group_size`.
    """
    checks.instance("get_group_size", "group", group, str, "no group")
    return 1


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's number on its machine, 0.

    Args:
        group: Name of the group.

    Example:
        >>> get_local_rank()
        0

    Source: MindSpore, `mindspore.communication.get_local_rank`.
    """
    return get_rank(group)


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return how many processes of a group are on this machine, 1.

    Args:
        group: Name of the group.

    Example:
        >>> get_local_rank_size()
        1

    Source: MindSpore, `mindspore.communication.get_local_rank_size`.
    """
    return get_group_size(group)
