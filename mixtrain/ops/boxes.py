"""Boxes (left, top, right, bottom), whose last row and column belong to them: overlaps, offsets, what is inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.dtype import promoted
from mixtrain.ops.inputs import as_floats, format_of, rank_of
from mixtrain.ops.primitive import Primitive


def _boxes(where: str, name: str, value: Any, width: int = 4) -> Any:
    """Return boxes (N, width) as a float tensor."""
    x = as_floats(where, value)
    if rank_of(x) != 2 or x.shape[1] not in (None, width):
        raise checks.fail_value(where, f"{name} must have shape (N, {width})", tuple(x.shape), f"boxes (N, {width})")
    return x


def _together(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two tensors in the wider of their formats."""
    dtype = promoted(format_of(one), format_of(other))
    return keras.ops.cast(one, dtype), keras.ops.cast(other, dtype)


def _edges(boxes: Any) -> list[Any]:
    return list(keras.ops.unstack(boxes, 4, axis=-1))


def iou(anchor_boxes: Any, gt_boxes: Any, mode: str = "iou") -> Any:
    """Return how much boxes overlap; no gradient is taken through it, as in MindSpore.

    Args:
        anchor_boxes: Boxes (N, 4).
        gt_boxes: Boxes (M, 4).
        mode: "iou" for the shared area over that of both together, "iof" for the shared area over that of the
            `gt_boxes`.

    Returns:
        (M, N), in the wider of the two formats.

    Raises:
        ValueError: The mode is neither, or the shapes are others.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> one, two = mixtrain.Tensor([[0.0, 0.0, 9.0, 9.0]]), mixtrain.Tensor([[0.0, 0.0, 9.0, 4.0]])
        >>> ops.iou(one, two).numpy().tolist(), ops.iou(one, two, "iof").numpy().tolist()
        ([[0.5]], [[1.0]])

    Source: MindSpore, `mindspore.ops.iou`.
    """
    where, ops = "ops.iou", keras.ops
    checks.one_of(where, "mode", mode, ("iou", "iof"))
    anchors, truths = _together(_boxes(where, "anchor_boxes", anchor_boxes), _boxes(where, "gt_boxes", gt_boxes))
    left, top, right, bottom = _edges(anchors[None, :, :])
    of_left, of_top, of_right, of_bottom = _edges(truths[:, None, :])
    wide = ops.maximum(ops.minimum(right, of_right) - ops.maximum(left, of_left) + 1, 0)
    high = ops.maximum(ops.minimum(bottom, of_bottom) - ops.maximum(top, of_top) + 1, 0)
    area, of_area = (right - left + 1) * (bottom - top + 1), (of_right - of_left + 1) * (of_bottom - of_top + 1)
    shared = wide * high
    return ops.stop_gradient(shared / (of_area if mode == "iof" else area + of_area - shared))


class IOU(Primitive):
    """`iou` with `mode` given. Example: ``ops.IOU()(anchors, truths)``. Source: MindSpore, `mindspore.ops.IOU`."""

    def __init__(self, mode: str = "iou") -> None:
        super().__init__()
        self.mode = checks.one_of(self.name, "mode", mode, ("iou", "iof"))

    def __call__(self, anchor_boxes: Any, gt_boxes: Any) -> Any:
        """Return the overlaps (M, N) of `anchor_boxes` (N, 4) with `gt_boxes` (M, 4)."""
        return iou(anchor_boxes, gt_boxes, self.mode)


class _Offsets(Primitive):
    """What coding boxes as offsets from anchors shares: the offsets' means and deviations."""

    def __init__(self, means: Any, stds: Any) -> None:
        super().__init__()
        self.means, self.stds = self._four("means", means), self._four("stds", stds)

    def _four(self, name: str, value: Any) -> tuple[float, ...]:
        values: Sequence[Any] = value if isinstance(value, (tuple, list)) else (value,) * 4
        if len(values) != 4:
            raise checks.fail_value(self.name, f"{name} must be 4 numbers", value, f"{name}=(0.0, 0.0, 1.0, 1.0)")
        return tuple(checks.number(self.name, name, one) for one in values)

    def _anchors(self, boxes: Any) -> tuple[Any, Any, Any, Any]:
        """Return the middles, widths and heights of boxes."""
        left, top, right, bottom = _edges(boxes)
        return (left + right) / 2, (top + bottom) / 2, right - left + 1, bottom - top + 1


class BoundingBoxEncode(_Offsets):
    """Write boxes as offsets from anchors: shifts of the middles in sizes of the anchor, logarithms of sizes.

    Args:
        means: Subtracted from the four offsets.
        stds: What they are divided by then.

    Raises:
        TypeError: An entry is not a number.
        ValueError: There are not four.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> anchor, box = mixtrain.Tensor([[0.0, 0.0, 9.0, 9.0]]), mixtrain.Tensor([[5.0, 0.0, 14.0, 9.0]])
        >>> ops.BoundingBoxEncode()(anchor, box).numpy().tolist()
        [[0.5, 0.0, 0.0, 0.0]]

    Source: Girshick et al., 2014; MindSpore, `mindspore.ops.BoundingBoxEncode`.
    """

    def __init__(self, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)) -> None:
        super().__init__(means, stds)

    def __call__(self, anchor_box: Any, groundtruth_box: Any) -> Any:
        """Return the offsets (N, 4) of `groundtruth_box` (N, 4) from `anchor_box` (N, 4)."""
        anchors, truths = _together(
            _boxes(self.name, "anchor_box", anchor_box), _boxes(self.name, "groundtruth_box", groundtruth_box)
        )
        (x, y, wide, high), (to_x, to_y, to_wide, to_high) = self._anchors(anchors), self._anchors(truths)
        offsets = [
            (to_x - x) / wide, (to_y - y) / high, keras.ops.log(to_wide / wide), keras.ops.log(to_high / high)
        ]
        return keras.ops.stack(
            [(one - mean) / std for one, mean, std in zip(offsets, self.means, self.stds, strict=True)], axis=-1
        )


class BoundingBoxDecode(_Offsets):
    """Read boxes from offsets from anchors, as `BoundingBoxEncode` writes them, and keep them inside the image.

    Args:
        max_shape: (height, width) of the image; no edge lies beyond.
        means: Added to the four offsets, once multiplied by `stds`.
        stds: What they are multiplied by.
        wh_ratio_clip: The least ratio of a size to the anchor's; its inverse is the greatest.

    Raises:
        TypeError: An entry is not a number.
        ValueError: There are not four, or `wh_ratio_clip` is not positive.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> anchor, offset = mixtrain.Tensor([[0.0, 0.0, 9.0, 9.0]]), mixtrain.Tensor([[0.5, 0.0, 0.0, 0.0]])
        >>> ops.BoundingBoxDecode(max_shape=(100, 100))(anchor, offset).numpy().tolist()
        [[5.0, 0.0, 14.0, 9.0]]

    Source: Girshick et al., 2014; MindSpore, `mindspore.ops.BoundingBoxDecode`.
    """

    def __init__(
        self,
        max_shape: Any,
        means: Any = (0.0, 0.0, 0.0, 0.0),
        stds: Any = (1.0, 1.0, 1.0, 1.0),
        wh_ratio_clip: float = 0.016,
    ) -> None:
        super().__init__(means, stds)
        if not isinstance(max_shape, (tuple, list)) or len(max_shape) != 2:
            raise checks.fail_type(self.name, "max_shape must be (height, width)", max_shape, "max_shape=(768, 1280)")
        self.max_shape = tuple(checks.integer(self.name, "max_shape", one, at_least=1) for one in max_shape)
        self.wh_ratio_clip = checks.number(self.name, "wh_ratio_clip", wh_ratio_clip, above=0, example=0.016)

    def __call__(self, anchor_box: Any, deltas: Any) -> Any:
        """Return the boxes (N, 4) of offsets `deltas` (N, 4) from `anchor_box` (N, 4)."""
        ops = keras.ops
        anchors, offsets = _together(_boxes(self.name, "anchor_box", anchor_box), _boxes(self.name, "deltas", deltas))
        x, y, wide, high = self._anchors(anchors)
        dx, dy, dw, dh = (
            one * std + mean for one, mean, std in zip(_edges(offsets), self.means, self.stds, strict=True)
        )
        limit = abs(math.log(self.wh_ratio_clip))
        to_wide, to_high = (size * ops.exp(ops.clip(one, -limit, limit)) for size, one in ((wide, dw), (high, dh)))
        to_x, to_y = x + wide * dx, y + high * dy
        rows, columns = self.max_shape
        edges = [
            (to_x - to_wide / 2 + 0.5, columns), (to_y - to_high / 2 + 0.5, rows),
            (to_x + to_wide / 2 - 0.5, columns), (to_y + to_high / 2 - 0.5, rows),
        ]
        return ops.stack([ops.clip(edge, 0, most) for edge, most in edges], axis=-1)


class CheckValid(Primitive):
    """Say which boxes lie inside an image.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> boxes = mixtrain.Tensor([[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 10.0, 9.0]])
        >>> ops.CheckValid()(boxes, mixtrain.Tensor([10.0, 10.0, 1.0])).numpy().tolist()
        [True, False]

    Source: MindSpore, `mindspore.ops.CheckValid`.
    """

    def __call__(self, bboxes: Any, img_metas: Any) -> Any:
        """Return bool (N,) for `bboxes` (N, 4) and `img_metas` (height, width, what both are multiplied by)."""
        boxes, metas = _together(_boxes(self.name, "bboxes", bboxes), as_floats(self.name, img_metas))
        if tuple(metas.shape) != (3,):
            raise checks.fail_value(
                self.name, "img_metas must be (height, width, ratio)", tuple(metas.shape), "Tensor([h, w, 1.0])"
            )
        left, top, right, bottom = _edges(boxes)
        height, width, ratio = keras.ops.unstack(metas, 3)
        inside = keras.ops.logical_and(left >= 0, top >= 0)
        inside = keras.ops.logical_and(inside, right <= width * ratio - 1)
        return keras.ops.logical_and(inside, bottom <= height * ratio - 1)
