"""`to_float`: a user's own rule for a layer and its sublayers, which beats every level."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from mixtrain import checks
from mixtrain.dtype import DType, as_dtype, bfloat16, float16, float32
from mixtrain.network.walk import tree_of
from mixtrain.trace_version import network_changed
from mixtrain.typing import DTypeLike, Layer

_LayerT = TypeVar("_LayerT")
_ATTRIBUTE: Final = "_mixtrain_request"
_stamps = itertools.count(1)


@dataclasses.dataclass(frozen=True)
class Request:
    """A user's rule for one layer. `stamp`: Number of the `to_float` call, by which the later of two rules wins."""

    dtype: DType
    stamp: int


def to_float(layer: _LayerT, dst_type: DTypeLike) -> _LayerT:
    """Make a layer and all of its sublayers compute in `dst_type`, whatever the level says.

    A later call on a sublayer overrides the rule there. The rule takes effect when a plan is applied, by `Model`,
    `build_train_network` or `auto_mixed_precision`; for a Cell also immediately.

    Args:
        layer: A Cell or Keras layer.
        dst_type: float16, bfloat16 or float32.

    Raises: ValueError if `dst_type` is another dtype. TypeError if `layer` is neither a Cell nor a Keras layer.

    Example: ``head = mixtrain.to_float(keras.layers.Dense(10), mixtrain.float32)``.
    """
    try:
        dtype = as_dtype(dst_type)
    except TypeError:
        dtype = None
    if dtype not in (float16, bfloat16, float32):
        raise checks.fail_value(
            "to_float", "dst_type must be float16, bfloat16 or float32", dst_type, "to_float(mixtrain.float16)"
        )
    request = Request(dtype, next(_stamps))
    for node in tree_of(layer).walk():
        object.__setattr__(node.layer, _ATTRIBUTE, request)
    network_changed(layer)
    return layer


@contextlib.contextmanager
def with_to_float(layers: Sequence[Layer], dtype: DType) -> Iterator[None]:
    """Call `to_float` on layers for the duration of a context, and restore their earlier rules at its end."""
    nodes = [node.layer for layer in layers for node in tree_of(layer).walk()]
    previous = [(node, request_of(node)) for node in nodes]
    try:
        for layer in layers:
            to_float(layer, dtype)
        yield
    finally:
        for node, request in reversed(previous):
            if request is None:
                vars(node).pop(_ATTRIBUTE, None)
            else:
                object.__setattr__(node, _ATTRIBUTE, request)
        for layer in layers:
            network_changed(layer)


def request_of(layer: Layer) -> Request | None:
    return getattr(layer, _ATTRIBUTE, None)
