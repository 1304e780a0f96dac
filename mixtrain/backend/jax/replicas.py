"""Replicas of one training step on several devices: a `shard_map` over the rows of a batch, with explicit sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mixtrain import checks, process_group
from mixtrain.backend.class_labels import noting_shards
from mixtrain.backend.info import JitChoice
from mixtrain.backend.jax.branches import first_path
from mixtrain.backend.jax.gradient import densified
from mixtrain.backend.jax.joined import joining
from mixtrain.backend.jax.state import StateScope, current, put, split_tensors, tracing
from mixtrain.backend.jax.storage import is_live, layout_of
from mixtrain.backend.share import SEED_STRIDE, Share, divide, has_rows, merge_of, rows_of_all
from mixtrain.backend.signatures import Likely
from mixtrain.typing import Tensor, Tree

_AXIS: Final = "replica"
SHARDS_WEIGHTS: Final = True


def find_devices(
    devices: int | Sequence[Any] | None, where: str = "data_parallel", *, of_all_processes: bool = False
) -> list[Any]:
    local = jax.devices() if of_all_processes else jax.local_devices()
    if devices is None or isinstance(devices, int):
        count = len(local) if devices is None else devices
        if not 1 <= count <= len(local):
            raise checks.fail_value(
                where, f"devices must be from 1 to the {len(local)} that JAX has", devices,
                f'XLA_FLAGS="--xla_force_host_platform_device_count={count}" in the environment for that many on a CPU'
            )
        return local[:count]
    by_name = {f"{device.platform}:{device.id}": device for device in local}
    devices = [by_name.get(device, device) if isinstance(device, str) else device for device in devices]
    for device in devices:
        if not isinstance(device, jax.Device):
            raise checks.fail_type(where, "devices must be JAX devices", device, "devices=jax.devices()[:2]")
    if not devices or len(set(devices)) < len(devices):
        raise checks.fail_value(where, "devices must be different ones", devices, "devices=jax.devices()[:2]")
    return list(devices)


def devices_in_force() -> list[Any] | Mesh | None:
    distribution = keras.distribution.distribution()
    kinds = (keras.distribution.DataParallel, keras.distribution.ModelParallel)
    if not isinstance(distribution, kinds):
        return None
    mesh, rows = distribution.device_mesh, distribution.batch_dim_name
    devices = find_devices([str(device) for device in mesh.devices.ravel()], of_all_processes=True)
    axes = [_AXIS if name == rows else name for name in mesh.axis_names]
    result = Mesh(np.array(devices).reshape(mesh.shape), axes)
    if jax.process_count() > 1:
        _check_processes(result)
    return devices if isinstance(distribution, kinds[0]) else result


def _check_processes(mesh: Mesh) -> None:
    """Check that a mesh has the devices of the whole group, and each process all rows of a batch or its own."""
    size = process_group.current().size
    if size < jax.process_count():
        raise RuntimeError(
            f"Model: a keras.distribution over the devices of {jax.process_count()} processes needs their group; got a "
            "process that has not joined it. Write mixtrain.communication.init() right after the imports."
        )
    rows = [_rows_of_process(mesh, index) for index in range(size)]
    if not all(rows) or (len(set().union(*rows)) < sum(map(len, rows)) and any(own != rows[0] for own in rows)):
        raise checks.fail_value(
            "Model", f"a keras.distribution must have devices of each of the {size} processes, and they must divide "
            "the rows of a batch or have all of them", [sorted(own) for own in rows],
            "mixtrain.distribution.fully_sharded(), or keras.distribution.DataParallel() without devices",
        )


def _rows_of_process(mesh: Mesh, process: int) -> set[int]:
    """Return the places along the axis of rows at which a mesh has devices of a process."""
    axis = mesh.axis_names.index(_AXIS)
    return {place[axis] for place, device in np.ndenumerate(mesh.devices) if device.process_index == process}


def in_several_processes(devices: Sequence[Any] | Mesh) -> bool:
    return len({device.process_index for device in _mesh_of(devices).devices.flat}) > 1


def reads_own_rows(devices: Sequence[Any] | Mesh) -> bool:
    mesh = _mesh_of(devices)
    return len(_rows_of_process(mesh, jax.process_index())) < mesh.shape[_AXIS]


def join_rows(batch: Tree, devices: Sequence[Any] | Mesh) -> Tree:
    mesh = _mesh_of(devices)
    places = len(_rows_of_process(mesh, jax.process_index()))

    def join(column: Tensor) -> Tensor:
        own = np.asarray(column)
        divides = own.ndim > 0 and len(own) % places == 0
        if not divides and own.ndim and reads_own_rows(mesh):
            own = multihost_utils.process_allgather(own, tiled=True)
        layout = NamedSharding(mesh, PartitionSpec(_AXIS) if divides else PartitionSpec())
        return jax.make_array_from_process_local_data(layout, own)

    return keras.tree.map_structure(join, batch)


def _mesh_of(devices: Sequence[Any] | Mesh) -> Mesh:
    """Return the mesh of devices, by default along the axis of rows."""
    return devices if isinstance(devices, Mesh) else Mesh(np.array(devices), (_AXIS,))


class Replicas:
    def __init__(
        self, devices: Sequence[Any] | Mesh, likely: Likely, whole: bool = False, joined: bool = False
    ) -> None:
        del likely
        self._mesh = _mesh_of(devices)
        self._whole = whole
        self._joined = joined
        self.count = self._mesh.shape[_AXIS]

    def jit_choice(self, choice: JitChoice) -> JitChoice:
        return choice

    def run(
        self, part: Callable[..., tuple[list[Tensor], Tree]], columns: Sequence[Tensor],
        like: Sequence[keras.Variable | None], largest: Sequence[int] = (),
    ) -> tuple[list[Tensor], Tree]:
        """Rows that cannot be divided are computed by each device, never by one."""
        tensors, fill = split_tensors(tuple(columns))
        rows = rows_of_all(tensors)
        if self._whole or not tracing():
            return part(Share(rows), *columns)
        divided = divide(rows, self.count)
        share = Share(rows // self.count, 1 / self.count) if divided else Share(rows)
        sharded = [divided and has_rows(tensor, rows) for tensor in tensors]
        traced: list[Any] = []  # What `body` returns besides tensors, in its last trace.
        # Along which dimension a sum is divided over the replicas, as the weights are that it updates.
        parts = [None if index in largest else self._divided(variable) for index, variable in enumerate(like)]
        shapes = [() if variable is None else variable.shape for variable in like]

        def run_replica(index: Any, shards: Sequence[Tensor]) -> tuple[list[Any], list[Any], list[Any]]:
            axis = _AXIS if divided and self._joined else None
            with ReplicaScope(index if divided else None) as scope, noting_shards(tensors, shards), joining(axis):
                totals, others = part(share, *fill(list(shards)))
                totals = [None if total is None else densified(total) for total in totals]
                other_tensors, fill_others = split_tensors(others)
                written = list(scope.written.values())
                states = scope.values_of(written)
            merged = [scope.merged(variable, state) for variable, state in zip(written, states, strict=True)]
            traced[:] = [written, [total is None for total in totals], fill_others]
            joined = [_join(value, share.rows if divided else None) for value in map(jnp.asarray, other_tensors)]
            # What is missing counts as 0: how a sum is divided must be known before a trace.
            known = [jnp.zeros(shape) if total is None else total for total, shape in zip(totals, shapes, strict=True)]
            return self._reduced(known, parts, largest, divided), joined, merged

        def body(indexes: Any, *shards: Any) -> Any:
            first = first_path((indexes, shards))
            for path in first.explored():
                with path:
                    path.result = run_replica(indexes[0], shards)
            return first.result

        by_rows, replicated = PartitionSpec(_AXIS), PartitionSpec()
        specs = (by_rows, *(by_rows if split else replicated for split in sharded))
        summed_specs = [PartitionSpec(*[None] * (part or 0), *([] if part is None else [_AXIS])) for part in parts]
        # Over other axes of a mesh, along which weights are sharded, XLA divides the computation.
        run = jax.shard_map(
            body, mesh=self._mesh, in_specs=specs, out_specs=(summed_specs, replicated, replicated),
            axis_names={_AXIS}, check_vma=False,
        )
        summed, others, states = run(jnp.arange(self.count, dtype=jnp.uint32), *tensors)
        written, missing, fill_others = traced
        for variable, state in zip(written, states, strict=True):
            put(variable, state)
        totals = [None if is_missing else total for total, is_missing in zip(summed, missing, strict=True)]
        return totals, fill_others(others)

    def _divided(self, variable: keras.Variable | None) -> int | None:
        """Return the dimension along which a variable is divided over the axis of rows; None if there is none.

        On the mesh of the user's distribution that axis has another name.
        """
        spec = () if variable is None else layout_of(variable)
        others = self._mesh.axis_names
        return next((index for index, axis in enumerate(spec) if isinstance(axis, str) and axis not in others), None)

    def _reduced(
        self, totals: Sequence[Tensor], parts: Sequence[int | None], largest: Sequence[int], divided: bool
    ) -> list[Tensor]:
        """Return the sums over the replicas, of each its own part where they are divided, and maxima of `largest`."""
        whole = [index for index, part in enumerate(parts) if part is None and index not in largest]
        sums = dict(zip(whole, jax.lax.psum([totals[index] for index in whole], _AXIS), strict=True))
        for index, part in enumerate(parts):
            if part is not None:
                sums[index] = jax.lax.psum_scatter(totals[index], _AXIS, scatter_dimension=part, tiled=True)
        reduced = sums if divided else {index: total / self.count for index, total in sums.items()}
        reduced |= {index: jax.lax.pmax(totals[index], _AXIS) for index in largest}
        return [reduced[index] for index in range(len(totals))]


class ReplicaScope(StateScope):
    """A scope in which each replica has seeds of its own, by its index; None where all use the same seeds."""

    def __init__(self, index: Any) -> None:
        super().__init__()
        self._offset = None if index is None else jnp.stack([index * np.uint32(SEED_STRIDE), jnp.uint32(0)])

    def get_current_value(self, variable: keras.Variable) -> Tensor:
        """Return a variable's value in this scope, a seed with the offset of this replica."""
        known = id(variable) in self.state_mapping
        value = super().get_current_value(variable)
        if not known and self._offset is not None and merge_of(variable) == "seed":
            value = self.state_mapping[id(variable)] = value + self._offset
        return value

    def merged(self, variable: keras.Variable, value: Tensor) -> Any:
        """Merge the value of a variable after this replica with those of the others."""
        merge = "first" if is_live(variable) else merge_of(variable)
        if merge == "seed":
            return value if self._offset is None else value - self._offset
        if merge == "sum" and self._offset is not None:
            before = current(variable)
            return before + jax.lax.psum(value - before, _AXIS)
        return _mean(value) if merge in ("mean", "sum") else _first(value)


def _join(value: Tensor, rows: int | None) -> Tensor:
    if rows is not None and has_rows(value, rows):
        return jax.lax.all_gather(value, _AXIS, tiled=True)
    return _mean(value) if jnp.issubdtype(value.dtype, jnp.inexact) else _first(value)


def _mean(value: Tensor) -> Tensor:
    """Return the mean over replicas, computed in float32."""
    return jax.lax.pmean(value.astype(jnp.float32), _AXIS).astype(value.dtype)


def _first(value: Tensor) -> Tensor:
    """Return the first replica's value."""
    return jax.lax.all_gather(value, _AXIS)[0]
