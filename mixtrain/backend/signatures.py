"""Types in the signatures of the backend interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras

from mixtrain.typing import Tensor, Tree

# The columns of a batch, or the results of a step: tensors, each a structure of them where a column has several parts.
Row = tuple[Any, ...]
Variables = Sequence[keras.Variable]
# In the order of variables; None where there is none.
Gradients = Sequence[Tensor | None]
# Returns the variables that some code is likely to write.
Likely = Callable[[], Iterable[keras.Variable]]
# Takes the results of a step; returns whether it is the last one to run, a scalar bool tensor.
IsLast = Callable[[Row], Tensor]
# Returns the tensor to differentiate, and other results.
Differentiable = Callable[..., tuple[Tensor, Tree]]
# Takes tensors, what was computed from them, and its gradients; returns the gradients of the tensors.
BackwardRule = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
