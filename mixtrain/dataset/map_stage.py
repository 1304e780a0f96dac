"""How `Dataset.map` is carried out: which of its operations run compiled, and in which stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mixtrain.dataset.chain import Step
from mixtrain.dataset.columns import Replacement
from mixtrain.dataset.graph_map import GraphMap
from mixtrain.dataset.stage import Stage
from mixtrain.dataset.transform import Map, has_graph
from mixtrain.dataset.transforms.compose import Compose
from mixtrain.dataset.transforms.transform_chain import check_operation, for_pictures, read_operations


def map_stage(
    parent: Stage, operations: Any, inputs: Sequence[str], outputs: Sequence[str], workers: int | None
) -> Stage:
    """Return the stage that applies operations to columns.

    Args:
        parent: Makes the rows.
        operations: A transform or function, or a list of them.
        inputs: Names of the columns that the first takes.
        outputs: Names of the last one's results.
        workers: How many rows or blocks are under way at a time, None by default.

    Raises:
        TypeError: An operation cannot be called.
        ValueError: A column is unknown, or there is no operation.
    """
    functions = _flat(_read(operations))
    chosen, picture = for_pictures(functions) if all(map(has_graph, functions)) else ((), False)
    if not chosen or picture or len(inputs) != len(outputs):
        return Map(parent, functions, inputs, outputs, workers)
    replacement = Replacement("map", parent.columns, inputs, outputs)
    return GraphMap(parent, Step(chosen, replacement.inputs, tuple(inputs)), replacement.columns, workers)


def _read(operations: Any) -> list[Any]:
    if isinstance(operations, (list, tuple)):
        return read_operations("map", "operations", operations)
    check_operation("map", "operations", operations)
    return [operations]


def _flat(operations: list[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Return the operations with those inside `Compose` in its place."""
    return [
        inner
        for operation in operations
        for inner in (operation.transforms if type(operation) is Compose else [operation])
    ]
