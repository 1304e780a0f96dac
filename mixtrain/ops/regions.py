"""Regions of interest: non-maximum suppression and ROI align."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.dtype import float32
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.windows import image
from mixtrain.typing import Tensor, TensorLike


class NMSWithMask(Primitive):
    """Non-maximum suppression: sort boxes by score, and mark those that overlap no better marked box.

    `iou_threshold`: the maximum intersection over union of two marked boxes, from 0 to 1. Example:
    ``sorted_boxes, indices, selected = ops.NMSWithMask(0.5)(boxes)``.
    """

    def __init__(self, iou_threshold: float = 0.5) -> None:
        super().__init__()
        self.iou_threshold = checks.number(
            self.name, "iou_threshold", iou_threshold, at_least=0, at_most=1, example=0.5
        )

    def __call__(self, bboxes: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``(boxes by descending score (N, 5), their indices 0 to N - 1, bool (N,))`` of `bboxes` (N, 5)."""
        ops, boxes = keras.ops, as_floats(self.name, bboxes)
        if rank_of(boxes) != 2 or boxes.shape[1] not in (None, 5):
            raise checks.fail_value(
                self.name, "bboxes must have shape (N, 5): box and score", tuple(boxes.shape), "boxes (N, 5)"
            )
        count = ops.shape(boxes)[0]
        # Of equal scores the later one comes first, as in the reference.
        order = ops.flip(ops.argsort(boxes[:, 4]), axis=0)
        boxes = ops.take(boxes, order, axis=0)
        suppresses = self._overlaps(boxes) > self.iou_threshold
        indices = ops.arange(count)

        def suppress(index: Tensor, marked: Tensor) -> Tensor:
            worse = ops.logical_and(ops.take(suppresses, index, axis=0), indices > index)
            # A box that is suppressed itself suppresses no other.
            return ops.logical_and(marked, ops.logical_not(ops.logical_and(worse, ops.take(marked, index, axis=0))))

        marked = ops.fori_loop(0, count, suppress, ops.ones((count,), dtype="bool"))
        return boxes, ops.cast(indices, "int32"), marked

    def _overlaps(self, boxes: Tensor) -> Tensor:
        ops = keras.ops
        left, top, right, bottom = ops.unstack(ops.cast(boxes[:, :4], float32), 4, axis=-1)
        area = (right - left) * (bottom - top)
        width = ops.minimum(right[:, None], right[None]) - ops.maximum(left[:, None], left[None])
        height = ops.minimum(bottom[:, None], bottom[None]) - ops.maximum(top[:, None], top[None])
        intersection = ops.maximum(width, 0) * ops.maximum(height, 0)
        union = area[:, None] + area[None] - intersection
        return ops.where(intersection > 0, intersection / ops.where(intersection > 0, union, ops.ones_like(union)), 0.0)


class ROIAlign(Primitive):
    """Sample features inside boxes on a fixed grid by bilinear interpolation (He et al., 2017).

    Args:
        pooled_height: Rows of the output.
        pooled_width: Columns of the output.
        spatial_scale: Size of the features over that of the image of the boxes.
        sample_num: Samples along each side of an output's cell; at least 1. (MindSpore's 0, as many as the box is
            large, needs shapes that depend on values.)
        roi_end_mode: 1: a box ends after its last pixel; 0: at it, and a box is at least 1 large.

    Example: ``ops.ROIAlign(2, 2, 1.0)(ops.ones((1, 8, 4, 4)), boxes)`` has shape (boxes, 8, 2, 2).
    """

    def __init__(
        self, pooled_height: int, pooled_width: int, spatial_scale: float, sample_num: int = 2, roi_end_mode: int = 1
    ) -> None:
        super().__init__()
        self.pooled_height = checks.integer(self.name, "pooled_height", pooled_height, at_least=1)
        self.pooled_width = checks.integer(self.name, "pooled_width", pooled_width, at_least=1)
        self.spatial_scale = checks.number(self.name, "spatial_scale", spatial_scale, above=0, example=0.25)
        self.sample_num = checks.integer(self.name, "sample_num", sample_num, at_least=1, example=2)
        self.roi_end_mode = checks.one_of(self.name, "roi_end_mode", roi_end_mode, (0, 1))

    def __call__(self, features: TensorLike, rois: TensorLike) -> Tensor:
        """Return (R, C, pooled_height, pooled_width) of `features` (N, C, H, W) in `rois` (R, 5): image and box."""
        ops, x, boxes = keras.ops, image(self.name, features), _float32(self.name, rois)
        if rank_of(boxes) != 2 or boxes.shape[1] not in (None, 5):
            raise checks.fail_value(
                self.name, "rois must have shape (R, 5): image's number, and box", tuple(boxes.shape), "rois (R, 5)"
            )
        image_index, left, top, right, bottom = ops.unstack(boxes, 5, axis=-1)
        height, width = ops.shape(x)[2:]
        down = self._weights(top, bottom, self.pooled_height, height)
        across = self._weights(left, right, self.pooled_width, width)
        maps = ops.cast(ops.take(x, ops.cast(image_index, "int32"), axis=0), float32)
        return ops.cast(ops.einsum("rih,rchw,rjw->rcij", down, maps, across), x.dtype)

    def _weights(self, start: Tensor, end: Tensor, cells: int, size: int) -> Tensor:
        """Return the weight of each of `size` pixels in each of `cells`, (R, cells, size)."""
        ops, samples = keras.ops, self.sample_num
        first = start * self.spatial_scale
        length = (end + self.roi_end_mode) * self.spatial_scale - first
        if self.roi_end_mode == 0:
            length = ops.maximum(length, 1)
        steps = (ops.arange(cells * samples, dtype=float32) + 0.5) / (cells * samples)
        points = first[:, None] + length[:, None] * steps[None, :]
        limit = ops.cast(size, float32)
        inside = ops.logical_and(points >= -1, points <= limit)
        points = ops.clip(points, 0, limit - 1)
        proximity = 1 - ops.absolute(points[:, :, None] - ops.arange(size, dtype=float32))
        weights = ops.where(inside[:, :, None], ops.maximum(proximity, 0), 0.0)
        return ops.mean(ops.reshape(weights, (-1, cells, samples, size)), axis=2)


class PSROIPooling(Primitive):
    """Average features inside the cells of boxes; each cell has channels of its own (R-FCN, Dai et al., 2016).

    Args:
        spatial_scale: Size of the features over that of the image of the boxes.
        group_size: Rows and columns of the output.
        output_dim: Channels of the output.

    Example: ``ops.PSROIPooling(0.25, 2, 3)(ops.ones((1, 12, 8, 8)), boxes)`` has shape (N * R, 3, 2, 2).
    """

    def __init__(self, spatial_scale: float, group_size: int, output_dim: int) -> None:
        super().__init__()
        self.spatial_scale = checks.number(self.name, "spatial_scale", spatial_scale, above=0, example=0.25)
        self.group_size = checks.integer(self.name, "group_size", group_size, at_least=1)
        self.output_dim = checks.integer(self.name, "output_dim", output_dim, at_least=1)

    def __call__(self, features: TensorLike, rois: TensorLike) -> Tensor:
        """Return (N * R, output_dim, group_size, group_size) of `features` (N, C, H, W) in `rois` (N, 5, R)."""
        ops, x, boxes, cells = keras.ops, image(self.name, features), _float32(self.name, rois), self.group_size
        channels, height, width = ops.shape(x)[1:]
        if channels != self.output_dim * cells**2:
            raise checks.fail_value(
                self.name, f"features must have {self.output_dim * cells**2} channels", channels, "output_dim=3"
            )
        if rank_of(boxes) != 3 or boxes.shape[1] not in (None, 5):
            raise checks.fail_value(
                self.name, "rois must have shape (N, 5, R): image's number, and box", tuple(boxes.shape),
                "rois (N, 5, R)",
            )
        index, left, top, right, bottom = ops.unstack(ops.reshape(ops.swapaxes(boxes, 1, 2), (-1, 5)), 5, axis=-1)
        down, across = self._inside(top, bottom, height), self._inside(left, right, width)
        maps = ops.take(x, ops.cast(index, "int32"), axis=0)
        maps = ops.reshape(maps, (-1, self.output_dim, cells, cells, height, width))
        sums = ops.einsum("rdijhw,rih,rjw->rdij", ops.cast(maps, float32), down, across)
        counts = ops.einsum("rih,rjw->rij", down, across)[:, None]
        return ops.cast(sums / ops.maximum(counts, 1.0), x.dtype)

    def _inside(self, start: Tensor, end: Tensor, size: int) -> Tensor:
        """Return 1 for each of `size` pixels in each cell of the boxes, else 0: (R, group_size, size)."""
        ops, cells = keras.ops, self.group_size
        first, last = (ops.floor(side * self.spatial_scale + 0.5) for side in (start, end))
        length = ops.maximum(last - first, 0.1)[:, None] / cells
        steps, pixels = ops.arange(cells, dtype=float32)[None], ops.arange(size, dtype=float32)
        begin = ops.clip(ops.floor(steps * length + first[:, None]), 0, size)[..., None]
        stop = ops.clip(ops.ceil((steps + 1) * length + first[:, None]), 0, size)[..., None]
        return ops.cast(ops.logical_and(pixels >= begin, pixels < stop), float32)


def _float32(where: str, value: TensorLike) -> Tensor:
    """Return boxes as a float32 tensor."""
    return keras.ops.cast(as_floats(where, value), float32)
