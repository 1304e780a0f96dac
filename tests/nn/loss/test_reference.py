"""Every loss and its gradient are the reference's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32
from mixtrain.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    LossBase,
    MSELoss,
    SoftmaxCrossEntropyWithLogits,
)
from tests.backends import quick_every
from tests.nn.reference import case, cases

Make = Callable[[str, dict[str, Any]], LossBase]

CASES: dict[str, Make] = {
    "sce_sparse": lambda r, k: SoftmaxCrossEntropyWithLogits(True, r),
    "sce_onehot": lambda r, k: SoftmaxCrossEntropyWithLogits(reduction=r),
    "sce_soft": lambda r, k: SoftmaxCrossEntropyWithLogits(reduction=r),
    "ce_sparse": lambda r, k: CrossEntropyLoss(reduction=r),
    "ce_soft": lambda r, k: CrossEntropyLoss(reduction=r),
    "ce_ignore": lambda r, k: CrossEntropyLoss(reduction=r),
    "ce_ignore3": lambda r, k: CrossEntropyLoss(reduction=r, ignore_index=3),
    "ce_smooth": lambda r, k: CrossEntropyLoss(reduction=r, label_smoothing=0.1),
    "ce_smooth_soft": lambda r, k: CrossEntropyLoss(reduction=r, label_smoothing=0.1),
    "ce_weight": lambda r, k: CrossEntropyLoss(k["weight"], reduction=r),
    "ce_weight_soft": lambda r, k: CrossEntropyLoss(k["weight"], reduction=r),
    "ce_weight_smooth_ignore": lambda r, k: CrossEntropyLoss(k["weight"], reduction=r, label_smoothing=0.1),
    "ce_image": lambda r, k: CrossEntropyLoss(reduction=r),
    "mse": lambda r, k: MSELoss(r),
    "l1": lambda r, k: L1Loss(r),
    "bce": lambda r, k: BCELoss(reduction=r),
    "bce_weight": lambda r, k: BCELoss(k["weight"], r),
    "bcelogits": lambda r, k: BCEWithLogitsLoss(r),
    "bcelogits_weight": lambda r, k: BCEWithLogitsLoss(r, k["weight"], k["pos_weight"]),
}


def numpy_of(value: Any) -> np.ndarray:
    return backend.to_numpy(value)


def test_no_case_is_left_out() -> None:
    assert {f"loss_{name}" for name in CASES} == set(cases("loss_"))


@quick_every(14)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_value_and_gradient_are_the_references(name: str, reduction: str, mode: str) -> None:
    expected = case(f"loss_{name}")
    loss = CASES[name](reduction, expected)
    label = Tensor(expected["label"])

    def both(x: Any) -> tuple[Any, Any]:
        _, value, (gradient,) = backend.value_and_gradient(lambda x: ((v := loss(x, label)) + 0.0, v), [], [x])
        return value, gradient

    run = both if mode == "eager" else backend.compile_function(both, choice=JitChoice(False, "test"))
    value, gradient = run(Tensor(expected["x"]))
    assert np.abs(numpy_of(value) - expected[reduction]).max() < 1e-5
    assert np.abs(numpy_of(gradient) - expected[f"g_{reduction}"]).max() < 1e-5


@quick_every(3)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_half_predictions_give_a_float32_loss_computed_in_float32(name: str, half: Any) -> None:
    expected = case(f"loss_{name}")
    loss = CASES[name]("mean", expected)
    label = Tensor(expected["label"])
    x = Tensor(expected["x"], half)
    value = loss(x, label)
    assert value.dtype == float32
    assert float(value) == float(loss(keras.ops.cast(x, float32), label))


@pytest.mark.parametrize("name", ["sce_onehot", "ce_soft", "mse", "bce", "bcelogits"])
@pytest.mark.parametrize("label_type", [np.float16, np.float64])
def test_labels_may_have_any_float_format(name: str, label_type: Any) -> None:
    expected = case(f"loss_{name}")
    value = CASES[name]("mean", expected)(Tensor(expected["x"]), expected["label"].astype(label_type))
    assert value.dtype == float32
    assert float(value) == pytest.approx(float(expected["mean"]), abs=1e-3)


@pytest.mark.parametrize("name", ["sce_sparse", "ce_sparse"])
@pytest.mark.parametrize("label_type", [np.int32, np.int64, np.uint8])
def test_class_numbers_may_have_any_int_format(name: str, label_type: Any) -> None:
    expected = case(f"loss_{name}")
    value = CASES[name]("mean", expected)(Tensor(expected["x"]), expected["label"].astype(label_type))
    assert float(value) == pytest.approx(float(expected["mean"]), abs=1e-6)
