"""Recurrent layers: exact formulas, names and order of parameters, training mode, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float16, float32

RNG = np.random.default_rng(4)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: np.ndarray, state: tuple[np.ndarray, ...], p: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """One step in float64."""
    by_x, by_h = x @ p[0].T + p[2], state[0] @ p[1].T + p[3]
    if kind == "RNN":
        return (np.tanh(by_x + by_h),)
    if kind == "LSTM":
        i, f, g, o = np.split(by_x + by_h, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (xr, xz, xn), (hr, hz, hn) = np.split(by_x, 3, -1), np.split(by_h, 3, -1)
    new, z = np.tanh(xn + sigmoid(xr + hr) * hn), sigmoid(xz + hz)
    return ((1 - z) * new + z * state[0],)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_outputs_are_those_of_the_formula_in_float64(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4)
    parameters = [p.asnumpy().astype(np.float64) for p in layer.get_parameters()]
    x = RNG.standard_normal((6, 2, 3))
    state: tuple[np.ndarray, ...] = (np.zeros((2, 4)),) * (2 if kind == "LSTM" else 1)
    expected = []
    for inputs in x:
        state = step(kind, inputs, state, parameters)
        expected.append(state[0])
    output, last = layer(Tensor(x.astype(np.float32)))
    assert np.abs(backend.to_numpy(output) - np.stack(expected)).max() < 1e-6
    for actual, desired in zip(last if kind == "LSTM" else (last,), state, strict=True):
        assert np.abs(backend.to_numpy(actual)[0] - desired).max() < 1e-6


def test_a_layer_is_its_cell_step_by_step() -> None:
    for kind in ("LSTM", "GRU", "RNN"):
        layer, cell = getattr(nn, kind)(3, 4), getattr(nn, f"{kind}Cell")(3, 4)
        for target, source in zip(cell.get_parameters(), layer.get_parameters(), strict=True):
            target.set_data(source)
        x = RNG.standard_normal((3, 2, 3)).astype(np.float32)
        zero = Tensor(np.zeros((2, 4), np.float32))
        state: Any = (zero, zero) if kind == "LSTM" else zero
        for inputs in x:
            state = cell(Tensor(inputs), state)
        _, last = layer(Tensor(x))
        for actual, desired in zip(*((state, last) if kind == "LSTM" else ((state,), (last,))), strict=True):
            assert np.abs(backend.to_numpy(actual) - backend.to_numpy(desired)[0]).max() < 1e-6


def test_parameters_have_the_references_names_order_and_bounds() -> None:
    layer = nn.LSTM(2, 3, 2, bidirectional=True)
    suffixes = ["l0", "l0_reverse", "l1", "l1_reverse"]
    kinds = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    assert [p.name for p in layer.get_parameters()] == [f"{kind}_{suffix}" for kind in kinds for suffix in suffixes]
    assert [tuple(p.shape) for p in layer.w_ih_list] == [(12, 2), (12, 2), (12, 6), (12, 6)]
    assert all(np.abs(p.asnumpy()).max() <= 1 / np.sqrt(3) for p in layer.get_parameters())
    assert [p.name for p in nn.GRUCell(2, 3).get_parameters()] == kinds


def test_names_start_with_the_cells_attribute() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(2, 3, has_bias=False)

    assert [p.name for p in Net().trainable_params()] == ["lstm.weight_ih_l0", "lstm.weight_hh_l0"]


def test_dropout_between_layers_works_in_training_only() -> None:
    layer = nn.GRU(3, 4, 2, dropout=0.5)
    x = Tensor(RNG.standard_normal((4, 2, 3)).astype(np.float32))
    still = backend.to_numpy(layer(x)[0])
    assert (backend.to_numpy(layer(x)[0]) == still).all()
    layer.set_train()
    assert np.abs(backend.to_numpy(layer(x)[0]) - still).max() > 1e-3


def test_outputs_beyond_a_length_are_zero_and_the_state_is_that_at_the_length() -> None:
    layer = nn.LSTM(3, 4)
    x = RNG.standard_normal((5, 2, 3)).astype(np.float32)
    output, (h, _) = layer(Tensor(x), None, Tensor(np.array([2, 5], np.int32)))
    short, (end, _) = layer(Tensor(x[:2]))
    assert (backend.to_numpy(output)[2:, 0] == 0).all()
    assert np.abs(backend.to_numpy(h)[0, 0] - backend.to_numpy(end)[0, 0]).max() < 1e-6
    assert np.abs(backend.to_numpy(output)[:2, 0] - backend.to_numpy(short)[:, 0]).max() < 1e-6


def test_half_input_meets_float32_weights_in_float32_and_to_float_computes_in_half() -> None:
    x = Tensor(np.ones((3, 2, 3)), float16)
    assert nn.LSTM(3, 4)(x)[0].dtype == float32
    assert nn.LSTM(3, 4).to_float(float16)(Tensor(np.ones((3, 2, 3)), float32))[0].dtype == float16


def test_what_does_not_fit_is_one_sentence() -> None:
    layer, x = nn.LSTM(3, 4), Tensor(np.ones((5, 2, 3), np.float32))
    h = Tensor(np.ones((1, 2, 4), np.float32))
    with pytest.raises(ValueError, match=r"LSTM: expected 3 axes \(L, N, input_size\); got input shape \(2, 3\)"):
        layer(x[0])
    with pytest.raises(ValueError, match="LSTM: expected 3 features on axis 2; got 2 .* Write LSTM.input_size=2"):
        layer(x[:, :, :2])
    with pytest.raises(ValueError, match=r"LSTM: expected hx of 2 tensors; got 1. Write hx=\(h, c\)"):
        layer(x, h)
    with pytest.raises(ValueError, match=r"GRU: expected hx of shape \(1, 2, 4\), .*; got \(1, 5, 4\)"):
        nn.GRU(3, 4)(x, Tensor(np.ones((1, 5, 4), np.float32)))
    with pytest.raises(ValueError, match=r"LSTM: expected seq_length of shape \(2,\)"):
        layer(x, None, Tensor(np.array([1, 2, 3], np.int32)))
    with pytest.raises(ValueError, match="LSTMCell: expected a state of 2 tensors; got 1"):
        nn.LSTMCell(3, 4)(x[0], h[0])
    with pytest.raises(ValueError, match="RNN: nonlinearity must be one of tanh, relu; got 'gelu'"):
        nn.RNN(3, 4, nonlinearity="gelu")
    with pytest.raises(ValueError, match="GRU: hidden_size must be at least 1"):
        nn.GRU(3, 0)
    with pytest.raises(TypeError, match="LSTM: batch_first must be True or False"):
        nn.LSTM(3, 4, batch_first=1)
    with pytest.warns(UserWarning, match="dropout=0.5 is used between layers, and there is one"):
        nn.LSTM(3, 4, dropout=0.5)
