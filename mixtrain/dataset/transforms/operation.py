"""What a transform is: a function of one value that is called on arrays, and has a graph form for pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from mixtrain import backend, checks
from mixtrain.dataset.transforms.picture import is_picture, to_picture

Seed = Any
PictureHabit = Literal["keeps", "makes", "ends"]


class TensorOperation:
    """The base of transforms.

    A transform defines `graph`, in tensors; the call on a NumPy array, a tensor or a Pillow image comes with it, and so
    does its place in the compiled part of `Dataset.map`. Called on several values, it does the same to each.

    Attributes:
        same_size: Whether values of one size come out with one size, so that rows can be worked on together.
        opens: Whether it reads the contents of a file, of which hardly two have one size: `graph` then takes an array
            too, and a pipeline calls `open` where it comes first, so that rows of one size may be put together.
        by_block: Whether `block` does for rows along a first axis what `graph` does for each, at less cost.
        pictures: What becomes of Pillow's images: one goes in and one comes out, one comes out anyway, or none does.

    Example:
        >>> import numpy as np
        >>> class Halve(TensorOperation):
        ...     def graph(self, value, seed):
        ...         return value // 2
        >>> Halve()(np.array([4, 6])).tolist()
        [2, 3]

    Source: MindSpore, `mindspore.dataset.transforms.transforms.TensorOperation`.
    """

    same_size: bool = True
    opens: ClassVar[bool] = False
    by_block: bool = False
    pictures: ClassVar[PictureHabit] = "ends"

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor.

        Args:
            value: The tensor; its sizes may be unknown.
            seed: Two numbers that all random numbers come from; see `backend.row_random`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method graph(value, seed), or a __call__ of its own; got neither. "
            "Write one of them in the class."
        )

    def block(self, values: Any) -> Any:
        """Return the results for rows along the first axis of a tensor; only where `by_block` says so."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method block; got none. Write by_block = False.")

    def open(self, contents: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the results for the contents of several files; only where `opens` says so."""
        return [self.graph(value, None) for value in contents]

    def for_pictures(self) -> TensorOperation:
        """Return the transform to use on what are Pillow's images: another where Pillow's meaning is another."""
        return self

    @property
    def has_graph(self) -> bool:
        """Whether the graph form is all of it, so that it may run compiled."""
        kind = type(self)
        return kind.__call__ is TensorOperation.__call__ and kind.graph is not TensorOperation.graph

    def __call__(self, *values: Any) -> Any:
        """Return the result for an array, tensor or Pillow image, or a tuple of results for several.

        Random numbers follow NumPy's global seed, which `mixtrain.set_seed` sets.
        """
        return self.run(values, (int(np.random.randint(2**31 - 1)), 0))

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the results for values under a seed; a tuple where they are several."""
        if not values:
            raise checks.fail_type(type(self).__name__, "a value is needed", None, f"{type(self).__name__}(...)(image)")
        results = tuple(self._run_one(value, seed) for value in values)
        return results if len(results) > 1 else results[0]

    def _run_one(self, value: Any, seed: tuple[int, int]) -> Any:
        picture = is_picture(value)
        operation = self.for_pictures() if picture else self
        array = np.asarray(value) if picture else read_value(type(self).__name__, value)
        (result,) = backend.call_row(lambda seed, value: (operation.graph(value, seed),), seed, array)
        if self.pictures == "makes" or (picture and self.pictures == "keeps"):
            return to_picture(type(self).__name__, result)
        return result


class PyTensorOperation:
    """The base of users' transforms in Python: a subclass defines `__call__`, or `_execute_py` of one value.

    Example:
        >>> class Twice(PyTensorOperation):
        ...     def _execute_py(self, img):
        ...         return img * 2
        >>> Twice()(3)
        6

    Source: MindSpore, `mindspore.dataset.transforms.transforms.PyTensorOperation`.
    """

    def __init__(self) -> None:
        self.transforms: list[Any] = []
        self.output_type: Any = None

    def __call__(self, img: Any) -> Any:
        """Return what `_execute_py` makes of the value `img`."""
        return self._execute_py(img)

    def _execute_py(self, img: Any) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}: expected a method __call__ or _execute_py; got neither. Write one in the class."
        )


def read_value(where: str, value: Any) -> np.ndarray:
    """Return an array, a tensor or a number as an array.

    Raises:
        TypeError: It is something else, or has no numbers.
    """
    if not isinstance(value, np.ndarray):
        if not (backend.is_tensor(value) or isinstance(value, (bool, int, float, list, tuple, np.generic))):
            raise checks.fail_type(
                where, "the value must be a NumPy array, a tensor or a Pillow image", value, "np.array(value)"
            )
        value = np.asarray(backend.to_numpy(value) if backend.is_tensor(value) else value)
    if value.dtype.kind not in "biufV":
        raise checks.fail_type(where, "the value must have numbers", value, "np.array([1, 2, 3])")
    return value
