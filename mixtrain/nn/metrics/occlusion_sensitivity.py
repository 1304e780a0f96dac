"""`OcclusionSensitivity`: the drop of a score when parts of an image are occluded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.common.tensor import Tensor
from mixtrain.metrics.metric import Metric, rearrange_inputs


class OcclusionSensitivity(Metric):
    """The drop of a label's score when the neighborhood of each pixel is occluded.

    Args:
        pad_val: Value of occluded pixels.
        margin: Number of pixels to occlude on each side.
        n_batch: Number of images per call of the network.
        b_box: Bounding box to evaluate, ``[first, last]`` of each dimension, concatenated; None for the whole image.

    Example:
        >>> score = lambda images: Tensor(images.asnumpy().sum((1, 2))[:, None])
        >>> OcclusionSensitivity(margin=1)(score, np.ones((1, 1, 3), np.float32), np.array([0])).tolist()
        [1.0, 2.0, 2.0]

    Source: Zeiler and Fergus, 2014; MindSpore, `mindspore.train.OcclusionSensitivity`.
    """

    def __init__(
        self, pad_val: float = 0.0, margin: int = 2, n_batch: int = 128, b_box: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.pad_val = checks.number("OcclusionSensitivity", "pad_val", pad_val, example=0.0)
        self.margin = checks.integer("OcclusionSensitivity", "margin", margin, at_least=1, example=2)
        self.n_batch = checks.integer("OcclusionSensitivity", "n_batch", n_batch, at_least=1, example=128)
        kinds = (list, tuple, type(None))
        self.b_box = checks.instance("OcclusionSensitivity", "b_box", b_box, kinds, "b_box=[0, 0, 0, 4, 0, 4]")
        self.clear()

    def clear(self) -> None:
        self._sensitivity: np.ndarray | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Evaluate one image, replacing that of an earlier call.

        Args: *inputs: The network, a batch of one image, and its label.
        Raises: ValueError: There are not three inputs, or more than one image or label, or `b_box` is not inside the
            image.
        """
        where = "OcclusionSensitivity.update"
        if len(inputs) != 3:
            raise checks.fail_value(where, "it takes three inputs", len(inputs), "update(network, image, label)")
        network, image, label = inputs[0], self._convert_data(inputs[1]), self._convert_data(inputs[2])
        if len(image) != 1 or label.size != 1:
            raise checks.fail_value(
                where, "there must be one image and one label", (image.shape, label.shape),
                "update(network, image[:1], 3)",
            )
        class_index = int(label.reshape(-1)[0])
        box = self._box(image.shape[1:])
        sizes = [last - first + 1 for first, last in box]
        scores: list[np.ndarray] = []
        batch: list[np.ndarray] = []
        for count, offset in enumerate(np.ndindex(*sizes), 1):
            center = [first + step for (first, _), step in zip(box, offset, strict=True)]
            batch.append(self._occlude(image, center))
            if len(batch) == self.n_batch or count == np.prod(sizes):
                scores.append(self._convert_data(network(Tensor(np.concatenate(batch))))[:, class_index])
                batch = []
        baseline = self._convert_data(network(Tensor(image)))[0, class_index]
        self._sensitivity = np.squeeze(baseline - np.concatenate(scores).reshape(sizes))

    def _occlude(self, image: np.ndarray, center: list[int]) -> np.ndarray:
        """Return a copy of the image with the neighborhood of one pixel occluded."""
        copy = image.copy()
        neighborhood = (slice(max(0, index - self.margin), index + self.margin) for index in center)
        copy[(slice(None), *neighborhood)] = self.pad_val
        return copy

    def _box(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return the first and the last index of the bounding box along each dimension.

        Raises: ValueError: The box is not inside the image.
        """
        if self.b_box is None:
            return [(0, size - 1) for size in shape]
        bounds = [int(bound) for bound in self.b_box]
        example = f"b_box={[bound for size in shape for bound in (0, size - 1)]}"
        if len(bounds) != 2 * len(shape):
            raise checks.fail_value("OcclusionSensitivity", f"b_box must be {2 * len(shape)} places", bounds, example)
        box = []
        for first, last, size in zip(bounds[::2], bounds[1::2], shape, strict=True):
            first, last = max(first, 0), size - 1 if last < 0 else last
            if not first <= last < size:
                raise checks.fail_value("OcclusionSensitivity", "b_box must lie inside the image", bounds, example)
            box.append((first, last))
        return box

    def eval(self) -> np.ndarray:
        """Return the drop of the score for each pixel."""
        if self._sensitivity is None:
            raise RuntimeError("OcclusionSensitivity.eval: nothing was gathered. Write update(...) first.")
        return self._sensitivity
