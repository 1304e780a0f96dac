"""Build the stage of `Dataset.map`: a compiled one if all its operations have a graph form."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain.dataset.chain import Step
from mixtrain.dataset.columns import Replacement
from mixtrain.dataset.graph_map import GraphMap
from mixtrain.dataset.stage import Stage
from mixtrain.dataset.transform import Map, has_graph
from mixtrain.dataset.transforms.compose import flattened
from mixtrain.dataset.transforms.operation import Operation
from mixtrain.dataset.transforms.transform_chain import check_operation, for_pictures, read_operations


def map_stage(
    parent: Stage, operations: Operation | Sequence[Operation], inputs: Sequence[str], outputs: Sequence[str],
    workers: int | None,
) -> Stage:
    """Return the stage that applies operations to columns; see `Dataset.map`, whose columns have names here."""
    functions = flattened(_read(operations))
    transforms, returns_picture = for_pictures(functions) if all(map(has_graph, functions)) else ((), False)
    if not transforms or returns_picture or len(inputs) != len(outputs):
        return Map(parent, functions, inputs, outputs, workers)
    replacement = Replacement("map", parent.columns, inputs, outputs)
    return GraphMap(parent, Step(transforms, replacement.inputs, tuple(inputs)), replacement.columns, workers)


def _read(operations: Operation | Sequence[Operation]) -> list[Operation]:
    if isinstance(operations, (list, tuple)):
        return read_operations("map", "operations", operations)
    check_operation("map", "operations", operations)
    return [operations]
