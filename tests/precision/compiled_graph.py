"""What a compiled step really computes in: the operations of its graph, by layer and dtype, on either backend."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from tests.backends import ON_TENSORFLOW

if ON_TENSORFLOW:
    from tests.precision.tensorflow_graph import arithmetic_of, half_units, is_cast, nodes_of
else:
    from tests.precision.jax_graph import arithmetic_of, half_units, is_cast, nodes_of

__all__ = ["Operation", "arithmetic_among", "casts_among", "dtypes_under", "half_units", "nodes_of", "operations"]


@dataclasses.dataclass(frozen=True)
class Operation:
    """One operation of a graph: its scope path, type and the dtype it computes in."""

    name: str
    kind: str
    dtype: str


def operations(function: Any, *inputs: Any) -> list[Operation]:
    """Return the forward arithmetic of a function compiled for these inputs, loop bodies included."""
    return arithmetic_among(nodes_of(function, *inputs))


def arithmetic_among(nodes: list[Any]) -> list[Operation]:
    """Return the nodes that do a layer's arithmetic."""
    return [Operation(*result) for result in map(arithmetic_of, nodes) if result is not None]


def casts_among(nodes: list[Any]) -> int:
    """Return how many nodes cast from one float format to another."""
    return sum(map(is_cast, nodes))


def dtypes_under(found: list[Operation], layer: str, *kinds: str) -> set[str]:
    """Return the dtypes of operations whose scope path has `layer` (or `layer_1`, ...) as one of its names."""
    name = re.compile(rf"(^|/){re.escape(layer)}(_\d+)?/")
    return {
        operation.dtype
        for operation in found
        if name.search(operation.name) and (not kinds or operation.kind in kinds)
    }
