"""Several processes that train together: how they meet, and what they compute between them, by JAX's collectives."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras

from mixtrain import checks, process_group
from mixtrain.backend.info import JitChoice
from mixtrain.backend.jax.device import has_started
from mixtrain.backend.jax.gradient import densified
from mixtrain.backend.jax.group import AXIS, from_group, spanned, spanning, to_group
from mixtrain.backend.jax.live_values import is_live
from mixtrain.backend.jax.state import NeedsGroup, StateScope, current, open_traces, put, tracing
from mixtrain.backend.jax.tensor import snapshot
from mixtrain.backend.share import Written, lost_process, merge_of

# Without these a process that dies would be missed for the 100 seconds of JAX's default.
HEARTBEAT_SECONDS: Final = 20
# What is in the errors of collectives (Gloo's, NCCL's) and of the coordination service when a process has ended.
_LOST: Final = r"Gloo .* failed|NCCL|heartbeat timeout|[Cc]onnection (closed|reset) by peer"
# Where MPI or SLURM has started this process they say how many there are, and JAX asks them for the rest.
_LAUNCHERS: Final = ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def join_processes() -> tuple[int, int]:
    """Meet the other processes, where the environment or the user says that there are some.

    Returns:
        ``(rank, size)``; ``(0, 1)`` where there are none.

    Raises:
        RuntimeError: JAX has started before.
        ValueError: The environment says too little.
    """
    if not jax.distributed.is_initialized():
        address = os.environ.get("JAX_COORDINATOR_ADDRESS")
        launched = any(int(os.environ.get(name, "1")) > 1 for name in _LAUNCHERS)
        if address is None and not launched:
            return 0, 1
        if has_started():
            raise RuntimeError(
                "communication.init: it must come before JAX computes; got a JAX that has started. Write "
                "communication.init() right after the imports, before networks, tensors and set_seed."
            )
        count, index = (_number(name) for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"))
        if not launched and None in (count, index):
            raise checks.fail_value(
                "communication.init", "beside JAX_COORDINATOR_ADDRESS the environment must say how many processes "
                "there are, and which this is", f"JAX_NUM_PROCESSES={count}, JAX_PROCESS_ID={index}",
                "JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0 for the first of two",
            )
        jax.distributed.initialize(address, count, index, heartbeat_timeout_seconds=HEARTBEAT_SECONDS)
    return jax.process_index(), jax.process_count()


def _number(name: str) -> int | None:
    found = os.environ.get(name)
    return None if found is None else int(found)


def leave_processes() -> None:
    """End the communication with other processes."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


@contextlib.contextmanager
def telling_lost_process(where: str) -> Iterator[None]:
    """Raise what JAX says once a process has ended as one sentence that names it, where that can be told.

    Raises:
        RuntimeError: Another process has ended while it was needed.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        group = process_group.current()
        if group.size == 1 or not re.search(_LOST, str(error)):
            raise
        told = {int(task) for task in re.findall(r"(?i)task[: ](\d+)", str(error))} - {group.rank}
        others = [rank for rank in range(group.size) if rank != group.rank]
        raise RuntimeError(lost_process(where, sorted(told) or (others if len(others) == 1 else []))) from error


def all_reduce(values: Sequence[Any], op: str = "sum") -> list[Any]:
    """Return tensors combined over all processes, each with those at its place.

    Args:
        values: Tensors of the same shapes and dtypes in each process.
        op: "sum", "max", "min" or "prod".
    """
    return list(_between("all_reduce", op, values))


def all_gather(value: Any) -> Any:
    """Return the tensors of all processes joined along axis 0."""
    return _between("all_gather", "", [value])[0]


def reduce_scatter(value: Any, op: str = "sum") -> Any:
    """Return this process's part, along axis 0, of a tensor that is combined over all processes."""
    return _between("reduce_scatter", op, [value])[0]


def process_index() -> Any:
    """Return this process's number, a scalar tensor: in a compiled function the same program for all of them."""
    return jax.lax.axis_index(AXIS) if spanning() else jnp.int32(process_group.current().rank)


def process_jit(choice: JitChoice) -> JitChoice:
    """Return how a step between processes is compiled, given how one of one process would be."""
    return choice


def _between(name: str, op: str, values: Sequence[Any]) -> Any:
    if spanning():
        return _COLLECTIVES[name](op, *map(densified, values))
    if open_traces():
        raise NeedsGroup
    return _at_once(name, op, *(densified(value) for value in values))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _at_once(name: str, op: str, *values: Any) -> Any:
    """Compute a collective in a program of its own, outside of compiled functions."""
    return from_group(_compiled(name, op)(*to_group(list(values))))


def _forward(name: str, op: str, *values: Any) -> tuple[Any, Any]:
    return _at_once(name, op, *values), values


def _backward(name: str, op: str, values: Any, gradients: Any) -> tuple[Any, ...]:
    return tuple(from_group(_compiled_gradient(name, op)(*to_group((values, gradients)))))


_at_once.defvjp(_forward, _backward)


@functools.cache
def _compiled(name: str, op: str) -> Callable[..., Any]:
    return jax.jit(spanned(functools.partial(_COLLECTIVES[name], op)))


@functools.cache
def _compiled_gradient(name: str, op: str) -> Callable[..., Any]:
    def gradient(values: Any, upstream: Any) -> Any:
        return jax.vjp(functools.partial(_COLLECTIVES[name], op), *values)[1](upstream)

    return jax.jit(spanned(gradient))


def _all_reduce(op: str, *values: Any) -> list[Any]:
    if op == "sum":
        return list(jax.lax.psum(list(values), AXIS))
    if op == "prod":
        return [jnp.prod(jax.lax.all_gather(value, AXIS), 0, dtype=value.dtype) for value in values]
    return [(jax.lax.pmax if op == "max" else jax.lax.pmin)(value, AXIS) for value in values]


def _all_gather(op: str, value: Any) -> list[Any]:
    del op
    return [jax.lax.all_gather(value, AXIS, tiled=value.ndim > 0)]


def _reduce_scatter(op: str, value: Any) -> list[Any]:
    if op == "sum":
        return [jax.lax.psum_scatter(value, AXIS, tiled=True)]
    size = value.shape[0] // process_group.current().size
    whole = _all_reduce(op, value)[0]
    return [jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index(AXIS) * size, size)]


_COLLECTIVES: Final[dict[str, Callable[..., list[Any]]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
}


class NotedWrites:
    """Sees what a function writes.

    Args:
        likely: Returns the variables that the function is likely to write; outside of a compiled call, all.
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[Written]]:
        """Run a function; return its result, and what it wrote."""
        if not tracing():
            before = [(variable, snapshot(variable)) for variable in self._likely()]
            result = function()
            return result, [
                Written(merge_of(variable), value, snapshot(variable), variable.assign) for variable, value in before
            ]
        with StateScope() as scope:
            result = function()
        found = []
        for key, variable in scope.written.items():
            value = scope.state_mapping[key]
            if not is_live(variable):
                written = functools.partial(put, variable)
                found.append(Written(merge_of(variable), current(variable), value, written))
            put(variable, value)
        return result, found
