"""Activations, losses, boxes and collectives: formats, settings, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, ops
from tests.backends import quick_every

X = mixtrain.Tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])
HALF = ops.cast(X, mixtrain.float16)
WIDE, TALL = (
    mixtrain.COOTensor(mixtrain.Tensor([[0, 1]]), mixtrain.Tensor([1.0]), shape) for shape in ((2, 4), (3, 4))
)
BOXES = mixtrain.Tensor([[0.0, 0.0, 9.0, 9.0], [5.0, 5.0, 2.0, 2.0]])


def test_activations_keep_their_format_and_relu_takes_integers() -> None:
    for name in ("relu", "sigmoid", "gelu", "hardswish", "softplus", "mish", "elu", "softmax", "leaky_relu"):
        assert getattr(ops, name)(HALF).dtype.name == "float16", name
    whole = ops.relu(mixtrain.Tensor(np.array([-1, 2], np.int32)))
    assert (whole.dtype.name, backend.to_numpy(whole).tolist()) == ("int32", [0, 2])
    assert ops.softmax(HALF, dtype=mixtrain.float32).dtype.name == "float32"
    assert ops.sigmoid(mixtrain.Tensor(np.array([0]))).dtype.name == "float32"


def test_losses_are_computed_and_returned_in_float32() -> None:
    labels = mixtrain.Tensor(np.array([0, 2], np.int32))
    for loss in (
        ops.cross_entropy(HALF, labels), ops.mse_loss(HALF, HALF), ops.SigmoidCrossEntropyWithLogits()(HALF, HALF),
        ops.SoftmaxCrossEntropyWithLogits()(HALF, ops.softmax(HALF))[0], ops.SmoothL1Loss()(HALF, HALF),
    ):
        assert loss.dtype.name == "float32"


def test_a_loss_that_stretches_both_sides_warns() -> None:
    with pytest.warns(UserWarning, match=r"ops.mse_loss: input \(2, 1\) and target \(2,\) are both stretched"):
        ops.mse_loss(mixtrain.Tensor([[1.0], [2.0]]), mixtrain.Tensor([1.0, 2.0]))


def test_the_gradient_of_the_softmax_loss_flows_through_its_first_result() -> None:
    labels = mixtrain.Tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    gradient, (expected,) = mixtrain.grad(
        lambda x: ops.SoftmaxCrossEntropyWithLogits()(x, labels), has_aux=True
    )(X)
    np.testing.assert_allclose(backend.to_numpy(gradient), backend.to_numpy(expected), rtol=1e-5, atol=1e-6)


def test_boxes_without_area_overlap_nothing_and_equal_scores_keep_the_later() -> None:
    assert backend.to_numpy(ops.iou(BOXES, BOXES)).tolist()[0] == [1.0, 0.0]
    scored = mixtrain.Tensor([[0, 0, 1, 1, 0.5], [0, 0, 10, 10, 0.5], [0, 0, 9, 10, 0.5]])
    kept, index, stays = ops.NMSWithMask(0.5)(scored)
    assert backend.to_numpy(kept)[:, 2].tolist() == [9.0, 10.0, 1.0]
    assert (backend.to_numpy(index).tolist(), backend.to_numpy(stays).tolist()) == ([0, 1, 2], [True, False, True])


def test_a_box_that_is_suppressed_suppresses_none_compiled_too() -> None:
    chain = mixtrain.Tensor([[0, 0, 10, 10, 0.9], [4, 0, 14, 10, 0.8], [8, 0, 18, 10, 0.7]])
    assert backend.to_numpy(mixtrain.jit(ops.NMSWithMask(0.3))(chain)[2]).tolist() == [True, False, True]


def test_offsets_are_decoded_as_they_were_encoded() -> None:
    anchors, truths = BOXES[:1], mixtrain.Tensor([[3.0, 1.0, 20.0, 6.0]])
    offsets = ops.BoundingBoxEncode((0.1,) * 4, (0.2,) * 4)(anchors, truths)
    decoded = ops.BoundingBoxDecode((50, 50), (0.1,) * 4, (0.2,) * 4)(anchors, offsets)
    np.testing.assert_allclose(backend.to_numpy(decoded), backend.to_numpy(truths), rtol=1e-5)


def test_collectives_return_their_input_on_one_device() -> None:
    for collective in (ops.AllReduce(), ops.AllReduce(ops.ReduceOp.MAX), ops.AllGather(), ops.ReduceScatter("min")):
        assert (collective(X) == X).all()
    assert (ops.Broadcast(0)((X,))[0] == X).all()
    assert (ops.ReduceOp.SUM, ops.ReduceOp.MAX, ops.ReduceOp.MIN, ops.ReduceOp.PROD) == ("sum", "max", "min", "prod")
    assert repr(ops.AllReduce()).startswith("Prim[AllReduce]")


LABELS = np.array([0, 2], np.int32)
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.relu(X, inplace=True), ValueError, "ops.relu: inplace must be False"),
    (lambda: ops.gelu(X, "erf"), ValueError, "approximate must be one of none, tanh"),
    (lambda: ops.softmax(X, 5), ValueError, "ops.softmax: axis must be at least -2 and below 2"),
    (lambda: ops.Softmax("a"), TypeError, "Softmax: axis must be an int or a tuple of ints"),
    (lambda: ops.LogSoftmax(1.0), TypeError, "LogSoftmax: axis must be an int"),
    (lambda: ops.celu(X, 0), ValueError, "alpha must not be 0"),
    (lambda: ops.glu(X), ValueError, "ops.glu: the axis must have an even size"),
    (lambda: ops.prelu(X, np.ones(2, "f")), ValueError, "weight must have shape (1,) or (3,)"),
    (lambda: ops.sigmoid("a"), TypeError, "ops.sigmoid: a Tensor, NumPy array or number was needed"),
    (lambda: ops.cross_entropy(X, LABELS[:1]), ValueError, "ops.cross_entropy: expected labels (2,)"),
    (lambda: ops.cross_entropy(X, LABELS + 1), ValueError, "labels must be from 0 to 2; got 3"),
    (lambda: ops.cross_entropy(X, LABELS, reduction="avg"), ValueError, "reduction must be one of mean, sum, none"),
    (lambda: ops.cross_entropy(X, LABELS, np.ones(2, "f")), ValueError, "weight must have shape (3,)"),
    (lambda: ops.cross_entropy(X, LABELS, label_smoothing=2), ValueError, "label_smoothing must be at most 1"),
    (lambda: ops.nll_loss(X, X), TypeError, "ops.nll_loss: target must be class numbers"),
    (lambda: ops.mse_loss(X, X[:, :2]), ValueError, "ops.mse_loss: expected shapes that broadcast"),
    (lambda: ops.SmoothL1Loss(0.0), ValueError, "SmoothL1Loss: beta must be greater than 0"),
    (lambda: ops.SmoothL1Loss()(X, X[:1]), ValueError, "ops.smooth_l1_loss: expected target of the shape of input"),
    (lambda: ops.binary_cross_entropy(X, X), ValueError, "which are probabilities here, must be from 0 to 1"),
    (lambda: ops.SoftmaxCrossEntropyWithLogits()(X[0], X[0]), ValueError, "logits must have 2 axes (N, C)"),
    (lambda: ops.SparseSoftmaxCrossEntropyWithLogits(3), TypeError, "is_grad must be True or False"),
    (lambda: ops.IOU("giou"), ValueError, "IOU: mode must be one of iou, iof"),
    (lambda: ops.iou(BOXES, X), ValueError, "gt_boxes must have shape (N, 4)"),
    (lambda: ops.BoundingBoxEncode((1.0, 2.0)), ValueError, "means must have 4 entries"),
    (lambda: ops.BoundingBoxDecode(5), TypeError, "max_shape must be (height, width)"),
    (lambda: ops.CheckValid()(BOXES, X[0, :2]), ValueError, "img_metas must be (height, width, ratio)"),
    (lambda: ops.NMSWithMask(2.0), ValueError, "iou_threshold must be at most 1"),
    (lambda: ops.NMSWithMask()(BOXES), ValueError, "bboxes must have shape (N, 5)"),
    (lambda: ops.ROIAlign(2, 2, 1.0, 0), ValueError, "sample_num must be at least 1"),
    (lambda: ops.ROIAlign(2, 2, 1.0)(np.ones((1, 1, 3, 3), "f"), BOXES), ValueError, "rois must have shape (R, 5)"),
    (lambda: ops.AllReduce("avg"), ValueError, "AllReduce: op must be one of sum, max, min, prod"),
    (lambda: ops.AllGather(3), TypeError, "AllGather: group must be a str"),  # type: ignore[arg-type]
    (lambda: ops.Broadcast(1), ValueError, "Broadcast: root_rank must be under the number of processes, 1; got 1"),
    (lambda: ops.L2Normalize(3)(X), ValueError, "L2Normalize: axis must be at least -2 and below 2"),
    (lambda: ops.Softmax(())(X), ValueError, "Softmax: axis must not be empty"),
    (lambda: ops.SquareSumAll()(X, HALF), TypeError, "both must be float16 or float32"),
    (lambda: ops.SquareSumAll()(X, X[0]), ValueError, r"input_y must have shape (2, 3)"),
    (lambda: ops.coo_concat((WIDE, TALL), 1), RuntimeError, "equal but for axis 1; got (2, 4) and (3, 4)"),
    (lambda: ops.coo_concat((WIDE, WIDE), 2), IndexError, "concat_dim from -2 to 1; got 2"),
    (lambda: ops.coo_concat((WIDE,)), ValueError, "sp_input must be two COOTensors or more; got 1"),
    (lambda: ops.coo_concat((WIDE, WIDE.astype(mixtrain.float16))), TypeError, "values must have one dtype"),
    (lambda: ops.L2Normalize(epsilon=-1), ValueError, "L2Normalize: epsilon must be at least 0"),
    (lambda: ops.select_scatter(X, ops.zeros((1, 3)), 0, 0), ValueError, "src must have the shape of the slice (3,)"),
    (lambda: ops.slice_scatter(X, ops.zeros(2), 1, 0, 2), ValueError, "src must have the shape of the slice (2, 2)"),
]


@quick_every(4)
@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arguments_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["kaiser", "hann", "hamming", "bartlett", "blackman"])
@pytest.mark.parametrize("periodic", [False, True])
def test_a_window_of_one_number_is_1(name: str, periodic: bool) -> None:
    assert backend.to_numpy(getattr(ops, f"{name}_window")(1, periodic)).tolist() == [1.0]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: ops.arange([1]), TypeError), (lambda: ops.arange(True), TypeError),
        (lambda: ops.arange(0, "3"), TypeError), (lambda: ops.arange(mixtrain.Tensor([3])), ValueError),
    ],
)
def test_a_range_is_of_numbers(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^ops\.arange: (start|end|step) must .* Write"):
        call()


def test_a_range_of_a_float_tensor_has_floats() -> None:
    for kind in (np.float16, np.float64):
        numbers = ops.arange(mixtrain.Tensor(np.array(0.5, kind)), 3)
        assert (numbers.dtype, backend.to_numpy(numbers).tolist()) == (mixtrain.float32, [0.5, 1.5, 2.5])


def test_logits_of_integers_are_refused_as_labels_that_came_first() -> None:
    labels, logits = mixtrain.Tensor(np.array([[0], [1]], np.int32)), mixtrain.Tensor([[0.5], [1.0]])
    with pytest.raises(TypeError, match="ops.cross_entropy: logits must be of a float dtype; got"):
        ops.cross_entropy(labels, logits)
