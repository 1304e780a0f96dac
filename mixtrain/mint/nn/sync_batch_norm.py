"""`SyncBatchNorm`: batch normalization with statistics over the batches of all processes."""

from __future__ import annotations

from mixtrain import process_group
from mixtrain.mint.nn.parametrized import BatchNorm2d
from mixtrain.typing import DTypeLike


class SyncBatchNorm(BatchNorm2d):
    """`BatchNorm2d` of 2 to 5 axes, of a single process; several write `mixtrain.nn.SyncBatchNorm`.

    Args:
        num_features, eps, momentum, affine, track_running_stats, dtype: As in `BatchNorm2d`.
        process_group: None, the group of all processes.

    Example: ``mint.nn.SyncBatchNorm(3)(x)``.
    """

    _ranks = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:
        _check_one_process()
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)


def _check_one_process() -> None:
    if process_group.current().size > 1:
        raise NotImplementedError("SyncBatchNorm: mint's is of one process. Write mixtrain.nn.SyncBatchNorm.")
