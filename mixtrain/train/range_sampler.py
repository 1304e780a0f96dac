"""`RangeSampler`: the second compiled program of a run, which counts a batch's values where it would be trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixtrain import backend
from mixtrain.diagnostics.range_probe import measured_ranges
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.dtype import float32
from mixtrain.precision.formats import compilable
from mixtrain.train.networks import Networks


class RangeSampler:
    """Counts the values of activations and gradients; the network, random states too, is as it was.

    The network is computed in float32, so that the counts tell what each format would make of its values.

    Args:
        networks: What is trained.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._compiled: dict[int | None, tuple[Any, Any, list[Any]]] = {}

    def __call__(self, batch: Sequence[Any], most: int | None) -> tuple[Any, RangeRecords]:
        """Return the loss scale of the next step, a scalar tensor, and the ranges of one batch at it.

        Args:
            batch: Its columns.
            most: How many values of a tensor are counted at most, evenly spaced; None for all.
        """
        networks = self._networks
        networks.precision.enforce()
        plan = networks.precision.plan
        if most not in self._compiled or self._compiled[most][0] is not plan:
            self._compiled[most] = plan, *self._program(most)
        _, run, names = self._compiled[most]
        loss_scale, classes, largest = run(*batch)
        return loss_scale, RangeRecords.counted(names, classes, largest, loss_scale)

    def _program(self, most: int | None) -> tuple[Any, list[Any]]:
        networks = self._networks
        names: list[Any] = []

        def measure(*batch: Any) -> tuple[Any, Any, Any]:
            # Read here, not before: a copy of one number by itself takes as long as to call a program.
            loss_scale = networks.scale_tensor
            with networks.in_float32():
                classes, largest, names[:] = measured_ranges(
                    networks.examined, networks.with_loss, batch, loss_scale, most
                )
            return loss_scale, classes, largest

        choice = backend.choose_jit({float32}, backend.describe_device(), compilable(networks.network), True)
        return backend.called_directly(backend.compile_function(measure, choice=choice)), names
