"""Summary operations: write values of a network to an event file while a recorder is active."""

from __future__ import annotations

from typing import Any, ClassVar

import keras

from mixtrain import checks
from mixtrain.boundary import is_any_tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.summary_values import record_value


class _Summary(Primitive):
    """The base of the summaries: a call takes a name and a tensor, and returns nothing."""

    _plugin: ClassVar[str]
    _ranks: ClassVar[tuple[int, int]]
    _axes: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, name: str, value: Any) -> None:
        """Pass the tensor `value` to the recorder, with `name` as its tag in the event file."""
        where = self.name
        if not isinstance(name, str):
            raise checks.fail_type(where, "name must be a str", name, 'summary("loss", loss)')
        if not name:
            raise checks.fail_value(where, "name must not be empty", name, 'summary("loss", loss)')
        if not is_any_tensor(value):
            raise checks.fail_type(where, "value must be a Tensor", value, 'summary("loss", loss)')
        min_rank, max_rank = self._ranks
        if not min_rank <= len(value.shape) <= max_rank:
            raise checks.fail_value(where, f"value must have {self._axes}", tuple(value.shape), "another shape")
        if not isinstance(value, keras.KerasTensor):
            value = keras.ops.convert_to_tensor(value)
            record_value(self._plugin, name, keras.ops.reshape(value, ()) if self._plugin == "scalar" else value)


class ScalarSummary(_Summary):
    """Record a number under a name; without an active SummaryRecord or SummaryCollector, do nothing.

    Example: ``ops.ScalarSummary()("loss", Tensor(0.5))``.
    """

    _plugin: ClassVar[str] = "scalar"
    _ranks: ClassVar[tuple[int, int]] = (0, 1)
    _axes: ClassVar[str] = "one element, on at most one axis"


class TensorSummary(_Summary):
    """Record a tensor under a name, as `ScalarSummary` does. Example: ``ops.TensorSummary()("features", x)``."""

    _plugin: ClassVar[str] = "tensor"
    _ranks: ClassVar[tuple[int, int]] = (1, 99)
    _axes: ClassVar[str] = "at least one axis"


class HistogramSummary(_Summary):
    """Record the histogram of a tensor under a name. Example: ``ops.HistogramSummary()("features", x)``."""

    _plugin: ClassVar[str] = "histogram"
    _ranks: ClassVar[tuple[int, int]] = (1, 99)
    _axes: ClassVar[str] = "at least one axis"


class ImageSummary(_Summary):
    """Record images (N, C, H, W) of 1 or 3 channels under a name. Example: ``ops.ImageSummary()("digits", x)``."""

    _plugin: ClassVar[str] = "image"
    _ranks: ClassVar[tuple[int, int]] = (4, 4)
    _axes: ClassVar[str] = "the axes (N, C, H, W)"
