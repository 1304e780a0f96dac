"""The base classes of transforms: functions of one value, with a graph form for pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from mixtrain import backend, checks, data_backend
from mixtrain.dataset.transforms.picture import is_picture, to_picture
from mixtrain.typing import DTypeLike, Tensor

# The seed of one row's random numbers: two ints, or in a graph a tensor.
Seed: TypeAlias = Any
# A transform, or a user's function of arrays.
Operation: TypeAlias = Any
PictureMode = Literal["keeps", "makes", "ends"]


class TensorOperation:
    """Base class of transforms.

    A transform defines `graph`, a function of tensors. It can then be called on a NumPy array, a tensor or a Pillow
    image, and runs compiled in `Dataset.map`. Called on several values, it transforms each in the same way.

    Attributes:
        same_size: Whether values of one size have results of one size, so that rows can be processed in blocks.
        opens: Whether it decodes the contents of files, which rarely have the same size. Then `graph` accepts an array
            too, and a pipeline that starts with it calls `open`, so that decoded rows of one size can form a block.
        by_block: Whether `block` returns for rows along a first axis what `graph` returns for each, at lower cost.
        pictures: Whether the result is a Pillow image: if the value is one ("keeps"), always ("makes"), never ("ends").

    Example:
        >>> class Halve(TensorOperation):
        ...     def graph(self, value, seed):
        ...         return value // 2
        >>> Halve()(np.array([4, 6])).tolist()
        [2, 3]
    """

    same_size: bool = True
    opens: ClassVar[bool] = False
    by_block: bool = False
    pictures: ClassVar[PictureMode] = "ends"

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        """Return the result for a tensor.

        Args:
            value: The tensor; its dimensions may be unknown.
            seed: Two integers that seed all random numbers; see `data_backend.row_random`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method graph(value, seed), or a __call__ of its own; got neither. "
            "Write one of them in the class."
        )

    def block(self, values: Tensor) -> Tensor:
        """Return the results for rows along the first axis of a tensor; only called if `by_block`."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method block; got none. Write by_block = False.")

    def open(self, contents: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the results for the contents of several files; only called if `opens`."""
        return [self.graph(value, None) for value in contents]

    def for_pictures(self) -> TensorOperation:
        """Return the transform to use on Pillow images, which may follow Pillow's conventions."""
        return self

    @property
    def has_graph(self) -> bool:
        """Whether it is defined by `graph` alone, so that it can run compiled."""
        cls = type(self)
        return cls.__call__ is TensorOperation.__call__ and cls.graph is not TensorOperation.graph

    def __call__(self, *values: Any) -> Any:
        """Return the result for an array, tensor or Pillow image, or a tuple of results for several.

        Random numbers follow NumPy's global seed, which `mixtrain.set_seed` sets.
        """
        return self.run(values, (int(np.random.randint(2**31 - 1)), 0))

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the result for one value under a seed, or a tuple of results for several."""
        if not values:
            raise checks.fail_type(type(self).__name__, "a value is needed", None, f"{type(self).__name__}(...)(image)")
        results = tuple(self._run_one(value, seed) for value in values)
        return results if len(results) > 1 else results[0]

    def _run_one(self, value: Any, seed: tuple[int, int]) -> Any:
        picture = is_picture(value)
        operation = self.for_pictures() if picture else self
        array = np.asarray(value) if picture else read_value(type(self).__name__, value)
        try:
            (result,) = data_backend.call_row(lambda seed, value: (operation.graph(value, seed),), seed, array)
        except Exception as error:
            checks.note_call(error, type(self).__name__, (value,))
            raise
        if self.pictures == "makes" or (picture and self.pictures == "keeps"):
            return to_picture(type(self).__name__, result)
        return result


class BlockOperation(TensorOperation):
    """Base class of transforms that process blocks of rows like single rows: a subclass defines `apply`."""

    by_block = True

    def apply(self, value: Tensor, rank: int) -> Tensor:
        """Return the result for a tensor, one row of the given rank or a block of such rows."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method apply(value, rank); got none. Write it.")

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        return self.apply(value, len(value.shape))

    def block(self, values: Tensor) -> Tensor:
        return self.apply(values, len(values.shape) - 1)


class PyTensorOperation:
    """Base class of user-defined transforms in Python: a subclass defines `__call__`, or `_execute_py` of one value.

    Example:
        >>> class Twice(PyTensorOperation):
        ...     def _execute_py(self, img):
        ...         return img * 2
        >>> Twice()(3)
        6
    """

    def __init__(self) -> None:
        self.transforms: Sequence[Operation] = []
        self.output_type: DTypeLike | None = None

    def __call__(self, img: Any) -> Any:
        """Return the result of `_execute_py` for the value `img`."""
        return self._execute_py(img)

    def _execute_py(self, img: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method __call__ or _execute_py; got neither. Write one in the class."
        )


def read_value(where: str, value: Any) -> np.ndarray:
    """Return an array, a tensor or a number as an array."""
    if not isinstance(value, np.ndarray):
        if not (backend.is_tensor(value) or isinstance(value, (bool, int, float, list, tuple, np.generic))):
            raise checks.fail_type(
                where, "the value must be a NumPy array, a tensor or a Pillow image", value, "np.array(value)"
            )
        value = np.asarray(backend.to_numpy(value) if backend.is_tensor(value) else value)
    if value.dtype.kind not in "biufV":
        raise checks.fail_type(where, "the value must have numbers", value, "np.array([1, 2, 3])")
    return value
