"""Join and leave a group of processes that train together, and get the rank and size of the group."""

from __future__ import annotations

import dataclasses
import os
import socket
import zlib
from typing import Final

import numpy as np

from mixtrain import backend, checks, process_group
from mixtrain.lazy_names import serve_names

HCCL_WORLD_COMM_GROUP: Final = process_group.WORLD_NAMES[0]
NCCL_WORLD_COMM_GROUP: Final = process_group.WORLD_NAMES[1]
MCCL_WORLD_COMM_GROUP: Final = process_group.WORLD_NAMES[2]

__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm", "get_group_size",
    "get_local_rank", "get_local_rank_size", "get_rank", "init", "release",
]

# Environment variables of launchers with the number of processes.
_SIZE_VARIABLES: Final = ("RANK_SIZE", "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE")


class GlobalComm:
    """Names of the communication in use. Example: ``GlobalComm.WORLD_COMM_GROUP`` is "hccl_world_group"."""

    BACKEND: Final = ""
    WORLD_COMM_GROUP: Final = HCCL_WORLD_COMM_GROUP


def init(backend_name: str | None = None) -> None:
    """Join the processes that train together, each of which runs the same script.

    Call it right after the imports, as the backend must not have started. On TensorFlow ``TF_CONFIG`` in the
    environment names the processes; on JAX ``JAX_COORDINATOR_ADDRESS``, ``JAX_NUM_PROCESSES`` and ``JAX_PROCESS_ID``,
    or SLURM or Open MPI, or an earlier call of ``jax.distributed.initialize``. Without any of these the process is a
    group of one.

    Args:
        backend_name: "hccl", "nccl", "mccl", or None; the backend chooses by device.

    Raises: RuntimeError if the backend has started; or a launcher's variable says that there are several processes, but
        no variable names them. ValueError for another backend name, or an incomplete environment.

    Example: ``init("nccl")``, then ``get_rank()``.
    """
    if backend_name is not None:
        checks.one_of("init", "backend_name", backend_name, ("hccl", "nccl", "mccl"))
    if process_group.current().size > 1:
        return
    rank, size = backend.join_processes()
    if size > 1:
        process_group.join(_with_local_rank(process_group.ProcessGroup(rank, size)))
        return
    for name in _SIZE_VARIABLES:
        count = os.environ.get(name, "1")
        if count != "1":
            raise RuntimeError(
                f"init: the environment must say where the processes are; got {name}={count} alone, and each process "
                "would train alone. Write TF_CONFIG on TensorFlow; JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and "
                f"JAX_PROCESS_ID on JAX; or {name}=1."
            )
    process_group.join(process_group.ProcessGroup())


def _with_local_rank(group: process_group.ProcessGroup) -> process_group.ProcessGroup:
    """Return a group with the local rank and size, from the host names of all processes."""
    process_group.join(group)
    host = np.array([zlib.crc32(socket.gethostname().encode()) >> 1], np.int32)
    hosts = backend.to_numpy(backend.all_gather(backend.to_tensor(host)))
    local_ranks = np.flatnonzero(hosts == host[0]).tolist()
    return dataclasses.replace(group, local_rank=local_ranks.index(group.rank), local_size=len(local_ranks))


def release() -> None:
    """End communication. Example: ``release()``."""
    if process_group.current().size > 1:
        backend.leave_processes()
    process_group.join(None)


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in `group`; 0 without other processes. Example: ``get_rank()``."""
    return _group("get_rank", group).rank


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the number of processes in `group`; 1 without other processes. Example: ``get_group_size()``."""
    return _group("get_group_size", group).size


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the rank of this process of `group` on its machine. Example: ``get_local_rank()``."""
    return _group("get_local_rank", group).local_rank


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Return the number of processes of `group` on this machine. Example: ``get_local_rank_size()``."""
    return _group("get_local_rank_size", group).local_size


def _group(where: str, name: str) -> process_group.ProcessGroup:
    """Return the group of a name; of several processes there is only the group of all."""
    checks.instance(where, "group", name, str, "no group")
    group = process_group.current()
    if group.size > 1:
        checks.one_of(where, "group", name, process_group.WORLD_NAMES)
    return group


serve_names(__name__)
