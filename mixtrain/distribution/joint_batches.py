"""`joint_batches`: the batches of processes whose devices train as those of one; each reads its rows of them."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import keras

from mixtrain import backend, checks, execution, process_group
from mixtrain.distribution.processes import batch_rows, check_equal
from mixtrain.typing import Batch, Tensor, Tree


def joint_batches(batches: Iterable[Batch], where: str, devices: Any) -> Iterator[Batch]:
    """Yield the joint batch of all processes for each batch that this process reads.

    Its rows are those of all processes, in their order; or those of each, which must be the same, where each process
    has devices for all rows of a batch.

    `where`: The caller, for errors. `devices`: As in `DataParallel`.

    Raises: ValueError in every process if their batches differ in number, rows, shapes or dtypes, or steps do not run
        compiled: single operations may wait for each other. TypeError if a column is text.
    """
    if not execution.current.graph_mode:
        raise checks.fail_value(
            where, "the steps of several processes on one mesh must be compiled", "PYNATIVE_MODE or run_eagerly=True",
            "set_context(mode=GRAPH_MODE)",
        )
    for batch in itertools.chain(batches, [None]):
        parts = [] if batch is None else keras.tree.flatten(batch)
        for part in parts:
            checks.instance(where, "a column of a batch", part, backend.BACKEND_TENSORS, "columns of numbers alone")
        facts = {"the number of rows of each batch (-1 after the last)": -1 if batch is None else batch_rows(parts)}
        facts["the specs of each batch, as a checksum of shapes and dtypes,"] = _checksum_of_specs(parts)
        if not backend.reads_own_rows(devices):
            facts["the values of each batch, as a checksum,"] = zlib.crc32(b"".join(map(_bytes_of, parts)))
        check_equal(where, facts)
        if batch is not None:
            yield backend.join_rows(batch, devices)


def whole(values: Tree) -> Tree:
    """Return tensors of this process for those that are divided over processes. Every process must call it."""

    def gather(value: Any) -> Any:
        return backend.to_tensor(backend.to_numpy(value)) if backend.is_tensor(value) else value

    return keras.tree.map_structure(gather, values)


def own_rows(outputs: Tree, batch: Batch, devices: Any) -> Tree:
    """Return what the outputs for a joint batch say of the rows that this process has read."""
    outputs, rows = whole(outputs), batch_rows(batch)
    if not backend.reads_own_rows(devices):
        return outputs
    group = process_group.current()
    count = rows // group.size
    own = slice(group.rank * count, (group.rank + 1) * count)
    return keras.tree.map_structure(lambda value: value[own] if value.shape[:1] == (rows,) else value, outputs)


def _checksum_of_specs(parts: list[Tensor]) -> int:
    # A number in a batch has no rows to divide, and must be the same everywhere.
    numbers = [_bytes_of(part) for part in parts if backend.is_one_number(part)]
    return zlib.crc32(repr(([(part.shape, str(part.dtype)) for part in parts], numbers)).encode())


def _bytes_of(part: Tensor) -> bytes:
    return backend.to_numpy(part).tobytes()
