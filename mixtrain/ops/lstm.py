"""Long short-term memory: the rule of one step, and layers whose weights come with the call as one vector."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.primitive import Primitive

State = tuple[Any, ...]


def lstm_step(by_input: Any, by_state: Any, state: State) -> State:
    """Return the next output and cell from what the weights make of the input and of the last output."""
    keep_in, forget, new, keep_out = keras.ops.split(by_input + by_state, 4, axis=-1)
    sigmoid, tanh = keras.ops.sigmoid, keras.ops.tanh
    cell = sigmoid(forget) * state[1] + sigmoid(keep_in) * tanh(new)
    return sigmoid(keep_out) * tanh(cell), cell


def _along(x: Any, state: State, by_input: Any, by_state: Any, bias: Any) -> tuple[Any, State]:
    """Run over the first axis of (T, N, C); return all outputs and the last state."""
    seen, outputs = backend.product(keras.ops.matmul, x, by_input), []
    seen = seen if bias is None else seen + bias
    for time in range(x.shape[0]):
        state = lstm_step(seen[time], backend.product(keras.ops.matmul, state[0], by_state), state)
        outputs.append(state[0])
    return keras.ops.stack(outputs), state


class LSTM(Primitive):
    """Layers of long short-term memory.

    Args:
        input_size: Channels of the input.
        hidden_size: Channels of each direction's output.
        num_layers: How many layers there are.
        has_bias: Whether there are biases.
        bidirectional: Whether each layer runs backwards too.
        dropout: 0.0, the only one.
        proj_size: 0, the only one.

    A call takes the input (T, N, C), the first output and cell, (layers * directions, N, hidden_size), and all weights
    as one vector: those for inputs, those for outputs, and the biases, each for all layers and directions, in rows of
    the gates input, forget, new and output. Biases that MindSpore keeps besides, for outputs, are not read.

    Returns:
        Outputs (T, N, directions * hidden_size), the last output and cell, and twice a zero, where MindSpore's kernels
        keep notes.

    Raises:
        ValueError: The shapes do not fit each other.

    Source: Hochreiter and Schmidhuber, 1997; MindSpore, `mindspore.ops.LSTM`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, bidirectional: bool, dropout: float,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        self.input_size = checks.integer(self.name, "input_size", input_size, at_least=1)
        self.hidden_size = checks.integer(self.name, "hidden_size", hidden_size, at_least=1)
        self.num_layers = checks.integer(self.name, "num_layers", num_layers, at_least=1)
        self.has_bias = checks.boolean(self.name, "has_bias", has_bias)
        self.bidirectional = checks.boolean(self.name, "bidirectional", bidirectional)
        for argument, value in (("dropout", dropout), ("proj_size", proj_size)):
            if value:
                raise checks.fail_value(self.name, f"{argument} must be 0 here", value, "nn.LSTM, which has dropout")

    def __call__(self, input: Any, h: Any, c: Any, w: Any) -> tuple[Any, Any, Any, Any, Any]:
        x, first, cell, flat = (as_floats(self.name, value) for value in (input, h, c, w))
        directions, rows = (2 if self.bidirectional else 1), 4 * self.hidden_size
        runs = self.num_layers * directions
        if rank_of(x) != 3 or x.shape[2] != self.input_size or tuple(first.shape) != (
            runs, x.shape[1], self.hidden_size
        ) or first.shape != cell.shape:
            raise checks.fail_value(
                self.name, f"input must be (T, N, {self.input_size}), h and c ({runs}, N, {self.hidden_size})",
                [tuple(value.shape) for value in (x, first, cell)], "tensors of these shapes",
            )
        widths = [
            self.input_size if layer == 0 else directions * self.hidden_size
            for layer in range(self.num_layers) for _ in range(directions)
        ]
        parts = self._parts(keras.ops.reshape(flat, (-1,)), widths, rows)
        last: list[State] = []
        for layer in range(self.num_layers):
            found = []
            for direction in range(directions):
                run = layer * directions + direction
                sequence = keras.ops.flip(x, 0) if direction else x
                outputs, state = _along(sequence, (first[run], cell[run]), *parts[run])
                found.append(keras.ops.flip(outputs, 0) if direction else outputs)
                last.append(state)
            x = keras.ops.concatenate(found, axis=-1)
        nothing = keras.ops.zeros((1, 1), x.dtype)
        ends = [keras.ops.stack([state[number] for state in last]) for number in (0, 1)]
        return x, ends[0], ends[1], nothing, nothing

    def _parts(self, flat: Any, widths: list[int], rows: int) -> list[tuple[Any, Any, Any]]:
        """Return each run's weights (in, 4 * hidden), (hidden, 4 * hidden) and bias from the vector of all."""
        hidden, runs = self.hidden_size, len(widths)
        needed = rows * (sum(widths) + runs * hidden + runs * (2 if self.has_bias else 0))
        if flat.shape[0] != needed:
            raise checks.fail_value(self.name, f"w must have {needed} numbers", flat.shape[0], f"w of size {needed}")
        place, found = 0, []
        for width in [*widths, *[hidden] * runs, *([1] * runs if self.has_bias else [])]:
            found.append(keras.ops.reshape(flat[place : place + rows * width], (rows, width)))
            place += rows * width
        biases = [keras.ops.reshape(bias, (rows,)) for bias in found[2 * runs :]] or [None] * runs
        turned = [keras.ops.transpose(weight) for weight in found[: 2 * runs]]
        return list(zip(turned[:runs], turned[runs:], biases, strict=True))
