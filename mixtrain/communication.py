"""Communication between processes: how they join, and which of them this is."""

from __future__ import annotations

import dataclasses
import os
import socket
import zlib
from typing import Final

import numpy as np

from mixtrain import backend, checks, process_group

HCCL_WORLD_COMM_GROUP: Final = process_group.WORLD_NAMES[0]
NCCL_WORLD_COMM_GROUP: Final = process_group.WORLD_NAMES[1]
MCCL_WORLD_COMM_GROUP: Final = process_group.WORLD_NAMES[2]

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
    """Join the processes that train together: the same script runs in each of them.

    It comes right after the imports, for the backend must not have started. On TensorFlow ``TF_CONFIG`` in the
    environment names the processes; on JAX ``JAX_COORDINATOR_ADDRESS``, ``JAX_NUM_PROCESSES`` and ``JAX_PROCESS_ID``,
    or SLURM or Open MPI, or a call of ``jax.distributed.initialize`` before. A process of which nobody says that there
    are others is a group of one.

    Args:
        backend_name: "hccl", "nccl", "mccl", or None; the backend chooses by device.

    Raises:
        RuntimeError: The backend has started; or another variable says that there are several processes, and none says
            where they are.
        ValueError: Another backend name, or an environment that says too little.

    Example:
        >>> init("nccl")
        >>> get_rank(), get_group_size()
        (0, 1)

    Source: MindSpore, `mindspore.communication.init`.
    """
    if backend_name is not None:
        checks.one_of("init", "backend_name", backend_name, ("hccl", "nccl", "mccl"))
    if process_group.current().size > 1:
        return
    rank, size = backend.join_processes()
    if size > 1:
        process_group.join(_with_neighbors(process_group.ProcessGroup(rank, size)))
        return
    for name in _SIZES:
        told = os.environ.get(name, "1")
        if told != "1":
            raise RuntimeError(
                f"init: the environment must say where the processes are; got {name}={told} alone, and each process "
                "would train alone. Write TF_CONFIG on TensorFlow; JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and "
                f"JAX_PROCESS_ID on JAX; or {name}=1."
            )
    process_group.join(process_group.ProcessGroup())


def _with_neighbors(group: process_group.ProcessGroup) -> process_group.ProcessGroup:
    """Return a group with the place of this process on its machine: the processes tell each other their machines."""
    process_group.join(group)
    machine = np.array([zlib.crc32(socket.gethostname().encode()) >> 1], np.int32)
    machines = backend.to_numpy(backend.all_gather(backend.to_tensor(machine)))
    near = np.flatnonzero(machines == machine[0]).tolist()
    return dataclasses.replace(group, local_rank=near.index(group.rank), local_size=len(near))


def release() -> None:
    """End communication. Example: ``release()``. Source: MindSpore, `mindspore.communication.release`."""
    if process_group.current().size > 1:
        backend.leave_processes()
    process_group.join(None)


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's number among those of a group; 0 where it is alone.

    Args:
        group: Name of the group.

    Example:
        >>> get_rank()
        0

    Source: MindSpore, `mindspore.communication.get_rank`.
    """
    return _group("get_rank", group).rank


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return how many processes are in a group; 1 where this one is alone.

    Args:
        group: Name of the group.

    Example:
        >>> get_group_size()
        1

    Source: MindSpore, `mindspore.communication.get_group_size`.
    """
    return _group("get_group_size", group).size


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return this process's number among those of its machine.

    Args:
        group: Name of the group.

    Example:
        >>> get_local_rank()
        0

    Source: MindSpore, `mindspore.communication.get_local_rank`.
    """
    return _group("get_local_rank", group).local_rank


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return how many processes of a group are on this machine.

    Args:
        group: Name of the group.

    Example:
        >>> get_local_rank_size()
        1

    Source: MindSpore, `mindspore.communication.get_local_rank_size`.
    """
    return _group("get_local_rank_size", group).local_size


def _group(where: str, name: str) -> process_group.ProcessGroup:
    """Return the group of a name; of several processes there is the one of all."""
    checks.instance(where, "group", name, str, "no group")
    group = process_group.current()
    if group.size > 1:
        checks.one_of(where, "group", name, process_group.WORLD_NAMES)
    return group
