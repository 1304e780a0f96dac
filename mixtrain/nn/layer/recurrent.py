"""`LSTM`, `GRU` and `RNN`: multi-layer, optionally bidirectional recurrent layers."""

from __future__ import annotations

import math
import warnings
from typing import Literal

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.common.tensor import Tensor as MindSporeTensor
from mixtrain.dtype import float32
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.inputs import check_rank, check_width, float_tensor, promote
from mixtrain.nn.layer.recurrence import RECURRENCES, Recurrence, State, linear
from mixtrain.typing import DTypeLike, Tensor, TensorLike, Tree


class _Recurrent(Cell):
    """Base class of the recurrent layers; `kind` is a key of `RECURRENCES`."""

    precision_family = "recurrent"

    def __init__(
        self, kind: str, input_size: int, hidden_size: int, num_layers: int, has_bias: bool, batch_first: bool,
        dropout: float, bidirectional: bool, dtype: DTypeLike,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self._recurrence: Recurrence = RECURRENCES[kind]
        self.input_size = checks.integer(where, "input_size", input_size, at_least=1)
        self.hidden_size = checks.integer(where, "hidden_size", hidden_size, at_least=1)
        self.num_layers = checks.integer(where, "num_layers", num_layers, at_least=1)
        self.has_bias = checks.boolean(where, "has_bias", has_bias)
        self.batch_first = checks.boolean(where, "batch_first", batch_first)
        self.dropout = checks.number(where, "dropout", dropout, at_least=0)
        self.bidirectional = checks.boolean(where, "bidirectional", bidirectional)
        self.dropout_op = Dropout(p=self.dropout)
        if self.dropout and self.num_layers == 1:
            warnings.warn(
                f"{where}: dropout={dropout} is used between layers, and there is one. Write dropout=0.0, or "
                "num_layers=2.",
                stacklevel=3,
            )
        self._create_parameters(dtype)

    def _create_parameters(self, dtype: DTypeLike) -> None:
        hidden, directions = self.hidden_size, 1 + self.bidirectional
        rows = self._recurrence.gates * hidden
        input_sizes = [self.input_size] + [hidden * directions] * (self.num_layers - 1)
        layers = [
            (f"l{layer}{'_reverse' * direction}", size)
            for layer, size in enumerate(input_sizes) for direction in range(directions)
        ]
        bound = 1 / math.sqrt(hidden)

        def parameter(name: str, shape: tuple[int, ...]) -> Parameter:
            # From NumPy's own generator, in MindSpore's order: with the same seed, these are MindSpore's values.
            return Parameter(MindSporeTensor(np.random.uniform(-bound, bound, shape), dtype), name=name)

        parameters = [
            [parameter(f"weight_ih_{suffix}", (rows, size)), parameter(f"weight_hh_{suffix}", (rows, hidden))]
            + [parameter(f"bias_{side}_{suffix}", (rows,)) for side in ("ih", "hh") if self.has_bias]
            for suffix, size in layers
        ]
        self.w_ih_list, self.w_hh_list, *biases = map(ParameterTuple, zip(*parameters, strict=True))
        self.b_ih_list, self.b_hh_list = biases or (ParameterTuple(()), ParameterTuple(()))

    def construct(self, x: Tensor, hx: Tree | None = None, seq_length: TensorLike | None = None) -> tuple[Tensor, Tree]:
        """Run over the sequences; see the class."""
        x = float_tensor(self, x)
        axes = "(N, L, input_size)" if self.batch_first else "(L, N, input_size)"
        check_rank(self, x, (3,), axes)
        check_width(self, x, 2, self.input_size, noun="features", argument="input_size")
        if self.batch_first:
            x = keras.ops.transpose(x, (1, 0, 2))
        x, *states = promote(x, *self._states(x, hx))
        lengths = None if seq_length is None else self._lengths(x, seq_length)
        final_states: list[State] = []
        for layer in range(self.num_layers):
            # Parameters and states are ordered by layer, then by direction.
            indices = range(layer * (1 + self.bidirectional), (layer + 1) * (1 + self.bidirectional))
            outputs = []
            for index in indices:
                y, final = self._run_layer(x, index, tuple(state[index] for state in states), lengths)
                outputs.append(y)
                final_states.append(final)
            x = outputs[0] if len(outputs) == 1 else keras.ops.concatenate(outputs, axis=-1)
            if layer < self.num_layers - 1:
                x = self.dropout_op(x)
        if self.batch_first:
            x = keras.ops.transpose(x, (1, 0, 2))
        final = tuple(keras.ops.stack(parts) for parts in zip(*final_states, strict=True))
        return x, (final if self._recurrence.states > 1 else final[0])

    def _states(self, x: Tensor, hx: Tree | None) -> tuple[Tensor, ...]:
        """Return the initial state: `hx` after checking it, or zeros (layers * directions, N, hidden_size)."""
        count, batch = self.num_layers * (1 + self.bidirectional), keras.ops.shape(x)[1]
        if hx is None:
            return (keras.ops.zeros((count, batch, self.hidden_size), x.dtype),) * self._recurrence.states
        states = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        if len(states) != self._recurrence.states:
            raise ValueError(
                f"{name_of(self)}: expected hx of {self._recurrence.states} tensors; got {len(states)}. Write hx="
                f"{'(h, c)' if self._recurrence.states == 2 else 'h'}."
            )
        expected = (count, x.shape[1], self.hidden_size)
        for state in states:
            got = tuple(float_tensor(self, state).shape)
            if len(got) != 3 or any(a != b for a, b in zip(got, expected, strict=True) if None not in (a, b)):
                raise ValueError(
                    f"{name_of(self)}: expected hx of shape {expected}, (layers * directions, N, hidden_size); got "
                    f"{got}. Write a state of shape {expected}."
                )
        return tuple(float_tensor(self, state) for state in states)

    def _lengths(self, x: Tensor, seq_length: TensorLike | None) -> Tensor | None:
        """Return `seq_length` as an int32 tensor (N,)."""
        lengths = backend.to_tensor(seq_length)
        if tuple(lengths.shape) != (x.shape[1],) and x.shape[1] is not None:
            raise ValueError(
                f"{name_of(self)}: expected seq_length of shape ({x.shape[1]},), one length for each sequence; got "
                f"{tuple(lengths.shape)}. Write seq_length of that shape."
            )
        return keras.ops.cast(lengths, "int32")

    def _run_layer(self, x: Tensor, index: int, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        """Run one layer in one direction; return its outputs (L, N, hidden_size) and its final state."""
        backward = self.bidirectional and index % 2 == 1
        biases = (self.b_ih_list[index].value, self.b_hh_list[index].value) if self.has_bias else ()
        x, weight_ih, weight_hh, *promoted = promote(
            x, self.w_ih_list[index].value, self.w_hh_list[index].value, *biases
        )
        bias_ih, bias_hh = promoted or (None, None)
        state = tuple(keras.ops.cast(part, x.dtype) for part in state)
        if backward:
            x = _reversed(x, lengths)
        # The projection of the input does not depend on the state: one product for all steps.
        input_gates = linear(x, weight_ih, bias_ih)
        steps = keras.ops.arange(keras.ops.shape(x)[0], dtype="int32")

        def step(state: State, element: tuple[Tensor, Tensor | None]) -> State:
            gates, index = element
            new_state = self._recurrence.step(gates, linear(state[0], weight_hh, bias_hh), state)
            if lengths is None:
                return new_state
            # A sequence that has ended keeps its state.
            active = (index < lengths)[:, None]
            return tuple(keras.ops.where(active, new, old) for new, old in zip(new_state, state, strict=True))

        states = backend.scan(step, state, (input_gates, steps))
        y = states[0]
        if lengths is not None:
            y = keras.ops.where((steps[:, None] < lengths[None])[..., None], y, keras.ops.zeros_like(y))
        return _reversed(y, lengths) if backward else y, tuple(part[-1] for part in states)


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverse sequences (L, N, size) in time; padding beyond a sequence's length stays in place."""
    if lengths is None:
        return keras.ops.flip(x, axis=0)
    steps = keras.ops.arange(keras.ops.shape(x)[0], dtype="int32")[:, None]
    indices = keras.ops.where(steps < lengths[None], lengths[None] - 1 - steps, steps)
    return keras.ops.take_along_axis(x, indices[..., None], axis=0)


class LSTM(_Recurrent):
    """Long short-term memory over sequences.

    Args:
        input_size, hidden_size: Size of the last axis of the input, and of the hidden state.
        num_layers: Number of stacked layers.
        has_bias: Whether biases are added.
        batch_first: Whether the input is (N, L, input_size) rather than (L, N, input_size).
        dropout: Probability that an element between two layers is dropped in training.
        bidirectional: Whether each layer also runs backward in time; the outputs of both directions are concatenated.
        dtype: Dtype of the parameters.

    Inputs:
        x (L, N, input_size), floating point. hx: None for zeros, or (h, c), both (num_layers * directions, N,
        hidden_size). seq_length: None, or the lengths (N,) of the sequences; outputs beyond a length are zero.

    Returns: (output, (h, c)): output (L, N, directions * hidden_size), and the states after the final step.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> output, (h, c) = nn.LSTM(3, 4)(mixtrain.Tensor(np.ones((5, 2, 3), np.float32)))
        >>> tuple(output.shape), tuple(h.shape)
        ((5, 2, 4), (1, 2, 4))

    Source: Hochreiter and Schmidhuber, 1997; MindSpore, `mindspore.nn.LSTM`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype
        )


class GRU(_Recurrent):
    """Gated recurrent units over sequences, with the arguments and inputs of `LSTM`.

    `input_size`, `hidden_size`, `num_layers`, `has_bias`, `batch_first`, `dropout`, `bidirectional` and `dtype` are
    those of `LSTM`; the state is one tensor h. Example: ``output, h = nn.GRU(3, 4)(x)``.

    Source: Cho et al., 2014; MindSpore, `mindspore.nn.GRU`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype
        )


class RNN(_Recurrent):
    """Elman recurrent units over sequences, with the arguments and inputs of `LSTM` and a `nonlinearity`.

    `input_size`, `hidden_size`, `num_layers`, `has_bias`, `batch_first`, `dropout`, `bidirectional` and `dtype` are
    those of `LSTM`; `nonlinearity` is "tanh" or "relu"; the state is one tensor h.
    Example: ``output, h = nn.RNN(3, 4)(x)``.

    Source: Elman, 1990; MindSpore, `mindspore.nn.RNN`.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, has_bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: DTypeLike = float32, *,
        nonlinearity: Literal["tanh", "relu"] = "tanh",
    ) -> None:
        kind = checks.one_of("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"))
        super().__init__(
            kind, input_size, hidden_size, num_layers, has_bias, batch_first, dropout, bidirectional, dtype
        )
        self.nonlinearity = nonlinearity
