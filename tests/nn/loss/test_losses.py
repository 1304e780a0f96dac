"""What losses default to, what they refuse, and how they behave at the edges."""

from __future__ import annotations

import functools
import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, ops
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.nn.layer import Softmax
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

SPARSE = SoftmaxCrossEntropyWithLogits(sparse=True)


def ones(*shape: int) -> Any:
    return Tensor(np.ones(shape, np.float32))


def ints(*shape: int) -> Any:
    return Tensor(np.ones(shape, np.int32))


def test_softmax_cross_entropy_is_not_reduced_by_default() -> None:
    assert tuple(SPARSE(ones(5, 3), ints(5)).shape) == (5,)
    assert CrossEntropyLoss()(ones(5, 3), ints(5)).shape == ()


def test_losses_have_no_parameters() -> None:
    loss = CrossEntropyLoss(weight=[1.0, 2.0, 3.0])
    assert list(loss.get_parameters()) == []


@pytest.mark.parametrize("reduction", ["MEAN", None, "avg"])
def test_unknown_reduction_is_refused(reduction: Any) -> None:
    with pytest.raises(ValueError, match="MSELoss: reduction must be one of mean, sum, none"):
        MSELoss(reduction)


def test_scores_that_went_through_a_softmax_are_taken_as_they_are() -> None:
    # Keras's own loss would look behind the softmax.
    def run(x: Any) -> Any:
        return SPARSE(Softmax()(x), Tensor([0]))

    expected = -math.log(math.exp(1.0) / (math.exp(1.0) + math.exp(0.0)))
    x = Tensor([[100.0, 0.0]])
    assert float(run(x)[0]) == pytest.approx(expected)
    assert float(backend.compile_function(run, choice=JitChoice(False, "test"))(x)[0]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss", "logits", "labels", "message"),
    [
        (SPARSE, ones(4, 3), ints(4, 1), r"expected labels \(4,\), class numbers, for logits \(4, 3\); got labels "
                                         r"\(4, 1\). Write labels\[..., 0\]"),
        (SPARSE, ones(4, 3), ones(4, 3), r"got labels \(4, 3\). Write sparse=False"),
        (SPARSE, ones(4, 3), ints(5), r"got labels \(5,\). Write labels of shape \(4,\)"),
        (SPARSE, ones(4, 3, 2), ints(4), r"logits must have 2 axes \(N, C\)"),
        (SoftmaxCrossEntropyWithLogits(), ones(4, 3), ints(4), r"got labels \(4,\). Write sparse=True"),
        (SoftmaxCrossEntropyWithLogits(), ones(4, 3), ones(4, 2), r"got labels \(4, 2\)"),
        (CrossEntropyLoss(), ones(4, 3), ints(4, 1), r"Write labels\[..., 0\]"),
        (CrossEntropyLoss(), ones(4, 3), ints(4, 3), r"Write one-hot labels as float32"),
        (CrossEntropyLoss(), ones(4, 3), ones(4), r"expected labels of the shape of logits \(4, 3\); got labels"),
        (CrossEntropyLoss(weight=[1.0, 1.0]), ones(4, 3), ints(4), r"weight must have shape \(3,\)"),
        (MSELoss(), ones(4, 3), ones(4, 2), r"MSELoss: expected labels that broadcast with logits \(4, 3\)"),
        (BCELoss(), ones(4, 1), ones(4), r"expected labels of the shape of logits .* Write labels\[..., None\]"),
        (BCELoss(weight=[1.0, 1.0]), ones(4, 3), ones(4, 3), r"expected weight to broadcast to \(4, 3\)"),
        (BCEWithLogitsLoss(), ones(4), ones(4, 1), r"Write labels\[..., 0\]"),
        (BCEWithLogitsLoss(pos_weight=[1.0, 1.0]), ones(4, 3), ones(4, 3), r"expected pos_weight to broadcast"),
    ],
)
def test_shapes_that_do_not_fit_are_named_with_the_cure(loss: Any, logits: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loss(logits, labels)


def test_float_class_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"expected class numbers of an int dtype; got float32. Write .*int32"):
        SPARSE(ones(4, 3), ones(4))


@quick_every(4)
@pytest.mark.parametrize("loss", [SPARSE, CrossEntropyLoss(reduction="none")])
@pytest.mark.parametrize("label", [3, -1])
def test_class_numbers_out_of_range_are_an_error_or_nan_but_never_a_number(loss: Any, label: int) -> None:
    logits, labels = ones(2, 3), Tensor([0, label])
    with pytest.raises(ValueError, match=f"labels must be from 0 to 2; got {label}"):
        loss(logits, labels)
    value = backend.compile_function(loss, choice=JitChoice(True, "test"))(logits, labels)
    assert np.isnan(backend.to_numpy(value)).tolist() == [False, True]


def test_all_ignored_is_nan_in_the_mean_and_zero_in_the_sum() -> None:
    labels = Tensor([-100, -100])
    assert math.isnan(float(CrossEntropyLoss()(ones(2, 3), labels)))
    assert float(CrossEntropyLoss(reduction="sum")(ones(2, 3), labels)) == 0.0


def test_scores_of_one_sample_may_lack_the_batch_axis() -> None:
    assert float(CrossEntropyLoss()(Tensor([0.0, 0.0]), Tensor(1))) == pytest.approx(math.log(2))


def test_the_derivative_of_binary_cross_entropy_at_0_and_1_is_that_of_the_reference() -> None:
    # Recorded on MindSpore 2.10: (x - y) / (x * (1 - x)), the divisor at least 1e-12.
    x, y = Tensor([0.0, 1.0, 0.0, 1.0, 1e-9, 1 - 2.0**-24, 0.3]), Tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.2])
    expected = [-1e12, 1e12, 0.0, 0.0, -1e9, 16777216.0, 0.4761905]
    for loss in (BCELoss(reduction="sum"), functools.partial(ops.binary_cross_entropy, reduction="sum")):
        assert mixtrain.grad(loss)(x, y).asnumpy() == pytest.approx(expected, rel=2e-6)


def test_a_sure_and_wrong_probability_costs_what_it_does_in_the_reference() -> None:
    value = BCELoss(reduction="none")(Tensor([0.0, 1.0]), Tensor([1.0, 0.0]))
    assert backend.to_numpy(value) == pytest.approx([27.631021, 27.631021])


def test_what_is_no_probability_is_an_error_or_nan() -> None:
    loss = BCELoss()
    with pytest.raises(ValueError, match="BCELoss: logits, which are probabilities here, must be from 0 to 1"):
        loss(Tensor([-1.0]), Tensor([1.0]))
    run = backend.compile_function(loss, choice=JitChoice(False, "test"))
    assert math.isnan(float(run(Tensor([-1.0]), Tensor([1.0]))))


@pytest.mark.parametrize("score", [-1000.0, 1000.0])
def test_large_scores_do_not_overflow(score: float) -> None:
    value = BCEWithLogitsLoss(reduction="none")(Tensor([score, score]), Tensor([0.0, 1.0]))
    assert sorted(backend.to_numpy(value).tolist()) == [0.0, 1000.0]


def test_distances_broadcast_but_warn_where_both_sides_are_stretched() -> None:
    assert float(L1Loss()(ones(4, 3), Tensor(3.0))) == 2.0
    with pytest.warns(UserWarning, match=r"logits \(4, 1\) and labels \(4,\) are both stretched"):
        MSELoss()(ones(4, 1), ones(4))


@pytest.mark.slow
@pytest.mark.tensorflow
def test_batches_of_unknown_size_are_taken_while_compiling() -> None:
    import tensorflow as tf

    specs = [tf.TensorSpec((None, 3)), tf.TensorSpec((None,), tf.int32)]
    for loss in (SoftmaxCrossEntropyWithLogits(True, "mean"), CrossEntropyLoss()):
        run = tf.function(loss, input_signature=specs)
        assert float(run(np.zeros((4, 3), np.float32), np.zeros(4, np.int32))) == pytest.approx(math.log(3))


class Cubed(LossBase):
    def construct(self, logits: Any, labels: Any) -> Any:
        return self.get_loss(keras.ops.power(logits - labels, 3), weights=[1.0, 2.0])


@pytest.mark.parametrize(("reduction", "expected"), [("none", [8.0, 2.0]), ("mean", 5.0), ("sum", 10.0)])
def test_a_users_loss_weights_and_reduces(reduction: str, expected: Any) -> None:
    loss = Cubed(reduction)
    assert backend.to_numpy(loss(Tensor([2.0, 1.0]), Tensor([0.0, 0.0]))).tolist() == expected
    assert loss.get_axis(ones(2, 3, 4)) == (0, 1, 2)
    assert (loss.average, loss.reduce) == (reduction != "sum", reduction != "none")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: SoftmaxCrossEntropyWithLogits(sparse=1), TypeError),
        (lambda: CrossEntropyLoss(ignore_index=1.0), TypeError),
        (lambda: CrossEntropyLoss(label_smoothing=1.5), ValueError),
    ],
)
def test_bad_argument_is_refused(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="must be"):
        make()
