"""Replicas of a training step in several processes: each runs on its own batch, and the results are reduced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import keras
import numpy as np

from mixtrain import backend, checks, process_group
from mixtrain.dtype import DType, float32
from mixtrain.typing import Tensor, Tree

_WHERE: Final = "set_auto_parallel_context"


@dataclasses.dataclass(frozen=True)
class ProcessParallel:
    """How one step is spread over the processes of the group, as `DataParallel` says it of devices."""

    gradients_mean: bool
    reduce_dtype: DType = float32
    spans_processes = True

    @property
    def count(self) -> int:
        return process_group.current().size

    def replicas(
        self, likely_written: Callable[[], Iterable[keras.Variable]], joint_batch: bool = False
    ) -> ProcessReplicas:
        """Return the runner of this process's replica. `joint_batch` is unused: layers reduce such statistics."""
        return ProcessReplicas(likely_written)


def processes_in_force() -> ProcessParallel | None:
    """Return how steps created here are spread over processes; None if each process trains by itself."""
    mode = process_group.settings.get("parallel_mode", "stand_alone")
    if process_group.current().size == 1 or mode == "stand_alone":
        return None
    if mode != "data_parallel":
        raise checks.fail_value(
            _WHERE, "parallel_mode of several processes must be data_parallel or stand_alone", mode,
            "parallel_mode=ParallelMode.DATA_PARALLEL",
        )
    return ProcessParallel(bool(process_group.settings.get("gradients_mean", False)))


class ProcessReplicas:
    """This process's replica of one part of a training step."""

    def __init__(self, likely_written: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely_written = likely_written
        self._writes = backend.RecordedWrites(likely_written)
        self.count = process_group.current().size

    def jit_choice(self, choice: backend.JitChoice) -> backend.JitChoice:
        """Return the JIT choice for a step of these replicas, from that of a step in a single process."""
        return backend.process_jit(choice)

    def run(
        self, part: Callable[..., tuple[list[Tensor], Tree]], columns: Sequence[Tensor],
        like: Sequence[keras.Variable | None], largest: Sequence[int] = (),
    ) -> tuple[list[Tensor], Tree]:
        """Run a part of a step on this process's batch.

        `part` takes a `Share` and its columns and returns ``(totals, others)``; it may read and write variables. `like`
        is unused: each process has all weights. Returns `totals` added up over the processes (at the indexes `largest`:
        the largest value), with None for None, and `others` of this process. The values that processes wrote to
        variables are merged: see `share.merge_of`.
        """
        rows = batch_rows(columns)
        # Needed only by the loss, so this reduction can overlap with the forward pass.
        weight = keras.ops.cast(rows, "float32") / all_rows(columns)
        seeds = [variable for variable in self._likely_written() if backend.merge_of(variable) == "seed"]

        def replica() -> tuple[list[Tensor], Tree]:
            # Each process samples from its own seeds; the variables stay the same in all of them.
            _shift_seeds(seeds, 1)
            result = part(backend.Share(rows if isinstance(rows, int) else None, weight), *columns)
            _shift_seeds(seeds, -1)
            return result

        (totals, others), written = self._writes.of(replica)
        changed = [entry for entry in written if entry.merge in ("mean", "sum")]
        # Changes are reduced rather than values: the sum of values would count the previous one several times.
        deltas = [keras.ops.cast(entry.value, "float32") - keras.ops.cast(entry.before, "float32") for entry in changed]
        present = [(index, total) for index, total in enumerate(totals) if total is not None]
        summed = iter(backend.all_reduce([*(total for index, total in present if index not in largest), *deltas]))
        maxima = [total for index, total in present if index in largest]
        reduced_maxima = iter(backend.all_reduce(maxima, "max") if maxima else ())
        reduced = [
            None if total is None else next(reduced_maxima if index in largest else summed)
            for index, total in enumerate(totals)
        ]
        for entry, delta in zip(changed, summed, strict=True):
            change = delta / self.count if entry.merge == "mean" else delta
            entry.write(keras.ops.cast(keras.ops.cast(entry.before, "float32") + change, entry.value.dtype))
        for entry in written:
            if entry.merge == "first":
                entry.write(broadcast([entry.value])[0])
        return reduced, others


def batch_rows(columns: Sequence[Tensor]) -> Tensor:
    """Return the number of rows of a batch, an int or, if unknown when tracing, a tensor; 1 for a batch of scalars."""
    tensors = [backend.to_tensor(backend.backend_value(value)) for value in keras.tree.flatten(tuple(columns))]
    return next((keras.ops.shape(tensor)[0] for tensor in tensors if not backend.is_one_number(tensor)), 1)


def all_rows(columns: Sequence[Tensor]) -> Tensor:
    """Return the total number of rows of the batches of all processes, a float32 scalar."""
    return backend.all_reduce([keras.ops.cast(batch_rows(columns), "float32")])[0]


def broadcast(values: Sequence[Tensor], root: int = 0) -> list[Tensor]:
    """Return the tensors of process `root`, bit for bit, in all processes, each with the same shapes and dtypes."""
    is_root = keras.ops.equal(backend.process_index(), root)
    sums = backend.all_reduce([_summand(is_root, value) for value in values])
    return [keras.ops.cast(total, value.dtype) for total, value in zip(sums, values, strict=True)]


def _summand(is_root: Tensor, value: Tensor) -> Tensor:
    """Return the summand of a process in a broadcast: the value in the root, and the neutral element in others."""
    dtype = keras.backend.standardize_dtype(value.dtype)
    if dtype == "bool":
        value = keras.ops.cast(value, "int32")
    # -0.0 is neutral for floats: 0.0 + -0.0 is 0.0, and -0.0 + -0.0 is -0.0.
    neutral = keras.ops.full_like(value, -0.0 if keras.backend.is_float_dtype(dtype) else 0)
    return keras.ops.where(is_root, value, neutral)


def share_values(variables: Iterable[keras.Variable]) -> None:
    """Assign to variables their values in the process of rank 0."""
    variables = list(variables)
    values = broadcast([backend.snapshot(variable) for variable in variables])
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def in_any_process(flag: bool) -> bool:
    """Return, in every process, whether a flag is set in any of them."""
    return bool(backend.to_numpy(backend.all_reduce([backend.to_tensor(np.float32(flag))], "max")[0]))


def check_equal(where: str, facts: Mapping[str, float]) -> None:
    """Check that some numbers are the same in all processes, which would otherwise wait for each other forever."""
    # As bits: not every backend has float64.
    bits = backend.to_tensor(np.array([list(facts.values())], np.float64).view(np.int32))
    rows = np.ascontiguousarray(backend.to_numpy(backend.all_gather(bits))).view(np.float64)
    for name, column in zip(facts, rows.T, strict=True):
        if np.ptp(column):
            values = ", ".join(f"{number:.10g}" for number in column)
            raise checks.fail_value(
                where, f"{name} must be the same in all {len(column)} processes", f"[{values}] in the order of ranks",
                "the same script on each process, with shards of one size",
            )


def _shift_seeds(seeds: Iterable[keras.Variable], sign: int) -> None:
    """Add this process's offset to the first number of each seed, or subtract it."""
    offsets = np.arange(process_group.current().size, dtype=np.int64) * backend.SEED_STRIDE % 2**31
    for variable in seeds:
        seed = backend.snapshot(variable)
        first = keras.ops.take(keras.ops.cast(offsets, seed.dtype), backend.process_index())
        offset = keras.ops.stack([first, keras.ops.zeros_like(first)])
        variable.assign(seed + offset if sign > 0 else seed - offset)
