"""Long short-term memory: one step, and a primitive that takes the weights of all layers as one vector."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tensor, TensorLike

State = tuple[Tensor, ...]


def lstm_step(by_input: Tensor, by_state: Tensor, state: State) -> State:
    """Return the next (output, cell) for the products of the weights with the input and with the last output."""
    input_gate, forget_gate, candidate, output_gate = keras.ops.split(by_input + by_state, 4, axis=-1)
    sigmoid, tanh = keras.ops.sigmoid, keras.ops.tanh
    cell = sigmoid(forget_gate) * state[1] + sigmoid(input_gate) * tanh(candidate)
    return sigmoid(output_gate) * tanh(cell), cell


def _run(
    x: Tensor, state: State, kernel: Tensor, recurrent_kernel: Tensor, bias: Tensor | None
) -> tuple[Tensor, State]:
    """Run over the first axis of (T, N, C); return all outputs and the last state."""
    # The inputs of all steps are multiplied at once.
    products, outputs = backend.product(keras.ops.matmul, x, kernel), []
    products = products if bias is None else products + bias
    for time in range(x.shape[0]):
        state = lstm_step(products[time], backend.product(keras.ops.matmul, state[0], recurrent_kernel), state)
        outputs.append(state[0])
    return keras.ops.stack(outputs), state


class LSTM(Primitive):
    """Layers of long short-term memory (Hochreiter and Schmidhuber, 1997).

    Args:
        input_size: Channels of the input.
        hidden_size: Channels of the output of each direction.
        num_layers: Number of layers.
        has_bias: Whether there are biases.
        bidirectional: Whether each layer also runs backwards.
        dropout: Only 0.0.
        proj_size: Only 0.

    A call takes the input (T, N, C), the initial output and cell, (layers * directions, N, hidden_size), and all
    weights as one vector: the kernels, the recurrent kernels and the biases, each for all layers and directions, with
    rows in the order of the gates input, forget, candidate and output. The recurrent biases of MindSpore are not read.
    It returns outputs (T, N, directions * hidden_size), the last output and cell, and two zeros in place of the
    reserved outputs of MindSpore's kernels.
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

    def __call__(
        self, input: TensorLike, h: TensorLike, c: TensorLike, w: TensorLike
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        x, hidden, cell, flat = (as_floats(self.name, value) for value in (input, h, c, w))
        directions, rows = (2 if self.bidirectional else 1), 4 * self.hidden_size
        runs = self.num_layers * directions
        if rank_of(x) != 3 or x.shape[2] != self.input_size or tuple(hidden.shape) != (
            runs, x.shape[1], self.hidden_size
        ) or hidden.shape != cell.shape:
            raise checks.fail_value(
                self.name, f"input must be (T, N, {self.input_size}), h and c ({runs}, N, {self.hidden_size})",
                [tuple(value.shape) for value in (x, hidden, cell)], "tensors of these shapes",
            )
        widths = [
            self.input_size if layer == 0 else directions * self.hidden_size
            for layer in range(self.num_layers) for _ in range(directions)
        ]
        weights = self._split_weights(keras.ops.reshape(flat, (-1,)), widths, rows)
        states: list[State] = []
        for layer in range(self.num_layers):
            layer_outputs = []
            for direction in range(directions):
                run = layer * directions + direction
                sequence = keras.ops.flip(x, 0) if direction else x
                outputs, state = _run(sequence, (hidden[run], cell[run]), *weights[run])
                layer_outputs.append(keras.ops.flip(outputs, 0) if direction else outputs)
                states.append(state)
            x = keras.ops.concatenate(layer_outputs, axis=-1)
        reserved = keras.ops.zeros((1, 1), x.dtype)
        last_output, last_cell = (keras.ops.stack(values) for values in zip(*states, strict=True))
        return x, last_output, last_cell, reserved, reserved

    def _split_weights(self, flat: Tensor, widths: list[int], rows: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return the kernel (in, 4 * hidden), recurrent kernel (hidden, 4 * hidden) and bias of each run."""
        hidden, runs = self.hidden_size, len(widths)
        size = rows * (sum(widths) + runs * hidden + runs * (2 if self.has_bias else 0))
        if flat.shape[0] != size:
            raise checks.fail_value(self.name, f"w must have {size} numbers", flat.shape[0], f"w of size {size}")
        start, parts = 0, []
        for width in [*widths, *[hidden] * runs, *([1] * runs if self.has_bias else [])]:
            parts.append(keras.ops.reshape(flat[start : start + rows * width], (rows, width)))
            start += rows * width
        biases = [keras.ops.reshape(bias, (rows,)) for bias in parts[2 * runs :]] or [None] * runs
        kernels = [keras.ops.transpose(weight) for weight in parts[: 2 * runs]]
        return list(zip(kernels[:runs], kernels[runs:], biases, strict=True))
