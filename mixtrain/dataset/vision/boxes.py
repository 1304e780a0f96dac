"""Transforms of images with bounding boxes: both are flipped, resized and cropped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import TensorOperation, read_value
from mixtrain.dataset.transforms.transform_chain import check_operation, numpy_generator, part_seed, run_one
from mixtrain.dataset.vision.arguments import probability
from mixtrain.dataset.vision.crop import RandomCrop
from mixtrain.dataset.vision.enums import Border, Inter
from mixtrain.dataset.vision.random_resized_crop import RandomResizedCrop
from mixtrain.dataset.vision.resize import RandomResize, Resize

Pair = tuple[np.ndarray, np.ndarray]


class BoxOperation(TensorOperation):
    """Base class of transforms of an image and its boxes: a subclass defines `apply`.

    A box is a row of floats: x and y of its top left corner, its width and height, and any further values.
    """

    same_size = False

    def apply(self, image: np.ndarray, boxes: np.ndarray, seed: tuple[int, int]) -> Pair:
        """Return the new image and boxes; the boxes are a copy that may be written."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method apply(image, boxes, seed); got none.")

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Pair:
        """Return the results for an image and its boxes under a seed.

        Raises: ValueError: The boxes do not have at least four floats each, or are not inside the image.
        """
        where = type(self).__name__
        if len(values) != 2:
            raise checks.fail_type(where, "two values are needed, an image and its boxes", len(values),
                                   'input_columns=["image", "bbox"]')
        image, boxes = (read_value(where, value) for value in values)
        if boxes.ndim != 2 or boxes.shape[1] < 4 or boxes.dtype.kind != "f":
            raise ValueError(
                f"{where}: expected boxes of shape (n, 4) or wider, in floats; got {boxes.dtype} of shape "
                f"{boxes.shape}. Write np.array([[x, y, width, height]], np.float32)."
            )
        corners = boxes[:, :2] + boxes[:, 2:4]
        if np.any(boxes[:, :4] < 0) or np.any(corners > (image.shape[1], image.shape[0])):
            raise ValueError(
                f"{where}: expected boxes inside an image of height {image.shape[0]} and width {image.shape[1]}; got "
                f"{boxes[:, :4].tolist()}. Write x, y, width and height in pixels of this image."
            )
        return self.apply(image, boxes.copy(), seed)


class RandomHorizontalFlipWithBBox(BoxOperation):
    """The image and its boxes, flipped horizontally with probability `prob`.

    Example:
        >>> flip = RandomHorizontalFlipWithBBox(1.0)
        >>> flip(np.zeros((4, 8)), np.array([[1.0, 0.0, 2.0, 3.0]]))[1].tolist()
        [[5.0, 0.0, 2.0, 3.0]]
    """

    _axis = 1  # Of the image.

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = probability(type(self).__name__, prob)

    def apply(self, image: np.ndarray, boxes: np.ndarray, seed: tuple[int, int]) -> Pair:
        if numpy_generator(seed).random() >= self.prob:
            return image, boxes
        x_or_y = 1 - self._axis
        boxes[:, x_or_y] = image.shape[self._axis] - boxes[:, x_or_y] - boxes[:, x_or_y + 2]
        return np.ascontiguousarray(np.flip(image, self._axis)), boxes


class RandomVerticalFlipWithBBox(RandomHorizontalFlipWithBBox):
    """The image and its boxes, flipped vertically with probability `prob`.

    Example:
        >>> flip = RandomVerticalFlipWithBBox(1.0)
        >>> flip(np.zeros((4, 8)), np.array([[1.0, 0.0, 2.0, 3.0]]))[1].tolist()
        [[1.0, 1.0, 2.0, 3.0]]
    """

    _axis = 0


class ResizeWithBBox(BoxOperation):
    """The image and its boxes, resized; `size` and `interpolation` are those of `Resize`.

    Example:
        >>> ResizeWithBBox((8, 4))(np.zeros((4, 8)), np.array([[1.0, 0.0, 2.0, 3.0]]))[1].tolist()
        [[0.5, 0.0, 1.0, 6.0]]
    """

    def __init__(self, size: int | Sequence[int], interpolation: Inter = Inter.LINEAR) -> None:
        self.resize: TensorOperation = Resize(size, interpolation)

    def apply(self, image: np.ndarray, boxes: np.ndarray, seed: tuple[int, int]) -> Pair:
        resized = self.resize.run((image,), seed)
        return resized, _scaled(boxes, image, resized)


class RandomResizeWithBBox(ResizeWithBBox):
    """The image and its boxes, resized with a random interpolation; `size` is that of `Resize`.

    Example:
        >>> RandomResizeWithBBox(2)(np.zeros((4, 8)), np.array([[1.0, 0.0, 2.0, 3.0]]))[1].tolist()
        [[0.5, 0.0, 1.0, 1.5]]
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.resize = RandomResize(size)


class RandomCropWithBBox(BoxOperation):
    """A part of the image at a random position, and the boxes clipped to it; boxes outside are dropped.

    Args: size, padding, pad_if_needed, fill_value, padding_mode: As in `RandomCrop`.

    Example:
        >>> crop = RandomCropWithBBox((6, 10), padding=1)
        >>> crop(np.zeros((4, 8)), np.array([[1.0, 0.0, 2.0, 3.0]]))[1].tolist()
        [[2.0, 1.0, 2.0, 3.0]]
    """

    def __init__(
        self, size: int | Sequence[int], padding: int | Sequence[int] | None = None, pad_if_needed: bool = False,
        fill_value: int | tuple[int, ...] = 0, padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.crop = RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)

    def apply(self, image: np.ndarray, boxes: np.ndarray, seed: tuple[int, int]) -> Pair:
        height, width = self.crop.size
        left, top, right, bottom = self.crop.padding
        if self.crop.pad_if_needed:
            ends = max(height - image.shape[0] - top - bottom, 0)
            sides = max(width - image.shape[1] - left - right, 0)
            left, top, right, bottom = left + sides, top + ends, right + sides, bottom + ends
        rows, columns = image.shape[0] + top + bottom, image.shape[1] + left + right
        if height > rows or width > columns:
            raise ValueError(
                f"RandomCropWithBBox: expected a size of at most ({rows}, {columns}), the image with its border; got "
                f"({height}, {width}). Write a smaller size, or pad_if_needed=True."
            )
        border = ((top, bottom), (left, right), (0, 0))[: image.ndim]
        mode = self.crop.padding_mode.value
        if any(map(any, border)):
            image = _filled(image, border, self.crop.fill_value) if mode == "constant" else np.pad(
                image, border, mode)  # type: ignore[call-overload]
        boxes[:, :2] += (left, top)
        generator = numpy_generator(seed)
        corner = int(generator.integers(rows - height + 1)), int(generator.integers(columns - width + 1))
        return _cropped(image, boxes, *corner, height, width)


class RandomResizedCropWithBBox(BoxOperation):
    """A part of the image of random area, aspect ratio and position, resized; the boxes are clipped to it.

    Args: size, scale, ratio, interpolation, max_attempts: As in `RandomResizedCrop`.

    Example:
        >>> crop = RandomResizedCropWithBBox((8, 8), (1.0, 1.0), (1.0, 1.0))
        >>> crop(np.zeros((4, 4)), np.array([[1.0, 0.0, 2.0, 3.0]]))[1].tolist()
        [[2.0, 0.0, 4.0, 6.0]]
    """

    def __init__(
        self, size: int | Sequence[int], scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0), interpolation: Inter = Inter.BILINEAR, max_attempts: int = 10,
    ) -> None:
        self.crop = RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)

    def apply(self, image: np.ndarray, boxes: np.ndarray, seed: tuple[int, int]) -> Pair:
        top, left, height, width = (int(n) for n in self.crop.sample(image.shape[0], image.shape[1], seed))
        part, boxes = _cropped(image, boxes, top, left, height, width)
        resized = Resize(self.crop.size, self.crop.interpolation).run((part,), seed)
        return resized, _scaled(boxes, part, resized)


class BoundingBoxAugment(BoxOperation):
    """The image with `transform`, which preserves the size, applied inside the fraction `ratio` of its boxes.

    Example:
        >>> from mixtrain.dataset.vision import Invert
        >>> augment = BoundingBoxAugment(Invert(), 1.0)
        >>> augment(np.zeros((1, 3), np.uint8), np.array([[1.0, 0.0, 2.0, 1.0]]))[0].tolist()
        [[0, 255, 255]]
    """

    def __init__(self, transform: Any, ratio: float = 0.3) -> None:
        check_operation("BoundingBoxAugment", "transform", transform)
        self.transform = transform
        self.ratio = checks.number("BoundingBoxAugment", "ratio", ratio, at_least=0.0, at_most=1.0, example=0.3)

    def apply(self, image: np.ndarray, boxes: np.ndarray, seed: tuple[int, int]) -> Pair:
        image = image.copy()
        count = int(np.ceil(self.ratio * len(boxes)))
        for index in numpy_generator(seed).permutation(len(boxes))[:count].tolist():
            left, top, width, height = (int(value) for value in boxes[index, :4])
            part = image[top : top + height, left : left + width]
            result = np.asarray(run_one(self.transform, (part,), part_seed(seed, index)))
            if result.shape != part.shape:
                raise ValueError(
                    f"BoundingBoxAugment: expected a transform that keeps the size of a part; got {result.shape} from "
                    f"{part.shape}. Write a transform such as vision.RandomRotation(10) or vision.Invert()."
                )
            image[top : top + height, left : left + width] = result
        return image, boxes


def _scaled(boxes: np.ndarray, image: np.ndarray, resized: np.ndarray) -> np.ndarray:
    """Return the boxes of an image in pixels of the resized image."""
    scale_x, scale_y = resized.shape[1] / image.shape[1], resized.shape[0] / image.shape[0]
    boxes[:, :4] *= (scale_x, scale_y, scale_x, scale_y)
    return boxes


def _cropped(image: np.ndarray, boxes: np.ndarray, top: int, left: int, height: int, width: int) -> Pair:
    """Return a part of an image, and the boxes that intersect or touch it, clipped to it."""
    first = np.maximum(boxes[:, :2], (left, top))
    last = np.minimum(boxes[:, :2] + boxes[:, 2:4], (left + width, top + height))
    boxes[:, :2], boxes[:, 2:4] = first - (left, top), last - first
    visible = np.all(last >= first, axis=1)
    return np.ascontiguousarray(image[top : top + height, left : left + width]), boxes[visible]


def _filled(image: np.ndarray, border: Sequence[tuple[int, int]], color: tuple[int, ...]) -> np.ndarray:
    """Return an image with a border of one color."""
    size = [sum(widths) + length for widths, length in zip(border, image.shape, strict=True)]
    result = np.empty(size, image.dtype)
    result[...] = color if image.ndim == 3 else color[0]
    (top, _), (left, _) = border[:2]
    result[top : top + image.shape[0], left : left + image.shape[1]] = image
    return result
