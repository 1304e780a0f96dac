"""`SampledSoftmaxLoss`: MindSpore's numbers for given samples, and samples of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops

_r = np.random.default_rng(1)
W, B, X = (Tensor(_r.standard_normal(shape).astype(np.float32)) for shape in ((7, 2), (7,), (3, 2)))
LABELS = Tensor(np.array([[0, 3], [1, 1], [2, 6]], np.int32))
SAMPLED = (
    Tensor(np.array([3, 4, 1, 6], np.int32)), Tensor(np.array([[0.5, 0.2], [0.25, 0.25], [0.1, 0.7]], np.float32)),
    Tensor(np.array([0.5, 0.4, 0.3, 0.2], np.float32)),
)
# Computed by MindSpore 2.10.
LOSS = [1.4650886, 1.0461738, 2.43867]
BY_BIASES = [-0.36249, 0.1493, -0.45282, 0.14454, 0.07956, 0.0, 0.4419]
BY_INPUTS = [[-0.26677, -0.34469], [-0.00416, 0.00585], [-0.58902, -0.32028]]


def test_given_samples_lead_to_mindspore_s_losses_and_gradients() -> None:
    cell = nn.SampledSoftmaxLoss(4, 7, 2, SAMPLED)
    loss = mixtrain.jit(cell)
    np.testing.assert_allclose(loss(W, B, LABELS, X).asnumpy(), LOSS, rtol=1e-5)
    np.testing.assert_allclose(cell(W, B, LABELS.astype(mixtrain.int64).reshape(-1), X).asnumpy(), LOSS, rtol=1e-5)
    gradients = mixtrain.jit(mixtrain.grad(lambda b, x: cell(W, b, LABELS, x), (0, 1)))(B, X)
    np.testing.assert_allclose(gradients[0].asnumpy(), BY_BIASES, atol=2e-5)
    np.testing.assert_allclose(gradients[1].asnumpy(), BY_INPUTS, atol=2e-5)
    far = loss(W * 100, B, LABELS, X).asnumpy()
    np.testing.assert_allclose(far, [2.8513575, 1.0414562, 23.777884], rtol=1e-4)  # -log(1e-20) / 2 is in the last.


def test_samples_are_of_other_classes_where_there_are_enough() -> None:
    mixtrain.set_seed(1)
    labels = Tensor(np.array([[0, 1], [1, 0]], np.int32))
    for count, left_out in ((5, True), (6, False)):
        drawn = {*mixtrain.jit(ops.UniformCandidateSampler(2, count, True, 7, 0, True))(labels)[0].asnumpy().tolist()}
        assert len(drawn) == count and ({0, 1}.isdisjoint(drawn) is left_out)
    # All others: their counts are equal, so that any order leads to the same loss, that of all classes.
    loss = mixtrain.jit(nn.SampledSoftmaxLoss(6, 7))(W, B, Tensor(np.array([[2]], np.int32)), X[:1]).asnumpy()
    scores = (X.asnumpy() @ W.asnumpy().T + B.asnumpy())[0]
    np.testing.assert_allclose(loss, np.log(np.exp(scores).sum()) - scores[2], rtol=1e-5)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"num_sampled": 8}, ValueError, "num_sampled must be at most num_classes"),
    ({"num_true": 0}, ValueError, "num_true must be at least 1"),
    ({"seed": -1}, ValueError, "seed must be at least 0"),
    ({"sampled_values": 3}, TypeError, "sampled_values must be a list or tuple"),
    ({"sampled_values": (1, 2)}, ValueError, "sampled_values must be 3"),
    ({"reduction": "mean"}, ValueError, "reduction must be one of none"),
])
def test_what_does_not_fit_is_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^SampledSoftmaxLoss: {message}"):
        nn.SampledSoftmaxLoss(**{"num_sampled": 4, "num_classes": 7, **arguments})


def test_labels_are_ints() -> None:
    with pytest.raises(TypeError, match="labels must be int32 or int64"):
        nn.SampledSoftmaxLoss(4, 7)(W, B, LABELS.astype(mixtrain.float32), X)
