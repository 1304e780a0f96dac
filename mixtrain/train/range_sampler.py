"""`RangeSampler`: a second compiled program of a run, which counts the values of a batch without training on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixtrain import backend
from mixtrain.diagnostics.range_probe import measured_ranges
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.dtype import float32
from mixtrain.precision.dtypes import compilable
from mixtrain.train.networks import Networks
from mixtrain.typing import Tensor, Tree


class RangeSampler:
    """Counts the values of activations and gradients, without changing the network or random states.

    The network computes in float32, so that the counts show how each dtype would represent its values.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._compiled: dict[int | None, tuple[Any, Any, list[Any]]] = {}

    def __call__(self, batch: Sequence[Tensor], max_values: int | None) -> tuple[Any, RangeRecords]:
        """Return the loss scale of the next step, a scalar tensor, and the ranges of one batch at it.

        `batch`: Its columns. `max_values`: Maximum number of values to count per tensor, evenly spaced; None for all.
        """
        networks = self._networks
        networks.precision.enforce()
        plan = networks.precision.plan
        if max_values not in self._compiled or self._compiled[max_values][0] is not plan:
            self._compiled[max_values] = plan, *self._compile(max_values)
        _, run, names = self._compiled[max_values]
        loss_scale, classes, largest = run(*batch)
        return loss_scale, RangeRecords.counted(names, classes, largest, loss_scale)

    def _compile(self, max_values: int | None) -> tuple[Any, list[Any]]:
        networks = self._networks
        names: list[Any] = []

        def measure(*batch: Tree) -> tuple[Tensor, Tensor, Tensor]:
            # Read inside the program: copying a single number takes as long as calling a program.
            loss_scale = networks.scale_tensor
            with networks.in_float32():
                classes, largest, names[:] = measured_ranges(
                    networks.examined, networks.with_loss, batch, loss_scale, max_values
                )
            return loss_scale, classes, largest

        choice = backend.choose_jit({float32}, backend.describe_device(), compilable(networks.network), True)
        return backend.called_directly(backend.compile_function(measure, choice=choice)), names
