"""`Metric`: the base class of evaluation metrics, which accumulate NumPy values over batches."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.typing import TensorLike

_MetricT = TypeVar("_MetricT", bound="Metric")
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])


class MetricLike(Protocol):
    """Interface of a metric to evaluation."""

    def clear(self) -> None:
        """Reset the metric."""

    def update(self, *inputs: TensorLike) -> Any:
        """Update the metric with one batch."""

    def eval(self) -> Any:
        """Compute the value over the batches since `clear`."""


@dataclasses.dataclass(frozen=True)
class SparseLabels:
    """The labels of a batch that a metric interprets as class indices.

    Attributes:
        labels: The labels.
        classes: Number of classes.
        ignored: Labels to ignore.
        weights: Weights of the labels, or None.
    """

    labels: TensorLike
    classes: int
    ignored: tuple[int, ...] = ()
    weights: TensorLike | None = None


class Metric:
    """Base class of metrics; a subclass defines `clear`, `update` and `eval`.

    Example:
        >>> class Count(Metric):
        ...     def clear(self):
        ...         self.rows = 0
        ...     def update(self, *inputs):
        ...         self.rows += len(inputs[0])
        ...     def eval(self):
        ...         return self.rows
        >>> Count()([1, 2, 3])
        3
    """

    # Whether evaluation passes the loss of a batch rather than the prediction and the label.
    _takes_loss: ClassVar[bool] = False

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Indices of the inputs that `update` uses, in order; None for all."""
        return getattr(self, "_indexes", None)

    def _sparse_labels(self, *inputs: TensorLike) -> SparseLabels | None:
        """Return the labels among the inputs of `update` that must be class indices, for a Model to validate."""
        return None

    def set_indexes(self: _MetricT, indexes: list[int]) -> _MetricT:
        """Select the inputs that an `update` decorated with `rearrange_inputs` uses.

        Args: indexes: Indices of the inputs, in order.
        Returns: This metric.
        """
        if not isinstance(indexes, list) or any(not isinstance(i, int) or isinstance(i, bool) for i in indexes):
            raise checks.fail_value(
                f"{type(self).__name__}.set_indexes", "indexes must be a list of ints", indexes, "set_indexes([0, 2])"
            )
        self._indexes = indexes
        return self

    def __call__(self, *inputs: TensorLike) -> Any:
        """Compute the value for a single batch."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    def clear(self) -> None:
        """Reset the metric; a subclass defines it."""
        raise self._undefined("clear(self)")

    def update(self, *inputs: TensorLike) -> Any:
        """Update the metric with one batch, usually predictions and labels; a subclass defines it."""
        raise self._undefined("update(self, *inputs)")

    def eval(self) -> Any:
        """Compute the value over all batches since `clear`; a subclass defines it."""
        raise self._undefined("eval(self)")

    def _undefined(self, signature: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__}: a Metric must define clear, update and eval. Write def {signature}: ..."
        )

    def _convert_data(self, data: TensorLike) -> np.ndarray:
        """Convert a tensor, array, list or number to an array."""
        if is_any_tensor(data):
            return backend.to_numpy(data)
        if isinstance(data, (np.ndarray, np.generic, list, tuple, float, int)):
            return np.asarray(data)
        raise checks.fail_type(
            f"{type(self).__name__}.update", "each input must be a tensor, array or list", data, "a mixtrain.Tensor"
        )


def rearrange_inputs(func: _FunctionT) -> _FunctionT:
    """Decorate `update` so that it receives the inputs selected by `set_indexes`.

    Args: func: A method of an object with the attribute `indexes`.

    Example:
        >>> class First(Metric):
        ...     @rearrange_inputs
        ...     def update(self, *inputs):
        ...         return inputs
        >>> First().set_indexes([1, 0]).update(5, 9)
        (9, 5)
    """

    @functools.wraps(func)
    def wrapper(self: Any, *inputs: Any) -> Any:
        selected = inputs if not self.indexes else tuple(inputs[i] for i in self.indexes)
        return func(self, *selected)

    return wrapper  # type: ignore[return-value]


def class_indices(predictions: np.ndarray, labels: np.ndarray, axis: int = 1) -> SparseLabels | None:
    """Return the labels if they are class indices for predictions; None for others, such as one-hot rows."""
    shape = list(predictions.shape)
    classes = shape.pop(axis) if len(shape) > 1 else 0
    is_sparse = classes > 1 and list(labels.shape) in (shape, [*shape, 1])
    return SparseLabels(labels, classes) if is_sparse else None
