"""Collective operations between the processes that train together; a single process returns its input."""

from __future__ import annotations

from typing import ClassVar, Final

import keras

from mixtrain import backend, checks, process_group
from mixtrain.distribution.processes import broadcast
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tensor, TensorLike

WORLD: Final = process_group.WORLD_NAMES[0]


class ReduceOp:
    """Names of the reductions of `AllReduce` and `ReduceScatter`. Example: ``ops.ReduceOp.SUM`` is "sum"."""

    SUM: ClassVar[str] = "sum"
    MAX: ClassVar[str] = "max"
    MIN: ClassVar[str] = "min"
    PROD: ClassVar[str] = "prod"


_REDUCTIONS: Final = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD)


class _Collective(Primitive):
    """Base of the operations between the processes of a group."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__()
        self.group = checks.instance(self.name, "group", group, str, f'group="{WORLD}"')
        self.rank_size = process_group.current().size
        if self.rank_size > 1:
            checks.one_of(self.name, "group", group, process_group.WORLD_NAMES)


class _Reducing(_Collective):
    """Base of the collectives that reduce the tensors of the processes."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group)
        self.op = checks.one_of(self.name, "op", op, _REDUCTIONS)


class AllReduce(_Reducing):
    """Reduce the tensors of all processes of `group` by `op`; a single process returns its tensor.

    Example: ``ops.AllReduce(ops.ReduceOp.SUM)(x)``.
    """

    def __call__(self, input_x: TensorLike) -> Tensor:
        """Return the reduction of the tensors of all processes."""
        if self.rank_size == 1:
            return input_x
        return backend.all_reduce([backend.to_tensor(input_x)], self.op)[0]


class ReduceScatter(_Reducing):
    """`AllReduce` (`op`, `group`) of which each process keeps its part along axis 0: ``ops.ReduceScatter()(x)``."""

    def __call__(self, input_x: TensorLike) -> Tensor:
        """Return the part of this process of the reduction."""
        if self.rank_size == 1:
            return input_x
        value = backend.to_tensor(input_x)
        rows = value.shape[0] if len(value.shape) else 1
        if rows is not None and rows % self.rank_size:
            raise checks.fail_value(
                self.name, f"the first axis must divide by {self.rank_size} processes", tuple(value.shape),
                f"a tensor of {self.rank_size * (rows // self.rank_size + 1)} rows",
            )
        return backend.reduce_scatter(value, self.op)


class AllGather(_Collective):
    """Concatenate the tensors of all processes of `group` along axis 0; a single process returns its tensor.

    Example: ``ops.AllGather()(x)``.
    """

    def __call__(self, input_x: TensorLike) -> Tensor:
        """Return the tensors of all processes, concatenated in the order of their ranks."""
        return input_x if self.rank_size == 1 else backend.all_gather(backend.to_tensor(input_x))


class Broadcast(_Collective):
    """Send the tensors of the process `root_rank` of `group` to all others. Example: ``ops.Broadcast(0)((x,))``."""

    def __init__(self, root_rank: int, group: str = WORLD) -> None:
        super().__init__(group)
        self.root_rank = checks.integer(self.name, "root_rank", root_rank, at_least=0)
        if root_rank >= self.rank_size:
            raise checks.fail_value(
                self.name, f"root_rank must be under the number of processes, {self.rank_size}", root_rank,
                "root_rank=0",
            )

    def __call__(self, input_x: TensorLike) -> Tensor:
        """Return the tensors of the process `root_rank` for `input_x`, a tuple of tensors."""
        if self.rank_size == 1:
            return input_x
        tensors = broadcast([backend.to_tensor(value) for value in keras.tree.flatten(input_x)], self.root_rank)
        return keras.tree.pack_sequence_as(input_x, tensors)
