"""`ResizeBilinear` and `Upsample`: resizing of sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain import checks, ops
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.nn.layer.inputs import check_rank, float_tensor
from mixtrain.ops.resize import INTERPOLATION_MODES, Grid, bilinear, new_sizes
from mixtrain.typing import Tensor


class ResizeBilinear(Cell):
    """Resize images with bilinear interpolation.

    Args: half_pixel_centers: Whether pixel coordinates refer to centers instead of corners; not with `align_corners`.

    Inputs:
        x (N, C, H, W), floating point. size: None, or the new (height, width). scale_factor: None, or an int that
        multiplies both. align_corners: whether the corner pixels of input and output are aligned.

    Returns: (N, C, height, width), dtype of `x`.
    Raises: ValueError: Not exactly one of size and scale_factor is given, or `x` has the wrong number of axes.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.ResizeBilinear()(mixtrain.Tensor([[[[1.0, 3.0]]]]), size=(1, 4)).numpy().tolist()
        [[[[1.0, 2.0, 3.0, 3.0]]]]

    Source: MindSpore 1.x, `mindspore.nn.ResizeBilinear`.
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = checks.boolean(self.cls_name, "half_pixel_centers", half_pixel_centers)

    def construct(
        self, x: Tensor, size: int | Sequence[int] | None = None, scale_factor: int | None = None,
        align_corners: bool = False,
    ) -> Tensor:
        """Resize `x`."""
        x = float_tensor(self, x)
        check_rank(self, x, (4,), "(N, C, H, W)")
        checks.boolean(self.cls_name, "align_corners", align_corners)
        if align_corners and self.half_pixel_centers:
            raise checks.fail_value(
                self.cls_name, "align_corners must be False with half_pixel_centers", align_corners,
                "align_corners=False",
            )
        grid: Grid = "corners" if align_corners else "centers" if self.half_pixel_centers else "starts"
        where = name_of(self)
        return bilinear(where, x, new_sizes(where, x, size, scale_factor), grid)


class Upsample(Cell):
    """Resize sequences, images or volumes.

    Args:
        size: The new size of each axis after the channels, an int or a tuple.
        scale_factor: Factor of the sizes, instead of `size`: a number or a tuple.
        mode, align_corners, recompute_scale_factor: As in `ops.interpolate`.

    Inputs: x (N, C, ...), floating point.
    Returns: (N, C, new sizes), dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.Upsample(scale_factor=2.0)(mixtrain.Tensor([[[1.0, 3.0]]])).numpy().tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
    """

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor = size, scale_factor
        self.mode = checks.one_of(self.cls_name, "mode", mode, tuple(INTERPOLATION_MODES))
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        """Resize `x`."""
        return ops.interpolate(
            float_tensor(self, x), self.size, self.scale_factor, self.mode, self.align_corners
        )
