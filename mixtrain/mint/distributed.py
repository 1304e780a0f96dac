"""Functions between the processes that train together, which are one group: `mint.distributed`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from mixtrain import checks, communication, ops, process_group
from mixtrain.common.tensor import Tensor
from mixtrain.lazy_names import serve_names
from mixtrain.mint.named import named


def _size() -> int:
    return process_group.current().size


def _reduced(tensor: Any, op: str) -> Any:
    if op not in ("sum", "prod", "min", "max", "avg"):
        raise TypeError(f"mint.distributed: op must be sum, prod, min, max or avg; got {op!r}. Write op=\"sum\".")
    total = ops.AllReduce("sum" if op == "avg" else op)(tensor)
    return ops.div(total, _size()) if op == "avg" else total


def _gathered(tensor: Any) -> Any:
    """Return the tensors of all processes, a row each."""
    return ops.AllGather()(ops.unsqueeze(tensor, 0))


def _objects(value: Any) -> list[Any]:
    """Return the objects of all processes, sent as pickles of one length."""
    data = np.frombuffer(pickle.dumps(value), np.uint8).astype(np.int32)
    sizes = _gathered(Tensor(np.int32(len(data)))).asnumpy()
    rows = _gathered(Tensor(np.pad(data, (0, sizes.max() - len(data))))).asnumpy().astype(np.uint8)
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)]


def _fill(outputs: list[Any], values: Any) -> Any:
    """Write values to the tensors of a list."""
    for output, value in zip(outputs, values, strict=True):
        output.copy_(value)
    return None


def _ready(group: str | None, async_op: bool = False) -> Any:
    """Check the arguments that every collective takes; raise for a group of some processes, and for async_op=True."""
    _world(group)
    if checks.boolean("mint.distributed", "async_op", async_op):
        raise NotImplementedError("mint.distributed: expected async_op=False; got True. Write the default.")
    return None


def _world(group: str | None) -> str:
    """Return the name of the group of all processes, after checking that `group` is one."""
    name = communication.GlobalComm.WORLD_COMM_GROUP if group is None else group
    communication.get_rank(name)
    return name


def _new_group(
    ranks: list[int] | None = None, timeout: Any = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None,
) -> str:
    if ranks is not None and list(ranks) != list(range(_size())):
        raise NotImplementedError(f"new_group: expected ranks of all processes; got {ranks}. Write ranks=None.")
    return _world(None)


def _on(rank: int, outputs: Any, values: Any) -> Any:
    """Write values to tensors where this process is `rank`."""
    return _fill(outputs, values) if communication.get_rank() == rank else None


def _own(rows: Any, src: int) -> Any:
    """Return this process's row of the tensor that the process `src` has."""
    return ops.Broadcast(src)((rows,))[0][communication.get_rank()]


def _all_to_all(outputs: list[Any], inputs: list[Any]) -> Any:
    rank = communication.get_rank()
    return _fill(outputs, [rows[rank] for rows in _gathered(ops.stack(inputs))])


def _all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: str | None = None,
    async_op: bool = False,
) -> None:
    _ready(group, async_op)
    if output_split_sizes or input_split_sizes:
        raise NotImplementedError("all_to_all_single: expected no split sizes; got some. Write parts of one size.")
    parts = ops.split(input, input.shape[0] // _size())
    _fill([output], [ops.cat([rows[communication.get_rank()] for rows in _gathered(ops.stack(parts))])])


def _replace(target: list[Any], values: list[Any]) -> Any:
    target[:] = values
    return None


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "init_process_group": lambda backend="hccl", init_method=None, timeout=None, world_size=-1, rank=-1, store=None,
    group_name="", pg_options=None, device_id=None: communication.init(backend),
    "destroy_process_group": lambda group=None: communication.release(),
    "is_available": lambda: True,
    "is_initialized": lambda: process_group.has_joined(),
    "new_group": _new_group,
    "get_rank": lambda group=None: communication.get_rank(_world(group)),
    "get_world_size": lambda group=None: communication.get_group_size(_world(group)),
    "get_backend": lambda group=None: _world(group).partition("_")[0],
    "get_global_rank": lambda group, group_rank: _ready(group) or group_rank,
    "get_group_rank": lambda group, global_rank: _ready(group) or global_rank,
    "get_process_group_ranks": lambda group=None: _ready(group) or list(range(_size())),
    "barrier": lambda group=None, async_op=False, device_ids=None: _ready(group, async_op) or ops.depend(
        None, _gathered(Tensor(np.float32(0)))
    ),
    "all_reduce": lambda tensor, op="sum", group=None, async_op=False: _ready(group, async_op) or _fill(
        [tensor], [_reduced(tensor, op)]
    ),
    "reduce": lambda tensor, dst, op="sum", group=None, async_op=False: _ready(group, async_op) or _on(
        dst, [tensor], [_reduced(tensor, op)]
    ),
    "broadcast": lambda tensor, src, group=None, async_op=False: _ready(group, async_op) or _fill(
        [tensor], ops.Broadcast(src)((tensor,))
    ),
    "all_gather": lambda tensor_list, tensor, group=None, async_op=False: _ready(group, async_op) or _fill(
        tensor_list, _gathered(tensor)
    ),
    "all_gather_into_tensor": lambda output_tensor, input_tensor, group=None, async_op=False: (
        _ready(group, async_op) or _fill([output_tensor], [ops.AllGather()(input_tensor)])
    ),
    "gather": lambda tensor, gather_list, dst=0, group=None, async_op=False: _ready(group, async_op) or _on(
        dst, gather_list, _gathered(tensor)
    ),
    "scatter": lambda tensor, scatter_list, src=0, group=None, async_op=False: _ready(group, async_op) or _fill(
        [tensor], [_own(ops.stack(scatter_list or [tensor] * _size()), src)]
    ),
    "reduce_scatter": lambda output, input_list, op="sum", group=None, async_op=False: _ready(group, async_op) or _fill(
        [output], [_reduced(ops.stack(input_list), op)[communication.get_rank()]]
    ),
    "reduce_scatter_tensor": lambda output, input, op="sum", group=None, async_op=False: (
        _ready(group, async_op) or _fill([output], [ops.chunk(_reduced(input, op), _size())[communication.get_rank()]])
    ),
    "all_to_all": lambda output_tensor_list, input_tensor_list, group=None, async_op=False: (
        _ready(group, async_op) or _all_to_all(output_tensor_list, input_tensor_list)
    ),
    "all_to_all_single": _all_to_all_single,
    "all_gather_object": lambda object_list, obj, group=None: _ready(group) or _replace(object_list, _objects(obj)),
    "broadcast_object_list": lambda object_list, src=0, group=None, device=None: _ready(group) or _replace(
        object_list, _objects(object_list)[src]
    ),
    "gather_object": lambda obj, object_gather_list=None, dst=0, group=None: _ready(group) or _replace(
        object_gather_list if communication.get_rank() == dst else [], _objects(obj)
    ),
    "scatter_object_list": lambda scatter_object_output_list, scatter_object_input_list, src=0, group=None: (
        _ready(group) or _replace(
            scatter_object_output_list, [_objects(scatter_object_input_list)[src][communication.get_rank()]]
        )
    ),
}
globals().update(named("mint.distributed", _FUNCTIONS))

__all__ = sorted(_FUNCTIONS)

serve_names(__name__)
