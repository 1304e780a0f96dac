"""Losses beyond the reference's kernels: formulas, float32 whatever comes in, subclasses, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32
from tests.backends import quick_every
from tests.nn.by_case import build
from tests.nn.cases import LOSSES

X = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
SIGN = np.sign(np.random.default_rng(2).standard_normal((3, 4))).astype(np.float32)


def ones(*shape: int) -> Any:
    return Tensor(np.ones(shape, np.float32))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_soft_margin_is_its_formula(reduction: str) -> None:
    expected = np.log1p(np.exp(-SIGN * X))
    expected = expected if reduction == "none" else getattr(expected, reduction)()
    assert backend.to_numpy(nn.SoftMarginLoss(reduction)(Tensor(X), Tensor(SIGN))) == pytest.approx(expected, abs=1e-5)


def test_soft_margin_does_not_overflow() -> None:
    assert float(nn.SoftMarginLoss()(Tensor([-1000.0]), Tensor([1.0]))) == 1000.0


@quick_every(4)
@pytest.mark.parametrize("name", [name for name in LOSSES if not name.endswith(("_none", "_sum"))])
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_half_predictions_give_a_float32_loss_computed_in_float32(name: str, half: Any) -> None:
    loss, (x, *rest), _ = build(name, LOSSES[name])
    x = Tensor(backend.to_numpy(x), half)
    value = loss(x, *rest)
    assert value.dtype == float32
    wide = Tensor(backend.to_numpy(x).astype(np.float32))
    assert (backend.to_numpy(value) == backend.to_numpy(loss(wide, *rest))).all()


def test_weights_of_classes_count_in_the_mean() -> None:
    logs = Tensor(np.log(np.array([[0.5, 0.5], [0.25, 0.75]], np.float32)))
    loss = nn.NLLLoss(Tensor([1.0, 3.0]))
    expected = (np.log(2) + 3 * -np.log(0.75)) / 4
    assert float(loss(logs, Tensor(np.array([0, 1], np.int32)))) == pytest.approx(expected, rel=1e-5)


def test_zero_probabilities_count_for_nothing() -> None:
    x, label = Tensor([-1.0, -2.0]), Tensor([0.0, 1.0])
    value = nn.KLDivLoss("sum")(x, label)
    _, _, (gradient,) = backend.value_and_gradient(lambda x: (nn.KLDivLoss("sum")(x, label), None), [], [x])
    assert (float(value), backend.to_numpy(gradient).tolist()) == (2.0, [0.0, -1.0])


def test_defaults_are_the_references() -> None:
    assert nn.SmoothL1Loss().reduction == "none" and nn.SmoothL1Loss().beta == 1.0
    assert nn.HuberLoss().reduction == nn.MAELoss().reduction == nn.NLLLoss().reduction == "mean"
    assert nn.NLLLoss().ignore_index == -100
    assert nn._Loss is nn.LossBase


def test_a_subclass_in_the_old_style_uses_what_the_base_offers() -> None:
    class Weighted(nn._Loss):
        def __init__(self, reduction: str = "mean") -> None:
            super().__init__(reduction)

        def construct(self, logits: Any, labels: Any) -> Any:
            x = self.mul(self.cast(logits, float32), labels)
            means = self.reduce_mean(x) + self.reduce_mean(x, self.get_axis(x))
            return self.get_loss(self.reduce_sum(x, (1,)), 2.0) + means

    assert float(Weighted()(Tensor(np.ones((2, 3)), float16), ones(2, 3))) == 8.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.SmoothL1Loss()(ones(3, 4), ones(3, 5)), ValueError, "SmoothL1Loss: expected labels that bro"),
        (lambda: nn.MAELoss()(ones(3, 4), ones(5)), ValueError, r"MAELoss: .* \(3, 4\); got labels \(5,\)"),
        (lambda: nn.SmoothL1Loss(beta=0), ValueError, "beta must be greater than 0"),
        (lambda: nn.HuberLoss("batchmean"), ValueError, "HuberLoss: reduction must be one of mean, sum, none"),
        (lambda: nn.KLDivLoss("all"), ValueError, "reduction must be one of mean, sum, none, batchmean"),
        (lambda: nn.KLDivLoss()(ones(3, 4), ones(3)), ValueError, r"of logits \(3, 4\); got labels \(3,"),
        (lambda: nn.NLLLoss()(ones(3, 4), ones(3)), TypeError, "expected class numbers of an int dtype; got float"),
        (lambda: nn.NLLLoss()(ones(3, 4), ones(3, 4)), ValueError, r"NLLLoss: expected labels \(3,\), class numbers"),
        (lambda: nn.NLLLoss()(ones(1, 4), Tensor(np.array([4]))), ValueError, "labels must be from 0 to 3; got 4"),
        (lambda: nn.NLLLoss(ones(3))(ones(1, 4), Tensor(np.array([1]))), ValueError, r"weight must have shape \(4,\)"),
        (lambda: nn.CosineEmbeddingLoss(2.0), ValueError, "margin must be at most 1"),
        (lambda: nn.CosineEmbeddingLoss()(ones(3, 4), ones(3, 4), ones(4)), ValueError, r"got labels \(4,\)"),
        (lambda: nn.DiceLoss()(ones(3, 4), ones(3)), ValueError, r"of logits \(3, 4\); got label \(3,\)"),
        (lambda: nn.FocalLoss()(ones(3, 4), ones(3)), ValueError, r"got logits \(3, 4\) and labels \(3,\)"),
        (lambda: nn.MultiClassDiceLoss(activation="gelu"), ValueError, "activation must be one of softmax"),
        (lambda: nn.MultiClassDiceLoss(ones(3, 1))(ones(2, 4), ones(2, 4)), ValueError, "weights must have 4 rows"),
    ],
)
def test_what_does_not_fit_is_one_sentence(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
