"""Operations between devices, for one device: a sum, a mean or a broadcast over a group of one is the input itself."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from mixtrain import checks
from mixtrain.ops.primitive import Primitive

WORLD: Final = "hccl_world_group"


class ReduceOp:
    """Names of what `AllReduce` and its kin do with the devices' tensors.

    Example:
        >>> ReduceOp.SUM
        'sum'

    Source: MindSpore, `mindspore.ops.ReduceOp`.
    """

    SUM: ClassVar[str] = "sum"
    MAX: ClassVar[str] = "max"
    MIN: ClassVar[str] = "min"
    PROD: ClassVar[str] = "prod"


_REDUCTIONS: Final = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD)


class _Collective(Primitive):
    """An operation between the devices of a group; this process is a group of one."""

    def __init__(self, group: str = WORLD) -> None:
        super().__init__()
        self.group = checks.instance(self.name, "group", group, str, f'group="{WORLD}"')
        self.rank_size = 1

    def __call__(self, input_x: Any) -> Any:
        """Return `input_x`."""
        return input_x


class _Reducing(_Collective):
    """A collective that combines the devices' tensors."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = WORLD) -> None:
        super().__init__(group)
        self.op = checks.one_of(self.name, "op", op, _REDUCTIONS)


class AllReduce(_Reducing):
    """Combine the tensors of all devices, by `op`, over `group`; on one device, return the tensor.

    Example: ``ops.AllReduce(ops.ReduceOp.SUM)(x)``. Source: MindSpore, `mindspore.ops.AllReduce`.
    """


class ReduceScatter(_Reducing):
    """As `AllReduce`, each device keeping its part; `op` and `group` as there.

    Example: ``ops.ReduceScatter()(x)``. Source: MindSpore, `mindspore.ops.ReduceScatter`.
    """


class AllGather(_Collective):
    """Join the tensors of all devices of `group` along axis 0; on one device, return the tensor.

    Example: ``ops.AllGather()(x)``. Source: MindSpore, `mindspore.ops.AllGather`.
    """


class Broadcast(_Collective):
    """Give the tensors of one device to all others; on one device, return them.

    Args:
        root_rank: The device whose tensors they are; only 0 exists.
        group: Name of the group.

    Raises:
        TypeError: `root_rank` is not an int.
        ValueError: There is no such device.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.Broadcast(0)((mixtrain.Tensor(1.0),))[0].numpy().item()
        1.0

    Source: MindSpore, `mindspore.ops.Broadcast`.
    """

    def __init__(self, root_rank: int, group: str = WORLD) -> None:
        super().__init__(group)
        self.root_rank = checks.integer(self.name, "root_rank", root_rank, at_least=0)
        if root_rank > 0:
            raise checks.fail_value(self.name, "root_rank must be 0, as there is one device", root_rank, "root_rank=0")
