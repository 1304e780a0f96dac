"""`require_classes`: checks that labels are class numbers, at once or before a compiled step runs."""

from __future__ import annotations

from mixtrain import backend
from mixtrain.typing import Tensor


def require_classes(
    where: str, labels: Tensor, classes: int | None, ignored: int | None = None, weights: Tensor | None = None
) -> None:
    """Check that labels are class numbers: now, or while compiling, in each batch before the compiled step runs.

    `where`: Name of the caller, for errors. `labels`: The labels of the batch, unchanged. `classes`: The number of
    classes; None if it is not known. `ignored`: The label to ignore. `weights`: Weights of the labels; labels of weight
    0 are ignored.

    Raises: LabelOutOfRange if a label is out of range.
    """
    if backend.is_symbolic(labels):
        backend.note_class_labels(labels, classes, ignored, weights)
    elif classes is not None:
        outside = backend.first_outside(labels, classes, () if ignored is None else (ignored,), weights)
        if outside is not None:
            raise backend.LabelOutOfRange(where, outside[1], classes)
