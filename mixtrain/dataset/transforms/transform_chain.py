"""Several transforms in sequence: in a graph, eagerly, and for Pillow images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.data_backend import row_random
from mixtrain.dataset.transforms.operation import Operation, Seed, TensorOperation
from mixtrain.typing import Tensor


def for_pictures(
    operations: Iterable[TensorOperation], picture: bool = False
) -> tuple[tuple[TensorOperation, ...], bool]:
    """Return the transforms to apply to a value that may be a Pillow image, and whether the result is one."""
    transforms = []
    for operation in operations:
        transforms.append(operation.for_pictures() if picture else operation)
        picture = operation.pictures == "makes" or (picture and operation.pictures == "keeps")
    return tuple(transforms), picture


def run_graph(operations: Sequence[TensorOperation], value: Tensor, seed: Seed) -> Tensor:
    """Apply transforms in sequence to a tensor, each with its own random numbers."""
    for index, operation in enumerate(operations):
        value = operation.graph(value, row_random.fold_in(seed, index))
    return value


def run_eagerly(operations: Sequence[Operation], values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
    """Apply transforms and Python functions in sequence to values, each with its own random numbers."""
    for index, operation in enumerate(operations):
        values = run_part(operation, values, seed, index)
    return values


def run_part(operation: Operation, values: tuple[Any, ...], seed: tuple[int, int], index: int) -> tuple[Any, ...]:
    """Apply the part `index` of a compound transform with this seed to values."""
    result = run_one(operation, values, part_seed(seed, index))
    return result if isinstance(result, tuple) else (result,)


def run_one(operation: Operation, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
    """Apply one transform, with a seed, or one Python function to values."""
    if isinstance(operation, TensorOperation) and type(operation).__call__ is TensorOperation.__call__:
        return operation.run(values, seed)
    return operation(*values)


def part_seed(seed: tuple[int, int], index: int) -> tuple[int, int]:
    """Return the seed of a part of a compound transform; distinct up to 255 parts at each level of nesting."""
    return seed[0], seed[1] * 256 + index + 1


def numpy_generator(seed: tuple[int, int]) -> np.random.Generator:
    """Return NumPy's generator for the random numbers of one row."""
    return np.random.default_rng([abs(part) for part in seed])


def read_operations(where: str, argument: str, operations: Any) -> list[Operation]:
    """Return a list of transforms and functions."""
    write = f"{argument}=[vision.HWC2CHW()]"
    checks.instance(where, argument, operations, (list, tuple), write)
    if not operations:
        raise checks.fail_value(where, f"{argument} must have a function", operations, write)
    for operation in operations:
        check_operation(where, argument, operation)
    return list(operations)


def check_operation(where: str, argument: str, operation: Any) -> None:
    """Raise if a value is neither a transform nor a function."""
    if isinstance(operation, type) and issubclass(operation, TensorOperation):
        raise TypeError(
            f"{where}: expected transforms in {argument}; got the class {operation.__name__}. "
            f"Write {operation.__name__}(...), with its arguments."
        )
    if not callable(operation):
        raise checks.fail_type(where, f"{argument} must be functions", operation, f"{where}(lambda x: x / 255)")
