"""The update cells: the rule on a parameter of the user's and on their own state."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, data_backend, nn
from tests.backends import quick_every
from tests.train.planted import GOLDEN


@quick_every(5)
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
@pytest.mark.parametrize(("first", "factor", "window", "flags", "expected"), GOLDEN)
def test_the_update_cell_follows_every_golden_sequence(
    first: float, factor: float, window: int, flags: str, expected: list[float], mode: int
) -> None:
    mixtrain.set_context(mode=mode)
    cell = nn.DynamicLossScaleUpdateCell(first, factor, window)
    scale = mixtrain.Parameter(np.float32(first), name="scale", requires_grad=False)
    update = backend.compile_function(lambda overflow: cell(scale, overflow), choice=backend.JitChoice(False, "test"))
    seen = []
    for flag in flags:
        overflow = mixtrain.Tensor(flag == "1")
        assert bool(update(overflow)) == (flag == "1")
        seen.append(float(scale.asnumpy()))
    assert seen == expected
    assert float(backend.to_numpy(cell.state.loss_scale)) == expected[-1]


@pytest.mark.slow
def test_5000_good_and_5000_bad_steps_stay_finite() -> None:
    cell = nn.DynamicLossScaleUpdateCell(2**24, 2, 1)
    scale = mixtrain.Parameter(2.0**24, requires_grad=False)

    def step(overflow: Any) -> tuple[Any]:
        cell(scale, overflow)
        return (keras.ops.convert_to_tensor(scale),)

    loop = backend.CompiledSteps(step, choice=backend.JitChoice(False, "test")).run_stream
    flags = data_backend.pipeline_from_arrays([np.repeat([False, True], 5000)])
    scales = backend.to_numpy(loop(flags.graph_iterator(), 10_000)[0])
    assert np.isfinite(scales).all() and scales.min() >= 1
    assert (scales[4999], scales[9999]) == (2.0**127, 1.0)


def test_a_scale_of_shape_one_is_moved_too() -> None:
    cell = nn.DynamicLossScaleUpdateCell(16, 2, 3)
    scale = mixtrain.Parameter(np.array([16.0], np.float32), requires_grad=False)
    cell(scale, mixtrain.Tensor(True))
    assert scale.asnumpy().tolist() == [8.0]


def test_a_number_counts_as_overflow_where_it_is_not_zero() -> None:
    cell = nn.DynamicLossScaleUpdateCell(16, 2, 3)
    cell(cell.state.loss_scale, mixtrain.Tensor(1.0))
    assert float(cell.state.loss_scale) == 8


def test_the_first_scale_stays_what_a_run_starts_with() -> None:
    cell = nn.DynamicLossScaleUpdateCell(16, 2, 3)
    cell(cell.state.loss_scale, mixtrain.Tensor(True))
    assert cell.get_loss_scale() == 16
    assert (cell.loss_scale_value, cell.scale_factor, cell.scale_window) == (16, 2, 3)


def test_a_fixed_cell_leaves_the_scale() -> None:
    cell = nn.FixedLossScaleUpdateCell(128.0)
    for overflow in (True, True, False):
        cell(cell.state.loss_scale, mixtrain.Tensor(overflow))
    assert float(cell.state.loss_scale) == 128
    assert cell.get_loss_scale() == 128


def test_a_cell_holds_no_trainable_parameter() -> None:
    assert nn.DynamicLossScaleUpdateCell(16, 2, 3).trainable_params() == []


@pytest.mark.parametrize(
    ("make", "error", "expected"),
    [
        (lambda: nn.DynamicLossScaleUpdateCell(0.5, 2, 3), ValueError, "loss_scale_value must be at least 1; got 0.5"),
        (lambda: nn.DynamicLossScaleUpdateCell("a", 2, 3), TypeError, "loss_scale_value must be a number; got str"),
        (lambda: nn.DynamicLossScaleUpdateCell(1e39, 2, 3), ValueError, "loss_scale_value must be at most"),
        (lambda: nn.DynamicLossScaleUpdateCell(16, 1, 3), ValueError, "scale_factor must be greater than 1; got 1"),
        (lambda: nn.DynamicLossScaleUpdateCell(16, None, 3), TypeError, "scale_factor must be a number"),
        (lambda: nn.DynamicLossScaleUpdateCell(16, 2, 0), ValueError, "scale_window must be at least 1; got 0"),
        (lambda: nn.DynamicLossScaleUpdateCell(16, 2, 3.0), TypeError, "scale_window must be an int; got float 3.0"),
        (lambda: nn.FixedLossScaleUpdateCell(0), ValueError, "loss_scale_value must be at least 1; got 0"),
        (lambda: nn.FixedLossScaleUpdateCell(math.nan), ValueError, "loss_scale_value must be finite; got nan"),
        (lambda: nn.FixedLossScaleUpdateCell("a"), TypeError, "loss_scale_value must be a number; got str"),
    ],
)
def test_a_bad_argument_is_refused_with_what_to_write(make: Any, error: type[Exception], expected: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert "UpdateCell: " + expected in str(caught.value)
    assert f"Write {expected.split()[0]}=" in str(caught.value)
