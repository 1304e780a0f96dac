"""Bounding boxes (left, top, right, bottom), inclusive of the last row and column: overlaps, offsets, validity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.ops.inputs import as_floats, rank_of, tensor_dtype
from mixtrain.ops.primitive import Primitive, as_primitive, configured
from mixtrain.ops.promotion import promoted
from mixtrain.typing import Tensor, TensorLike


def _boxes(where: str, name: str, value: TensorLike, width: int = 4) -> Tensor:
    """Return boxes (N, width) as a float tensor."""
    x = as_floats(where, value)
    if rank_of(x) != 2 or x.shape[1] not in (None, width):
        raise checks.fail_value(where, f"{name} must have shape (N, {width})", tuple(x.shape), f"boxes (N, {width})")
    return x


def _promoted(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors in the wider of their dtypes."""
    dtype = promoted(tensor_dtype(x), tensor_dtype(y))
    return keras.ops.cast(x, dtype), keras.ops.cast(y, dtype)


def _edges(boxes: Tensor) -> list[Tensor]:
    return list(keras.ops.unstack(boxes, 4, axis=-1))


def iou(anchor_boxes: TensorLike, gt_boxes: TensorLike, mode: str = "iou") -> Tensor:
    """The overlaps (M, N) of `anchor_boxes` (N, 4) and `gt_boxes` (M, 4); their gradient is stopped, as in MindSpore.

    `mode`: "iou" for intersection over union, "iof" for intersection over foreground, the area of the `gt_boxes`.
    Example: ``ops.iou(Tensor([[0.0, 0.0, 9.0, 9.0]]), Tensor([[0.0, 0.0, 9.0, 4.0]]))`` is ``[[0.5]]``.
    """
    where, ops = "ops.iou", keras.ops
    checks.one_of(where, "mode", mode, ("iou", "iof"))
    anchors, truths = _promoted(_boxes(where, "anchor_boxes", anchor_boxes), _boxes(where, "gt_boxes", gt_boxes))
    left, top, right, bottom = _edges(anchors[None, :, :])
    gt_left, gt_top, gt_right, gt_bottom = _edges(truths[:, None, :])
    width = ops.maximum(ops.minimum(right, gt_right) - ops.maximum(left, gt_left) + 1, 0)
    height = ops.maximum(ops.minimum(bottom, gt_bottom) - ops.maximum(top, gt_top) + 1, 0)
    area, gt_area = (right - left + 1) * (bottom - top + 1), (gt_right - gt_left + 1) * (gt_bottom - gt_top + 1)
    intersection = width * height
    return ops.stop_gradient(intersection / (gt_area if mode == "iof" else area + gt_area - intersection))


IOU = configured("IOU", iou, mode="iou")


class _Offsets(Primitive):
    """Base of encoding and decoding boxes as offsets from anchors: means and standard deviations of the offsets."""

    def __init__(self, means: float | Sequence[float], stds: float | Sequence[float]) -> None:
        super().__init__()
        self.means, self.stds = self._four("means", means), self._four("stds", stds)

    def _four(self, name: str, value: float | Sequence[float]) -> tuple[float, ...]:
        values: Sequence[float] = value if isinstance(value, (tuple, list)) else (value,) * 4
        if len(values) != 4:
            raise checks.fail_value(self.name, f"{name} must be 4 numbers", value, f"{name}=(0.0, 0.0, 1.0, 1.0)")
        return tuple(checks.number(self.name, name, number) for number in values)

    def _centers_and_sizes(self, boxes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the centers, widths and heights of boxes."""
        left, top, right, bottom = _edges(boxes)
        return (left + right) / 2, (top + bottom) / 2, right - left + 1, bottom - top + 1


class BoundingBoxEncode(_Offsets):
    """Encode boxes as offsets from anchors: shifts of the center in units of the anchor size, and log ratios of sizes.

    `means` are subtracted from the four offsets, which are then divided by `stds` (Girshick et al., 2014). Example:
    ``ops.BoundingBoxEncode()(Tensor([[0.0, 0.0, 9.0, 9.0]]), Tensor([[5.0, 0.0, 14.0, 9.0]]))`` is
    ``[[0.5, 0.0, 0.0, 0.0]]``.
    """

    def __init__(
        self, means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    ) -> None:
        super().__init__(means, stds)

    def __call__(self, anchor_box: TensorLike, groundtruth_box: TensorLike) -> Tensor:
        """Return the offsets (N, 4) of `groundtruth_box` (N, 4) from `anchor_box` (N, 4)."""
        anchors, truths = _promoted(
            _boxes(self.name, "anchor_box", anchor_box), _boxes(self.name, "groundtruth_box", groundtruth_box)
        )
        x, y, width, height = self._centers_and_sizes(anchors)
        gt_x, gt_y, gt_width, gt_height = self._centers_and_sizes(truths)
        offsets = [
            (gt_x - x) / width, (gt_y - y) / height, keras.ops.log(gt_width / width), keras.ops.log(gt_height / height)
        ]
        return keras.ops.stack(
            [(offset - mean) / std for offset, mean, std in zip(offsets, self.means, self.stds, strict=True)], axis=-1
        )


class BoundingBoxDecode(_Offsets):
    """Decode boxes from the offsets of `BoundingBoxEncode`, and clip them to the image.

    Args:
        max_shape: (height, width) of the image.
        means: Added to the four offsets after they are multiplied by `stds`.
        stds: Multiplies the four offsets.
        wh_ratio_clip: The least ratio of a size to that of the anchor; its inverse is the greatest.

    Example: ``ops.BoundingBoxDecode((100, 100))(Tensor([[0.0, 0.0, 9.0, 9.0]]), Tensor([[0.5, 0.0, 0.0, 0.0]]))`` is
    ``[[5.0, 0.0, 14.0, 9.0]]``.
    """

    def __init__(
        self, max_shape: Sequence[int], means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0), wh_ratio_clip: float = 0.016,
    ) -> None:
        super().__init__(means, stds)
        if not isinstance(max_shape, (tuple, list)) or len(max_shape) != 2:
            raise checks.fail_type(self.name, "max_shape must be (height, width)", max_shape, "max_shape=(768, 1280)")
        self.max_shape = tuple(checks.integer(self.name, "max_shape", size, at_least=1) for size in max_shape)
        self.wh_ratio_clip = checks.number(self.name, "wh_ratio_clip", wh_ratio_clip, above=0, example=0.016)

    def __call__(self, anchor_box: TensorLike, deltas: TensorLike) -> Tensor:
        """Return the boxes (N, 4) of offsets `deltas` (N, 4) from `anchor_box` (N, 4)."""
        ops = keras.ops
        anchors, offsets = _promoted(_boxes(self.name, "anchor_box", anchor_box), _boxes(self.name, "deltas", deltas))
        x, y, width, height = self._centers_and_sizes(anchors)
        dx, dy, dw, dh = (
            offset * std + mean for offset, mean, std in zip(_edges(offsets), self.means, self.stds, strict=True)
        )
        limit = abs(math.log(self.wh_ratio_clip))
        new_width = width * ops.exp(ops.clip(dw, -limit, limit))
        new_height = height * ops.exp(ops.clip(dh, -limit, limit))
        new_x, new_y = x + width * dx, y + height * dy
        max_height, max_width = self.max_shape
        # Edges are inclusive, so that a box of width w goes from x - w / 2 + 0.5 to x + w / 2 - 0.5.
        edges = [
            (new_x - new_width / 2 + 0.5, max_width), (new_y - new_height / 2 + 0.5, max_height),
            (new_x + new_width / 2 - 0.5, max_width), (new_y + new_height / 2 - 0.5, max_height),
        ]
        return ops.stack([ops.clip(edge, 0, size) for edge, size in edges], axis=-1)


@as_primitive
def CheckValid(bboxes: TensorLike, img_metas: TensorLike) -> Tensor:
    """Whether boxes (N, 4) lie inside an image of `img_metas` (height, width, ratio that multiplies both).

    Example: ``ops.CheckValid()(boxes, Tensor([10.0, 10.0, 1.0]))``.
    """
    boxes, metas = _promoted(_boxes("CheckValid", "bboxes", bboxes), as_floats("CheckValid", img_metas))
    if tuple(metas.shape) != (3,):
        raise checks.fail_value(
            "CheckValid", "img_metas must be (height, width, ratio)", tuple(metas.shape), "Tensor([h, w, 1.0])"
        )
    left, top, right, bottom = _edges(boxes)
    height, width, ratio = keras.ops.unstack(metas, 3)
    inside = keras.ops.logical_and(left >= 0, top >= 0)
    inside = keras.ops.logical_and(inside, right <= width * ratio - 1)
    return keras.ops.logical_and(inside, bottom <= height * ratio - 1)
