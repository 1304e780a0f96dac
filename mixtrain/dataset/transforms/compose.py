"""Compose: transforms and functions applied in sequence, as one transform."""

from __future__ import annotations

from typing import Any, ClassVar

from mixtrain.dataset.transforms.operation import Operation, PictureMode, Seed, TensorOperation
from mixtrain.dataset.transforms.transform_chain import read_operations, run_eagerly, run_graph
from mixtrain.typing import Tensor


class Compound(TensorOperation):
    """Base class of transforms of other transforms and functions; with functions it has no graph form.

    Args: transforms: The transforms and functions.
    """

    same_size: bool = False
    pictures: ClassVar[PictureMode] = "keeps"

    def __init__(self, transforms: list[Operation]) -> None:
        self.transforms = read_operations(type(self).__name__, "transforms", transforms)

    @property
    def has_graph(self) -> bool:
        """Whether every part has a graph form, the same for arrays and for Pillow images."""
        return super().has_graph and all(
            isinstance(operation, TensorOperation)
            and operation.has_graph
            and operation.pictures != "makes"
            and operation.for_pictures() is operation
            for operation in self.transforms
        )

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        results = self.run_parts(values, seed)
        return results if len(results) > 1 else results[0]

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the results for values under a seed."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method run_parts; got none. Write it.")


class Compose(Compound):
    """Transforms and Python functions applied in sequence.

    Args: transforms: A list of transforms and functions. A `Compose` in it is replaced by its own list.

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset import transforms
        >>> transforms.Compose([transforms.TypeCast(np.float32), lambda x: x / 2])(np.array([1, 2])).tolist()
        [0.5, 1.0]
    """

    def __init__(self, transforms: list[Operation]) -> None:
        super().__init__(transforms)
        self.transforms = flattened(self.transforms)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        return run_graph(self.transforms, value, seed)

    def run_parts(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        return run_eagerly(self.transforms, values, seed)


def flattened(operations: list[Operation]) -> list[Operation]:
    """Return the operations with each `Compose` replaced by its transforms."""
    return [
        inner
        for operation in operations
        for inner in (operation.transforms if type(operation) is Compose else [operation])
    ]
