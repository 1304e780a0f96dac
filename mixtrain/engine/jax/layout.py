"""How a value that JAX traces remembers its channels-last twin: in a table, for it takes no attributes."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp

from mixtrain.engine.jax.attached import Attached
from mixtrain.engine.layout import Layout


class _Layout(Layout):
    def __init__(self) -> None:
        self._twins = Attached()

    def twin_of(self, tensor: Any) -> Any:
        return self._twins.get(tensor)

    def forget_twin(self, tensor: Any) -> None:
        self._twins.remove(tensor)

    def remember(self, view: Any, twin: Any) -> None:
        if isinstance(view, jax.core.Tracer):
            self._twins.put(view, twin)

    def transposed(self, tensor: Any, axes: tuple[int, ...]) -> Any:
        return jnp.transpose(tensor, axes)

    def rank(self, tensor: Any) -> int | None:
        return tensor.ndim if isinstance(tensor, jax.Array) else None


_layout: Final = _Layout()
twin_of, forget_twin = _layout.twin_of, _layout.forget_twin
to_channels_last, from_channels_last = _layout.to_channels_last, _layout.from_channels_last
elementwise, cast_keeping_layout = _layout.elementwise, _layout.cast_keeping_layout
reduce_axes, join_along = _layout.reduce_axes, _layout.join_along
