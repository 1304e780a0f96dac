"""Several transforms after each other: as one tensor function, and with Pillow's images followed through them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mixtrain import backend, checks
from mixtrain.dataset.transforms.operation import TensorOperation


def for_pictures(
    operations: Iterable[Any], picture: bool = False
) -> tuple[tuple[TensorOperation, ...], bool]:
    """Return the transforms to use where a value that may be a picture passes through them, and what it is at last.

    Args:
        operations: In order.
        picture: Whether the value is one of Pillow's images at first.
    """
    chosen = []
    for operation in operations:
        chosen.append(operation.for_pictures() if picture else operation)
        picture = operation.pictures == "makes" or (picture and operation.pictures == "keeps")
    return tuple(chosen), picture


def run_graph(operations: Sequence[TensorOperation], value: Any, seed: Any) -> Any:
    """Return the tensor that the transforms make of a tensor, each with random numbers of its own."""
    for number, operation in enumerate(operations):
        value = operation.graph(value, backend.row_random.fold(seed, number))
    return value


def run_eagerly(operations: Sequence[Any], values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
    """Return what transforms and Python functions make of values, one after the other."""
    for number, operation in enumerate(operations):
        result = run_one(operation, values, (seed[0], seed[1] * 256 + number + 1))
        values = result if isinstance(result, tuple) else (result,)
    return values


def run_one(operation: Any, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
    """Return what one transform, under a seed, or a Python function makes of values."""
    if isinstance(operation, TensorOperation) and type(operation).__call__ is TensorOperation.__call__:
        return operation.run(values, seed)
    return operation(*values)


def read_operations(where: str, argument: str, operations: Any) -> list[Any]:
    """Return a list of transforms and functions.

    Raises:
        TypeError: It is not a list, or one of them cannot be called or is a class.
        ValueError: It is empty.
    """
    write = f"{argument}=[vision.HWC2CHW()]"
    checks.instance(where, argument, operations, (list, tuple), write)
    if not operations:
        raise checks.fail_value(where, f"{argument} must have a function", operations, write)
    for operation in operations:
        check_operation(where, argument, operation)
    return list(operations)


def check_operation(where: str, argument: str, operation: Any) -> None:
    """Raise where a value is neither a transform nor a function."""
    if isinstance(operation, type) and issubclass(operation, TensorOperation):
        raise TypeError(
            f"{where}: expected transforms in {argument}; got the class {operation.__name__}. "
            f"Write {operation.__name__}(...), with its arguments."
        )
    if not callable(operation):
        raise checks.fail_type(where, f"{argument} must be functions", operation, f"{where}(lambda x: x / 255)")
