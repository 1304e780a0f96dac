"""How a TensorFlow tensor remembers its channels-last twin: as an attribute of its own, which goes with the graph."""

from __future__ import annotations

from typing import Any, Final

import tensorflow as tf

from mixtrain.engine.layout import Layout

_TWIN: Final = "_mixtrain_channels_last"


class _Layout(Layout):
    def twin_of(self, tensor: Any) -> Any:
        return getattr(tensor, _TWIN, None)

    def forget_twin(self, tensor: Any) -> None:
        if self.twin_of(tensor) is not None:
            delattr(tensor, _TWIN)

    def remember(self, view: Any, twin: Any) -> None:
        if not tf.executing_eagerly():
            setattr(view, _TWIN, twin)

    def transposed(self, tensor: Any, axes: tuple[int, ...]) -> Any:
        return tf.transpose(tensor, axes)

    def rank(self, tensor: Any) -> int | None:
        return tensor.shape.rank if isinstance(tensor, tf.Tensor) else None  # type: ignore[no-any-return]


_layout: Final = _Layout()
twin_of, forget_twin = _layout.twin_of, _layout.forget_twin
to_channels_last, from_channels_last = _layout.to_channels_last, _layout.from_channels_last
elementwise, cast_keeping_layout = _layout.elementwise, _layout.cast_keeping_layout
reduce_axes, join_along = _layout.reduce_axes, _layout.join_along
