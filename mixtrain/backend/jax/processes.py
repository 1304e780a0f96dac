"""Several processes that train together: their connection, and collectives by JAX."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp

from mixtrain import checks, process_group
from mixtrain.backend.info import JitChoice
from mixtrain.backend.jax.compile import traces
from mixtrain.backend.jax.device import has_started
from mixtrain.backend.jax.gradient import densified
from mixtrain.backend.jax.group import AXIS, from_group, spanned, spanning, to_group
from mixtrain.backend.jax.state import StateScope, TraceEnded, current, put, tracing
from mixtrain.backend.jax.storage import is_live
from mixtrain.backend.jax.tensor import snapshot
from mixtrain.backend.share import Written, lost_process, merge_of
from mixtrain.backend.signatures import Likely
from mixtrain.typing import Tensor

# JAX's default would detect the end of a process only after 100 seconds.
HEARTBEAT_SECONDS: Final = 20
# Matches the errors of collectives (Gloo, NCCL) and of the coordination service after a process has ended.
_LOST: Final = r"Gloo .* failed|NCCL|heartbeat timeout|[Cc]onnection (closed|reset) by peer"
# The number of processes, set by MPI or SLURM; JAX reads their other variables itself.
_LAUNCHERS: Final = ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def join_processes() -> tuple[int, int]:
    if not jax.distributed.is_initialized():
        address = os.environ.get("JAX_COORDINATOR_ADDRESS")
        has_launcher = any(int(os.environ.get(name, "1")) > 1 for name in _LAUNCHERS)
        if address is None and not has_launcher:
            return 0, 1
        if has_started():
            raise RuntimeError(
                "communication.init: it must come before JAX computes; got a JAX that has started. Write "
                "communication.init() right after the imports, before networks, tensors and set_seed."
            )
        texts = (os.environ.get(name) for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID"))
        count, index = (None if text is None else int(text) for text in texts)
        if not has_launcher and None in (count, index):
            raise checks.fail_value(
                "communication.init", "beside JAX_COORDINATOR_ADDRESS the environment must say how many processes "
                "there are, and which this is", f"JAX_NUM_PROCESSES={count}, JAX_PROCESS_ID={index}",
                "JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0 for the first of two",
            )
        jax.distributed.initialize(address, count, index, heartbeat_timeout_seconds=HEARTBEAT_SECONDS)
    return jax.process_index(), jax.process_count()


def leave_processes() -> None:
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


@contextlib.contextmanager
def naming_lost_process(where: str) -> Iterator[None]:
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # JAX raises either for a collective that failed.
        group = process_group.current()
        if group.size == 1 or not re.search(_LOST, str(error)):
            raise
        ranks = {int(task) for task in re.findall(r"(?i)task[: ](\d+)", str(error))} - {group.rank}
        others = [rank for rank in range(group.size) if rank != group.rank]
        raise RuntimeError(lost_process(where, sorted(ranks) or (others if len(others) == 1 else []))) from error


def all_reduce(values: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
    return list(_collective("all_reduce", op, values))


def all_gather(value: Tensor) -> Tensor:
    return _collective("all_gather", "", [value])[0]


def reduce_scatter(value: Tensor, op: str = "sum") -> Tensor:
    return _collective("reduce_scatter", op, [value])[0]


def process_index() -> Tensor:
    """A compiled function is the same program in all processes."""
    return jax.lax.axis_index(AXIS) if spanning() else jnp.int32(process_group.current().rank)


def process_jit(choice: JitChoice) -> JitChoice:
    return choice


def _collective(name: str, op: str, values: Sequence[Tensor]) -> Any:
    if spanning():
        return _COLLECTIVES[name](op, *map(densified, values))
    if traces():
        raise TraceEnded("a traced function communicates with other processes")
    return _run_eagerly(name, op, *(densified(value) for value in values))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _run_eagerly(name: str, op: str, *values: Tensor) -> Any:
    """Run a collective eagerly, as a program of its own."""
    return from_group(_compiled(name, op)(*to_group(list(values))))


def _backward(name: str, op: str, values: Any, gradients: Any) -> tuple[Any, ...]:
    return tuple(from_group(_compiled(name, op, backward=True)(*to_group((values, gradients)))))


_run_eagerly.defvjp(lambda name, op, *values: (_run_eagerly(name, op, *values), values), _backward)


@functools.cache
def _compiled(name: str, op: str, backward: bool = False) -> Callable[..., Any]:
    collective = functools.partial(_COLLECTIVES[name], op)

    def gradient(values: Any, upstream: Any) -> Any:
        return jax.vjp(collective, *values)[1](upstream)

    return jax.jit(spanned(gradient if backward else collective))


def _all_reduce(op: str, *values: Tensor) -> list[Tensor]:
    if op == "sum":
        return list(jax.lax.psum(list(values), AXIS))
    if op == "prod":
        return [jnp.prod(jax.lax.all_gather(value, AXIS), 0, dtype=value.dtype) for value in values]
    return [(jax.lax.pmax if op == "max" else jax.lax.pmin)(value, AXIS) for value in values]


def _all_gather(op: str, value: Tensor) -> list[Tensor]:
    del op
    return [jax.lax.all_gather(value, AXIS, tiled=value.ndim > 0)]


def _reduce_scatter(op: str, value: Tensor) -> list[Tensor]:
    if op == "sum":
        return [jax.lax.psum_scatter(value, AXIS, tiled=True)]
    size = value.shape[0] // process_group.current().size
    reduced = _all_reduce(op, value)[0]
    return [jax.lax.dynamic_slice_in_dim(reduced, jax.lax.axis_index(AXIS) * size, size)]


_COLLECTIVES: Final[dict[str, Callable[..., list[Tensor]]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
}


class RecordedWrites:
    def __init__(self, likely: Likely) -> None:
        self._likely = likely

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[Written]]:
        if not tracing():
            saved = [(variable, snapshot(variable)) for variable in self._likely()]
            result = function()
            return result, [
                Written(merge_of(variable), value, snapshot(variable), variable.assign) for variable, value in saved
            ]
        with StateScope() as scope:
            result = function()
        writes = []
        for key, variable in scope.written.items():
            value = scope.state_mapping[key]
            if not is_live(variable):
                writes.append(Written(merge_of(variable), current(variable), value, functools.partial(put, variable)))
            put(variable, value)
        return result, writes
