"""The compiled step adds up float32 numbers between devices, each gradient once, and nothing else."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager
from mixtrain.distribution import data_parallel
from tests.backends import ON_TENSORFLOW, on_jax_only_some
from tests.distribution.compiled import OTHERS, WEIGHTS, compiled, graph_of, reduced, train_cell
from tests.distribution.networks import Run, batches, train

# Each Model is compiled by XLA there.
slow_on_jax = pytest.mark.slow if not ON_TENSORFLOW else pytest.mark.filterwarnings("error")
# What float16 and bfloat16 round a number to, relative to it.
HALF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


@pytest.mark.skipif(ON_TENSORFLOW, reason="about XLA's text")
def test_the_program_of_xla_reduces_in_float32_alone() -> None:
    assert compiled(train_cell(2)) == ["f32"] * (WEIGHTS + OTHERS)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_the_graph_computes_on_both_devices() -> None:
    products = {item.device for item in graph_of(train_cell(2)).get_operations() if item.type == "MatMul"}
    assert products == {"/device:CPU:0", "/device:CPU:1"}


@pytest.mark.slow
@pytest.mark.parametrize("reduce_dtype", on_jax_only_some(["float16", "float32", "bfloat16"]))
def test_gradients_are_added_up_in_the_format_that_is_asked_for(reduce_dtype: str) -> None:
    expected = [reduce_dtype] * WEIGHTS + ["float32"] * OTHERS
    assert reduced(train_cell(2, reduce_dtype)) == sorted(expected)


def stepped(devices: int | None, reduce_dtype: str = "float32", *, rate: float = 1.0, scale: float = 2**10) -> Run:
    """Train for one step of plain descent, whose weights move by the gradient."""
    return train(
        devices, batches(8), optimizer=keras.optimizers.SGD(rate), reduce_dtype=reduce_dtype,
        loss_scale_manager=DynamicLossScaleManager(scale, 2, 100),
    )


@pytest.mark.slow
@pytest.mark.parametrize("reduce_dtype", HALF)
def test_half_sums_are_rounded_once_for_each_device_and_sum(reduce_dtype: str) -> None:
    still, one, half = stepped(None, rate=0.0), stepped(None), stepped(2, reduce_dtype)
    moved = max(float(np.abs(a - b).max()) for a, b in zip(one.weights, still.weights, strict=True))
    error = max(float(np.abs(a - b).max()) for a, b in zip(one.weights, half.weights, strict=True))
    assert moved * HALF[reduce_dtype] / 100 < error < 2 * moved * HALF[reduce_dtype]
    assert abs(one.records.column("loss")[0] - half.records.column("loss")[0]) < 1e-6


@slow_on_jax
def test_a_half_sum_that_overflows_is_skipped_and_the_scale_shrinks() -> None:
    run = stepped(2, "float16", scale=2**20)
    assert run.records.column("overflow").tolist() == [True]
    assert all(np.isfinite(value).all() for value in run.weights)


@pytest.mark.parametrize(("given", "error"), [("int32", ValueError), ("float64", ValueError), (3, TypeError)])
def test_other_formats_are_refused(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="reduce_dtype|dtype"), data_parallel(2, reduce_dtype=given):
        pass
