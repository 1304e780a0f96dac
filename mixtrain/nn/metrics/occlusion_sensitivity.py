"""`OcclusionSensitivity`: how much a score falls where a part of the image is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.common.tensor import Tensor
from mixtrain.nn.metrics.metric import Metric, rearrange_inputs


class OcclusionSensitivity(Metric):
    """How much the score of a label falls when the surroundings of each pixel are hidden.

    Args:
        pad_val: What hidden pixels hold.
        margin: How many pixels on each side are hidden.
        n_batch: How many images the network sees at a time.
        b_box: The part to look at, ``[first, last]`` for each dimension, one after the other; None for the whole.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> score = lambda images: Tensor(images.asnumpy().sum((1, 2))[:, None])
        >>> OcclusionSensitivity(margin=1)(score, np.ones((1, 1, 3), np.float32), np.array([0])).tolist()
        [1.0, 2.0, 2.0]

    Source: Zeiler and Fergus, 2014; MindSpore, `mindspore.train.OcclusionSensitivity`.
    """

    def __init__(
        self,
        pad_val: float = 0.0,
        margin: int = 2,
        n_batch: int = 128,
        b_box: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.pad_val = checks.number("OcclusionSensitivity", "pad_val", pad_val, example=0.0)
        self.margin = checks.integer("OcclusionSensitivity", "margin", margin, at_least=1, example=2)
        self.n_batch = checks.integer("OcclusionSensitivity", "n_batch", n_batch, at_least=1, example=128)
        self.b_box = b_box
        self.clear()

    def clear(self) -> None:
        """Forget what was gathered."""
        self._fall: np.ndarray | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Look at one image; that of an earlier call is forgotten.

        Args:
            *inputs: The network, a batch of one image, and its label.

        Raises:
            ValueError: There are not three inputs, or more than one image or label, or `b_box` is not inside the image.
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
        place = int(label.reshape(-1)[0])
        box = self._box(image.shape[1:])
        sizes = [last - first + 1 for first, last in box]
        scores: list[np.ndarray] = []
        hidden: list[np.ndarray] = []
        for number, offset in enumerate(np.ndindex(*sizes), 1):
            center = [first + step for (first, _), step in zip(box, offset, strict=True)]
            hidden.append(self._hidden(image, center))
            if len(hidden) == self.n_batch or number == np.prod(sizes):
                scores.append(self._convert_data(network(Tensor(np.concatenate(hidden))))[:, place])
                hidden = []
        whole = self._convert_data(network(Tensor(image)))[0, place]
        self._fall = np.squeeze(whole - np.concatenate(scores).reshape(sizes))

    def _hidden(self, image: np.ndarray, center: list[int]) -> np.ndarray:
        """Return the image with the surroundings of one pixel hidden."""
        copy = image.copy()
        part = (slice(max(0, place - self.margin), place + self.margin) for place in center)
        copy[(slice(None), *part)] = self.pad_val
        return copy

    def _box(self, shape: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return the first and the last place along each dimension.

        Raises:
            ValueError: They are not inside the image.
        """
        if self.b_box is None:
            return [(0, size - 1) for size in shape]
        given = [int(place) for place in self.b_box]
        example = f"b_box={[place for size in shape for place in (0, size - 1)]}"
        if len(given) != 2 * len(shape):
            raise checks.fail_value("OcclusionSensitivity", f"b_box must be {2 * len(shape)} places", given, example)
        box = []
        for first, last, size in zip(given[::2], given[1::2], shape, strict=True):
            first, last = max(first, 0), size - 1 if last < 0 else last
            if not first <= last < size:
                raise checks.fail_value("OcclusionSensitivity", "b_box must lie inside the image", given, example)
            box.append((first, last))
        return box

    def eval(self) -> np.ndarray:
        """Return how much the score fell for each pixel.

        Raises:
            RuntimeError: There was no `update`.
        """
        if self._fall is None:
            raise RuntimeError("OcclusionSensitivity.eval: nothing was gathered. Write update(...) first.")
        return self._fall
