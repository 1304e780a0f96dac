"""`LSTMCell`, `GRUCell` and `RNNCell`: a single step of a recurrent layer."""

from __future__ import annotations

import math
from typing import Literal

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.common.initializer import Uniform, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import float32
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor, promote
from mixtrain.nn.layer.recurrence import RECURRENCES, Recurrence, linear
from mixtrain.typing import DTypeLike, Tensor, Tree


class RNNCellBase(Cell):
    """The weights of a recurrent cell of `num_chunks` gates, for cells of the user's own, as in MindSpore."""

    precision_family = "recurrent"

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool, num_chunks: int, dtype: DTypeLike = float32
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.input_size = checks.integer(where, "input_size", input_size, at_least=1)
        self.hidden_size = checks.integer(where, "hidden_size", hidden_size, at_least=1)
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        rows = checks.integer(where, "num_chunks", num_chunks, at_least=1) * self.hidden_size
        init = Uniform(1 / math.sqrt(self.hidden_size))
        self.weight_ih = Parameter(initializer(init, (rows, self.input_size), dtype), name="weight_ih")
        self.weight_hh = Parameter(initializer(init, (rows, self.hidden_size), dtype), name="weight_hh")
        self.bias_ih: Parameter | None = None
        self.bias_hh: Parameter | None = None
        if has_bias:
            self.bias_ih = Parameter(initializer(init, (rows,), dtype), name="bias_ih")
            self.bias_hh = Parameter(initializer(init, (rows,), dtype), name="bias_hh")


class _RecurrentCell(RNNCellBase):
    """Base class of the recurrent cells here; `kind` is a key of `RECURRENCES`."""

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool, kind: str, dtype: DTypeLike) -> None:
        super().__init__(input_size, hidden_size, has_bias, RECURRENCES[kind].gates, dtype)
        self._recurrence: Recurrence = RECURRENCES[kind]

    def construct(self, x: Tensor, hx: Tree) -> Tree:
        """Return the state after the step with input `x`."""
        x = self._checked(x, self.input_size, "input_size")
        states = hx if isinstance(hx, (tuple, list)) else (hx,)
        if len(states) != self._recurrence.states:
            raise ValueError(
                f"{name_of(self)}: expected a state of {self._recurrence.states} tensors; got {len(states)}. Write "
                f"{'(h, c)' if self._recurrence.states == 2 else 'h'}."
            )
        states = tuple(self._checked(state, self.hidden_size, "hidden_size") for state in states)
        biases = () if self.bias_ih is None or self.bias_hh is None else (self.bias_ih.value, self.bias_hh.value)
        values = promote(x, *states, self.weight_ih.value, self.weight_hh.value, *biases)
        count = self._recurrence.states
        x, state, (weight_ih, weight_hh, *promoted) = values[0], values[1 : count + 1], values[count + 1 :]
        bias_ih, bias_hh = promoted or (None, None)
        new_state = self._recurrence.step(linear(x, weight_ih, bias_ih), linear(state[0], weight_hh, bias_hh), state)
        return new_state if count > 1 else new_state[0]

    def _checked(self, x: Tensor, size: int, argument: str) -> Tensor:
        """Check that `x` is a floating-point tensor (N, size), and return it."""
        x = float_tensor(self, x)
        check_rank(self, x, (2,), f"(N, {argument})")
        check_width(self, x, 1, size, noun="features", argument=argument)
        return x


class LSTMCell(_RecurrentCell):
    """One step of an `LSTM`, which has the same `input_size`, `hidden_size`, `has_bias` and `dtype`.

    Inputs: x (N, input_size). hx: (h, c), both (N, hidden_size). All floating point.
    Returns: (h, c) after the step.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x, h = (mixtrain.Tensor(np.ones((2, size), np.float32)) for size in (3, 4))
        >>> [tuple(state.shape) for state in nn.LSTMCell(3, 4)(x, (h, h))]
        [(2, 4), (2, 4)]

    Source: Hochreiter and Schmidhuber, 1997; MindSpore, `mindspore.nn.LSTMCell`.
    """

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: DTypeLike = float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, "LSTM", dtype)


class GRUCell(_RecurrentCell):
    """One step of a `GRU`, which has the same `input_size`, `hidden_size`, `has_bias` and `dtype`.

    Inputs: x (N, input_size). hx (N, hidden_size). Both floating point.
    Returns: The state (N, hidden_size) after the step.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x, h = (mixtrain.Tensor(np.ones((2, size), np.float32)) for size in (3, 4))
        >>> tuple(nn.GRUCell(3, 4)(x, h).shape)
        (2, 4)

    Source: Cho et al., 2014; MindSpore, `mindspore.nn.GRUCell`.
    """

    def __init__(self, input_size: int, hidden_size: int, has_bias: bool = True, dtype: DTypeLike = float32) -> None:
        super().__init__(input_size, hidden_size, has_bias, "GRU", dtype)


class RNNCell(_RecurrentCell):
    """One step of an `RNN`, which has the same `input_size`, `hidden_size`, `has_bias` and `dtype`; `nonlinearity` is
    "tanh" or "relu".

    Inputs: x (N, input_size). hx (N, hidden_size). Both floating point.
    Returns: The state (N, hidden_size) after the step.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x, h = (mixtrain.Tensor(np.ones((2, size), np.float32)) for size in (3, 4))
        >>> tuple(nn.RNNCell(3, 4)(x, h).shape)
        (2, 4)

    Source: Elman, 1990; MindSpore, `mindspore.nn.RNNCell`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool = True, nonlinearity: Literal["tanh", "relu"] = "tanh",
        dtype: DTypeLike = float32,
    ) -> None:
        kind = checks.one_of("RNNCell", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(input_size, hidden_size, has_bias, kind, dtype)
        self.nonlinearity = nonlinearity
