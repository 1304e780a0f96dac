"""What losses ask of labels, as the operations below them do."""

from mixtrain.ops.labels import (
    Shape,
    check_broadcast,
    check_class_numbers,
    check_range,
    check_same_shape,
    fits,
    require_classes,
    shape_of,
)

__all__ = [
    "Shape", "check_broadcast", "check_class_numbers", "check_range", "check_same_shape", "fits", "require_classes",
    "shape_of",
]
