"""Functions that run in all processes at once, and values of this process as JAX hands them to such a function.

Every process holds its own values: its variables, its batch. A function that works between processes is one program of
all of them, in which each computes on what it holds (`jax.shard_map`) and the collectives are explicit. JAX wants the
arguments of such a program as arrays of all processes; they share the memory of what the process holds.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS: Final = "process"


class _Spanning(threading.local):
    on = False


_spanning = _Spanning()


def spanning() -> bool:
    """Whether a function of all processes is being traced here, in which they may communicate."""
    return _spanning.on


@functools.cache
def _mesh() -> Mesh:
    """Return one device of each process, in the order of their ranks."""
    first: dict[int, Any] = {}
    for device in jax.devices():
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[rank] for rank in sorted(first)]), (AXIS,))


@functools.cache
def _alike() -> NamedSharding:
    """Return the sharding of a value of which every process holds one."""
    return NamedSharding(_mesh(), PartitionSpec())


def spanned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure function of tensors as one that runs in all processes, in each on its own values."""

    def body(*args: Any) -> Any:
        before, _spanning.on = _spanning.on, True
        try:
            return function(*args)
        finally:
            _spanning.on = before

    def run(*args: Any) -> Any:
        specs = {"in_specs": PartitionSpec(), "out_specs": PartitionSpec()}
        return jax.shard_map(body, mesh=_mesh(), check_vma=False, **specs)(*args)

    return run


def to_group(values: Any) -> Any:
    """Return what this process holds as arguments of a function of all processes."""
    return jax.tree.map(_of_all, values)


def from_group(values: Any) -> Any:
    """Return what a function of all processes has returned to this one."""
    return jax.tree.map(lambda value: value.addressable_data(0), values)


def _of_all(value: Any) -> Any:
    held = jnp.asarray(value)
    return jax.make_array_from_single_device_arrays(held.shape, _alike(), [held])
