"""Replicas of one training step in several processes: each computes on its own batch, and the results are reduced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import auto_parallel, backend, checks, process_group
from mixtrain.dtype import DType, float32

_WHERE: Final = "set_auto_parallel_context"


@dataclasses.dataclass(frozen=True)
class ProcessParallel:
    """How one step is spread over the processes of the group.

    Attributes:
        gradients_mean: Whether the gradients of mean losses are averaged; otherwise they are added up.
        reduce_dtype: The format that gradients are added up in.
    """

    gradients_mean: bool
    reduce_dtype: DType = float32

    @property
    def count(self) -> int:
        """How many processes there are."""
        return process_group.current().size

    def replicas(self, likely: Callable[[], Iterable[keras.Variable]], whole: bool = False) -> ProcessReplicas:
        """Return what runs this process's replica of a step.

        Args:
            likely: Returns the variables that the part of a step that belongs to a replica is likely to write.
            whole: Whether layers have statistics of the joint batch, which they reduce themselves.
        """
        del whole
        return ProcessReplicas(likely)


def processes_in_force() -> ProcessParallel | None:
    """Return how steps that are made here are spread over processes; None where each process trains alone.

    Raises:
        ValueError: The mode is one that there is not.
    """
    mode = auto_parallel.get_auto_parallel_context("parallel_mode")
    if process_group.current().size == 1 or mode == auto_parallel.ParallelMode.STAND_ALONE:
        return None
    if mode != auto_parallel.ParallelMode.DATA_PARALLEL:
        raise checks.fail_value(
            _WHERE, "parallel_mode of several processes must be data_parallel or stand_alone", mode,
            "parallel_mode=ParallelMode.DATA_PARALLEL",
        )
    return ProcessParallel(bool(auto_parallel.get_auto_parallel_context("gradients_mean")))


class ProcessReplicas:
    """This process's replica of one part of a training step.

    Args:
        likely: Returns the variables that the part is likely to write.

    Attributes:
        count: How many replicas there are.
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely
        self._writes = backend.NotedWrites(likely)
        self.count = process_group.current().size

    def jit_choice(self, choice: backend.JitChoice) -> backend.JitChoice:
        """Return how a step of these replicas is compiled, given how one of one process would be."""
        return backend.process_jit(choice)

    def run(self, part: Callable[..., tuple[list[Any], Any]], columns: Sequence[Any]) -> tuple[list[Any], Any]:
        """Run a part of a step on this process's batch.

        Args:
            part: Takes a `Share` and its columns; returns ``(totals, others)``. It may read and write variables.
            columns: The columns of this process's batch.

        Returns:
            `totals` added up over the processes, None where they are None; and `others` as this process has them.
            Variables hold what all processes together came to: see `share.merge_of`.
        """
        rows = batch_rows(columns)
        # Needed by the loss alone, so it comes in while the network runs.
        weight = keras.ops.cast(rows, "float32") / all_rows(columns)
        seeds = [variable for variable in self._likely() if backend.merge_of(variable) == "seed"]

        def replica() -> tuple[list[Any], Any]:
            _shift(seeds, 1)
            found = part(backend.Share(rows if isinstance(rows, int) else None, weight), *columns)
            _shift(seeds, -1)
            return found

        (totals, others), written = self._writes.of(replica)
        given = [total for total in totals if total is not None]
        moved = [one for one in written if one.merge in ("mean", "sum")]
        moves = [keras.ops.cast(one.value, "float32") - keras.ops.cast(one.before, "float32") for one in moved]
        summed = iter(backend.all_reduce([*given, *moves]))
        reduced = [None if total is None else next(summed) for total in totals]
        for one, move in zip(moved, summed, strict=True):
            part_of = move / self.count if one.merge == "mean" else move
            one.write(keras.ops.cast(keras.ops.cast(one.before, "float32") + part_of, one.value.dtype))
        for one in written:
            if one.merge == "first":
                one.write(broadcast([one.value])[0])
        return reduced, others


def batch_rows(columns: Sequence[Any]) -> Any:
    """Return how many rows a batch has, an int or, where it is open, a tensor; 1 for one without rows."""
    tensors = [backend.to_tensor(backend.backend_value(value)) for value in keras.tree.flatten(tuple(columns))]
    return next((keras.ops.shape(tensor)[0] for tensor in tensors if not backend.is_one_number(tensor)), 1)


def all_rows(columns: Sequence[Any]) -> Any:
    """Return how many rows the batches of all processes have, a float32 scalar."""
    return backend.all_reduce([keras.ops.cast(batch_rows(columns), "float32")])[0]


def broadcast(values: Sequence[Any], root: int = 0) -> list[Any]:
    """Return the tensors of one process, bit for bit, in all of them.

    Args:
        values: Tensors, of the same shapes and dtypes in each process.
        root: The process whose they are.
    """
    mine = keras.ops.equal(backend.process_index(), root)
    return [
        keras.ops.cast(found, value.dtype)
        for found, value in zip(backend.all_reduce([_only(mine, value) for value in values]), values, strict=True)
    ]


def _only(mine: Any, value: Any) -> Any:
    """Return what a process adds to the sum of a broadcast: its value, or what changes no number when it is added."""
    dtype = keras.backend.standardize_dtype(value.dtype)
    if dtype == "bool":
        value = keras.ops.cast(value, "int32")
    # -0.0, for 0.0 + -0.0 is 0.0 and -0.0 + -0.0 is -0.0.
    nothing = keras.ops.full_like(value, -0.0 if keras.backend.is_float_dtype(dtype) else 0)
    return keras.ops.where(mine, value, nothing)


def share_values(variables: Iterable[keras.Variable]) -> None:
    """Give variables the values that they have in the process of rank 0."""
    held = list(variables)
    for variable, value in zip(held, broadcast([backend.snapshot(variable) for variable in held]), strict=True):
        variable.assign(value)


def in_any_process(flag: bool) -> bool:
    """Return, in every process, whether a flag is set in one of them."""
    return bool(backend.to_numpy(backend.all_reduce([backend.to_tensor(np.float32(flag))], "max")[0]))


def check_alike(where: str, facts: Mapping[str, float]) -> None:
    """Check that what processes do together is alike in all of them, before they wait for each other in vain.

    Args:
        where: Who asks, for the error.
        facts: Numbers by name; the same names in each process.

    Raises:
        ValueError: A number differs; in every process.
    """
    # As bits: not every backend has float64.
    mine = backend.to_tensor(np.array([list(facts.values())], np.float64).view(np.int32))
    rows = np.ascontiguousarray(backend.to_numpy(backend.all_gather(mine))).view(np.float64)
    for name, column in zip(facts, rows.T, strict=True):
        if np.ptp(column):
            found = ", ".join(f"{number:.10g}" for number in column)
            raise checks.fail_value(
                where, f"{name} must be the same in all {len(column)} processes", f"[{found}] in the order of ranks",
                "the same script on each process, with shards of one size",
            )


def _shift(seeds: Iterable[keras.Variable], sign: int) -> None:
    """Move seeds by this process's offset of their first number."""
    offsets = np.arange(process_group.current().size, dtype=np.int64) * backend.SEED_STRIDE % 2**31
    for variable in seeds:
        seed = backend.snapshot(variable)
        first = keras.ops.take(keras.ops.cast(offsets, seed.dtype), backend.process_index())
        offset = keras.ops.stack([first, keras.ops.zeros_like(first)])
        variable.assign(seed + offset if sign > 0 else seed - offset)
