"""The rules of recurrent cells: how many gates each has, and one step of its state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.ops.lstm import State, lstm_step

# As it is outside any autocast: the formats are settled here.
_matmul = keras.ops.matmul


def _gru(by_input: Any, by_state: Any, state: State) -> State:
    input_reset, input_update, input_new = keras.ops.split(by_input, 3, axis=-1)
    state_reset, state_update, state_new = keras.ops.split(by_state, 3, axis=-1)
    new = keras.ops.tanh(input_new + keras.ops.sigmoid(input_reset + state_reset) * state_new)
    return (new + keras.ops.sigmoid(input_update + state_update) * (state[0] - new),)


@dataclasses.dataclass(frozen=True)
class Recurrence:
    """One kind of recurrent cell.

    Attributes:
        gates: How many times `hidden_size` rows its weights have.
        states: How many tensors its state has; the first is its output.
        step: Takes what the weights make of the input and of the first state tensor, and the state; returns the next.
    """

    gates: int
    states: int
    step: Callable[[Any, Any, State], State]


RECURRENCES: Final = {
    "LSTM": Recurrence(4, 2, lstm_step),
    "GRU": Recurrence(3, 1, _gru),
    "tanh": Recurrence(1, 1, lambda by_input, by_state, state: (keras.ops.tanh(by_input + by_state),)),
    "relu": Recurrence(1, 1, lambda by_input, by_state, state: (keras.ops.relu(by_input + by_state),)),
}


def _times_transposed(x: Any, weight: Any) -> Any:
    return _matmul(x, keras.ops.transpose(weight))


def linear(x: Any, weight: Any, bias: Any) -> Any:
    """Return ``x @ weight.T + bias``, or without the bias where it is None."""
    y = backend.product(_times_transposed, x, weight)
    return y if bias is None else y + bias
