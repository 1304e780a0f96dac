"""Replicas of one training step on several devices: a part of the graph for each of them, with explicit sums.

In a replica of `tf.distribute` a branch cannot write a mirrored variable, so steps could not be skipped there. Here the
replicas are parts of one graph, which read the variables of the process; the rest of a step is that of one device.
Under a user's `MirroredStrategy` the variables are mirrored, and all copies are read and written together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import keras
import numpy as np
import tensorflow as tf

from mixtrain import checks
from mixtrain.backend.class_labels import noting_shards
from mixtrain.backend.info import JitChoice
from mixtrain.backend.share import SEED_STRIDE, Merge, Share, divide, has_rows, is_one_number, merge_of, rows_of_all
from mixtrain.backend.signatures import Likely
from mixtrain.backend.tensor_base import backend_value
from mixtrain.backend.tensorflow.graph_writes import Place, Writes, places_of
from mixtrain.typing import Tensor, Tree

SHARDS_WEIGHTS: Final = False


def find_devices(
    devices: int | Sequence[Any] | None, where: str = "data_parallel", *, of_all_processes: bool = False
) -> list[Any]:
    del of_all_processes  # Strategies of several processes are refused.
    local = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    if devices is None or isinstance(devices, int):
        count = len(local) if devices is None else devices
        if not 1 <= count <= len(local):
            raise checks.fail_value(
                where, f"devices must be from 1 to the {len(local)} that TensorFlow has", devices,
                "tf.config.set_logical_device_configuration(tf.config.list_physical_devices('CPU')[0], "
                f"[tf.config.LogicalDeviceConfiguration()] * {count}) at the start for that many on a CPU",
            )
        return [device.name for device in local[:count]]
    known = {device.name.removeprefix("/device:"): device.name for device in tf.config.list_logical_devices()}
    names = []
    for device in devices:
        name = getattr(device, "name", device)
        if not isinstance(name, str):
            raise checks.fail_type(where, "devices must be names of devices", device, 'devices=["GPU:0"]')
        names.append(known[checks.one_of(where, "device", name.removeprefix("/device:"), tuple(known))])
    if not names or len(set(names)) < len(names):
        raise checks.fail_value(where, "devices must be different ones", devices, 'devices=["GPU:0"]')
    return names


def devices_in_force() -> list[Any] | None:
    if not tf.distribute.has_strategy():
        return None
    strategy = tf.distribute.get_strategy()
    if type(strategy) not in (tf.distribute.MirroredStrategy, tf.distribute.OneDeviceStrategy):
        raise checks.fail_value(
            "Model", "a strategy of tf.distribute must be a MirroredStrategy of this process", strategy,
            "tf.distribute.MirroredStrategy(), or mixtrain.distribution.data_parallel() without a strategy",
        )
    if not tf.distribute.in_cross_replica_context():
        raise checks.fail_value(
            "Model", "a Model must be made and trained outside of strategy.run", "a replica", "it around the Model"
        )
    names = {device.name for device in tf.config.list_logical_devices()}
    devices = [f"/device:{device.rpartition('/device:')[2]}" for device in strategy.extended.worker_devices]
    return [device for device in devices if device in names]


def in_several_processes(devices: Sequence[Any]) -> bool:
    """Strategies of several processes are refused."""
    del devices
    return False


def reads_own_rows(devices: Sequence[Any]) -> bool:
    del devices
    return False


def join_rows(batch: Tree, devices: Sequence[Any]) -> Tree:
    """Return the batch: the devices are those of this process."""
    del devices
    return batch


class Replicas:
    def __init__(self, devices: Sequence[Any], likely: Likely, whole: bool = False, joined: bool = False) -> None:
        del joined  # A strategy of TensorFlow's has the statistics of each device, in Keras too.
        self._devices = list(devices)
        self._likely = likely
        self._writes = Writes(likely)
        self._whole = whole
        self.count = len(self._devices)

    def jit_choice(self, choice: JitChoice) -> JitChoice:
        if not choice.jit or self.count == 1:
            return choice
        return JitChoice(False, "XLA would compile all replicas for one device")

    def run(
        self, part: Callable[..., tuple[list[Tensor], Tree]], columns: Sequence[Tensor],
        like: Sequence[keras.Variable | None], largest: Sequence[int] = (),
    ) -> tuple[list[Tensor], Tree]:
        if tf.distribute.has_strategy():
            raise checks.fail_value(
                "Model.train", "a step must run outside of the scope of a strategy of tf.distribute", "one inside it",
                "strategy.scope() around the network, the optimizer and the Model undivided",
            )
        tensors = [tf.convert_to_tensor(backend_value(value)) for value in tf.nest.flatten(tuple(columns))]
        rows = rows_of_all(tensors)
        undivided = self._whole or tf.executing_eagerly() or self.count == 1 or all(map(is_one_number, tensors))
        if undivided or rows is not None and not divide(rows, self.count):
            with tf.device(self._devices[0]):
                return part(Share(rows), *columns)
        division = _Division(tensors, rows, self.count)
        likely = [(place, merge_of(variable)) for variable in self._likely() for place in places_of(variable)]
        merges = {id(place.handle): merge for place, merge in likely}
        seeds = [place for place, merge in likely if merge == "seed"]
        results: list[tuple[list[Any], Any]] = []
        # By the identity of the resource: the place, its previous value, and its value after each replica.
        written: dict[int, tuple[Place, Any, list[Any]]] = {}
        for index, device in enumerate(self._devices):
            with tf.device(device):
                shards = division.shards(index)
                offset = division.unless_whole(np.int64(index * SEED_STRIDE % 2**31), np.int64(0))
                with self._writes.recorded() as places:
                    _shift(seeds, offset)
                    with noting_shards(tf.nest.flatten(tuple(columns)), shards):
                        results.append(part(division.share, *tf.nest.pack_sequence_as(tuple(columns), shards)))
                    _shift(seeds, -offset)
                for place, before in places:
                    written.setdefault(id(place.handle), (place, before, []))[2].append(place.read())
                    place.write(before)  # Every replica starts from the same values.
        with tf.device(self._devices[0]):
            for key, (place, before, values) in written.items():
                merge = merges.get(key) or ("mean" if place.dtype.is_floating else "first")
                place.write(division.merged(merge, before, values))
            totals = [
                tf.reduce_max(tf.stack(values), 0) if index in largest and values[0] is not None
                else division.total(values)
                for index, values in enumerate(zip(*(result[0] for result in results), strict=True))
            ]
            others = tf.nest.map_structure(lambda *values: division.joined(values), *(result[1] for result in results))
        return totals, others


class _Division:
    """How the rows of the tensors of a batch are divided: evenly, or all of them to each of `count` replicas.

    `rows`: The number of rows, known to be divisible; None where it is unknown.
    """

    def __init__(self, tensors: Sequence[Tensor], rows: int | None, count: int) -> None:
        self._tensors = tensors
        self._rows = rows
        self._count = count
        first = next(tensor for tensor in tensors if not is_one_number(tensor))
        self._all = tf.shape(first)[0] if rows is None else rows
        self._divides: Any = True if rows is not None else tf.equal(self._all % count, 0)
        self._each = self.unless_whole(self._all // count, self._all)
        self.share = Share(
            None if rows is None else rows // count, self.unless_whole(np.float32(1 / count), np.float32(1))
        )

    def unless_whole(self, divided: Any, whole: Any) -> Any:
        """Select between the values for replicas that divide the rows, and for replicas that have all of them."""
        return divided if self._divides is True else tf.where(self._divides, divided, whole)

    def shards(self, index: int) -> list[Any]:
        """Return a replica's rows of the tensors."""
        start = self.unless_whole(index * self._each, 0)
        return [
            tensor[start : start + self._each] if has_rows(tensor, self._rows) else tensor for tensor in self._tensors
        ]

    def total(self, values: Sequence[Any]) -> Any:
        """Return the sum over replicas, or their mean where each has all rows; sparse where they are."""
        if values[0] is None:
            return None
        weight = self.unless_whole(np.float32(1), np.float32(1 / self._count))
        if isinstance(values[0], tf.IndexedSlices):
            numbers = tf.concat([value.values for value in values], 0)
            indices = tf.concat([value.indices for value in values], 0)
            return tf.IndexedSlices(_times(numbers, weight), indices, values[0].dense_shape)
        return _times(tf.add_n(list(values)), weight)

    def joined(self, values: Sequence[Any]) -> Any:
        """Return the other results of replicas as those of the batch."""
        first = values[0]
        if not tf.is_tensor(first):
            return first
        if has_rows(first, self.share.rows):
            return tf.concat(values, 0)[: self._all]
        return self.merged("mean" if first.dtype.is_floating else "first", first, values)

    def merged(self, merge: Merge, before: Any, values: Sequence[Any]) -> Any:
        """Merge the values that replicas wrote to a variable, or computed."""
        if merge in ("seed", "first"):
            return values[0]
        if merge == "sum":
            change = tf.add_n([value - before for value in values])
            return before + self.unless_whole(change, tf.cast(change / self._count, change.dtype))
        return tf.cast(tf.add_n([tf.cast(value, tf.float32) for value in values]) / self._count, values[0].dtype)


def _times(value: Tensor, weight: Tensor | None) -> Tensor:
    return value if isinstance(weight, np.generic) and weight == 1 else value * tf.cast(weight, value.dtype)


def _shift(seeds: Iterable[Place], offset: Any) -> None:
    """Add an offset to the first number of seeds."""
    if isinstance(offset, np.generic) and not offset:
        return
    for place in seeds:
        seed = place.read()
        place.write(seed + tf.cast(tf.stack([offset, 0]), seed.dtype))
