"""`to_float`: a user's own rule for a layer and its sublayers, which beats every level."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

from mixtrain import checks
from mixtrain.dtype import FLOAT8_RULES, HALF_DTYPES, DType, as_precision, float32
from mixtrain.network.marks import FLOAT8_REQUEST, REQUEST
from mixtrain.network.walk import tree_of
from mixtrain.trace_version import network_changed
from mixtrain.typing import DTypeLike, Layer

_LayerT = TypeVar("_LayerT")
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
        dst_type: float16, bfloat16 or float32; float8 or float8_delayed for the products of dense layers, while all
            else stays in the dtype that it has without this rule.

    Raises: ValueError if `dst_type` is another dtype. TypeError if `layer` is neither a Cell nor a Keras layer.

    Example: ``head = mixtrain.to_float(keras.layers.Dense(10), mixtrain.float32)``.
    """
    try:
        dtype = as_precision(dst_type)
    except TypeError:
        dtype = None
    if dtype not in (*HALF_DTYPES, float32, *FLOAT8_RULES):
        raise checks.fail_value(
            "to_float", "dst_type must be float16, bfloat16, float32 or float8", dst_type, "to_float(mixtrain.float16)"
        )
    request, mark = Request(dtype, next(_stamps)), FLOAT8_REQUEST if dtype in FLOAT8_RULES else REQUEST
    for node in tree_of(layer).walk():
        mark.put(node.layer, request)
    network_changed(layer)
    return layer


@contextlib.contextmanager
def assuming_to_float(layers: Sequence[Layer], dtype: DType) -> Iterator[None]:
    """Plan as after `to_float` of layers for the duration of a context; what was compiled stays in use."""
    nodes = [node.layer for layer in layers for node in tree_of(layer).walk()]
    previous = [(node, REQUEST.of(node)) for node in nodes]
    request = Request(dtype, next(_stamps))
    try:
        for node in nodes:
            REQUEST.put(node, request)
        yield
    finally:
        for node, request_before in reversed(previous):
            if request_before is None:
                REQUEST.remove(node)
            else:
                REQUEST.put(node, request_before)


@contextlib.contextmanager
def with_to_float(layers: Sequence[Layer], dtype: DType) -> Iterator[None]:
    """Call `to_float` on layers for the duration of a context, and restore their earlier rules at its end."""
    try:
        with assuming_to_float(layers, dtype):
            for layer in layers:
                network_changed(layer)
            yield
    finally:
        for layer in layers:
            network_changed(layer)
