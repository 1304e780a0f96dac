"""Functions that run in all processes at once, and the conversion of this process's values to their arguments.

Every process has its own values: its variables, its batch. A function with collectives is one program of all processes
(`jax.shard_map`), in which each computes on its own values. JAX requires global arrays as arguments of such a program;
they share the memory of the process's own arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mixtrain.backend.jax.tracing import now
from mixtrain.typing import Tensor, Tree

AXIS: Final = "process"


def spanning() -> bool:
    """Whether a function of all processes is being traced in this thread, in which collectives may run."""
    return now.spanning


@functools.cache
def _mesh() -> Mesh:
    """Return the mesh of one device of each process, in the order of their ranks."""
    first: dict[int, Any] = {}
    for device in jax.devices():
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[rank] for rank in sorted(first)]), (AXIS,))


@functools.cache
def _replicated() -> NamedSharding:
    """Return the sharding of a value of which every process has one."""
    return NamedSharding(_mesh(), PartitionSpec())


def spanned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure function as one that runs in all processes, in each on its own values."""

    def body(*args: Any) -> Any:
        previous, now.spanning = now.spanning, True
        try:
            return function(*args)
        finally:
            now.spanning = previous

    def run(*args: Any) -> Any:
        specs = {"in_specs": PartitionSpec(), "out_specs": PartitionSpec()}
        return jax.shard_map(body, mesh=_mesh(), check_vma=False, **specs)(*args)

    return run


def to_group(values: Tree) -> Tree:
    """Return values of this process as arguments of a function of all processes."""
    return jax.tree.map(_to_global_array, values)


def from_group(values: Tree) -> Tree:
    """Return the values of this process from the results of a function of all processes."""
    return jax.tree.map(lambda value: value.addressable_data(0), values)


def _to_global_array(value: Tensor) -> Tensor:
    array = jnp.asarray(value)
    return jax.make_array_from_single_device_arrays(array.shape, _replicated(), [array])
