"""Rarely used cells have the reference's outputs; copies of cells are independent."""

from __future__ import annotations

import copy
import pathlib

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import nn
from tests.nn import rare_cases

REFERENCE = dict(np.load(pathlib.Path(__file__).parents[1] / "data" / "rare_nn_reference.npz"))


@pytest.mark.slow
def test_outputs_are_the_reference_s() -> None:
    tensors = {name: ms.Tensor(array) for name, array in rare_cases.arrays().items()}
    compared, failures = 0, []
    for expression, inputs in rare_cases.CASES:
        expected = [REFERENCE[key] for key in REFERENCE if key.rpartition("#")[0] == f"{expression}{inputs}"]
        if not expected:
            continue
        result = rare_cases.settle(eval(expression), ms.Tensor)(*(tensors[name] for name in inputs))
        outputs = [output.asnumpy() for output in (result if isinstance(result, tuple) else (result,))]
        compared += 1
        if len(outputs) != len(expected) or not all(
            actual.shape == desired.shape and np.allclose(actual, desired, rtol=1e-5, atol=1e-5)
            for actual, desired in zip(outputs, expected, strict=True)
        ):
            failures.append(expression)
    assert failures == []
    assert compared >= 25


def test_a_copied_cell_has_parameters_and_a_seed_of_its_own() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.5)
    copied = copy.deepcopy(layer)
    assert np.array_equal(copied.dense1.weight.asnumpy(), layer.dense1.weight.asnumpy())
    copied.dense1.weight.set_data(ms.Tensor(np.zeros((8, 4), np.float32)))
    assert layer.dense1.weight.asnumpy().any()
    x = ms.Tensor(np.ones((64, 4), np.float32))
    masks = [cell.dropout.set_train()(x).asnumpy() for cell in (layer, copied)]
    assert not np.array_equal(*masks)


def test_cells_by_name() -> None:
    cells = nn.CellDict({"one": nn.Dense(2, 3), "two": nn.ReLU()})
    assert [name for name in cells] == list(cells.keys()) == ["one", "two"]
    assert len(cells["one"].trainable_params()) == 2
    assert [parameter.name for parameter in cells.trainable_params()] == ["one.weight", "one.bias"]
    assert cells.pop("two").cls_name == "ReLU" and "two" not in cells
    cells.clear()
    assert len(cells) == 0


def test_windows_become_channels_window_by_window() -> None:
    x = ms.Tensor(np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4))
    patches = nn.Unfold([1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1])(x).asnumpy()
    assert patches.shape == (1, 8, 2, 2)
    assert patches[0, :, 0, 0].tolist() == [0, 16, 1, 17, 4, 20, 5, 21]


def test_the_operation_of_a_convolution_takes_another_weight() -> None:
    layer = nn.Conv2d(2, 3, 3, 2, "pad", 1)
    x = ms.Tensor(np.ones((1, 2, 5, 5), np.float32))
    assert np.allclose(layer.conv2d(x, layer.weight * 2).asnumpy(), 2 * layer(x).asnumpy(), atol=1e-6)
