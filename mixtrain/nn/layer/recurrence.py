"""The step functions of LSTM, GRU and plain recurrent cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import keras

from mixtrain import backend
from mixtrain.ops.lstm import State, lstm_step
from mixtrain.typing import Tensor

# Bound at import, so that autocast does not intercept it: the operands already have one dtype.
_matmul = keras.ops.matmul


def _gru_step(input_gates: Tensor, state_gates: Tensor, state: State) -> State:
    input_reset, input_update, input_new = keras.ops.split(input_gates, 3, axis=-1)
    state_reset, state_update, state_new = keras.ops.split(state_gates, 3, axis=-1)
    new = keras.ops.tanh(input_new + keras.ops.sigmoid(input_reset + state_reset) * state_new)
    return (new + keras.ops.sigmoid(input_update + state_update) * (state[0] - new),)


@dataclasses.dataclass(frozen=True)
class Recurrence:
    """One kind of recurrent cell.

    Attributes:
        gates: Number of gates: the weights have ``gates * hidden_size`` rows.
        states: Number of tensors in the state; the first is the output.
        step: Function of the projected input, the projected first state tensor and the state; returns the next state.
    """

    gates: int
    states: int
    step: Callable[[Tensor, Tensor, State], State]


RECURRENCES: Final = {
    "LSTM": Recurrence(4, 2, lstm_step),
    "GRU": Recurrence(3, 1, _gru_step),
    "tanh": Recurrence(1, 1, lambda input_gate, state_gate, state: (keras.ops.tanh(input_gate + state_gate),)),
    "relu": Recurrence(1, 1, lambda input_gate, state_gate, state: (keras.ops.relu(input_gate + state_gate),)),
}


def _matmul_transposed(x: Tensor, weight: Tensor) -> Tensor:
    return _matmul(x, keras.ops.transpose(weight))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Compute ``x @ weight.T + bias``, without the bias if it is None."""
    y = backend.product(_matmul_transposed, x, weight)
    return y if bias is None else y + bias
