"""Primitives of MindSpore's modules of operations: recorded calls of MindSpore 2.10, and what Python does."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, ops
from mixtrain.ops import auto_generate
from mixtrain.ops.operations import _grad_ops, _sequence_ops, array_ops, nn_ops, sparse_ops
from tests.backends import ON_TENSORFLOW, quick_every
from tests.data.recorded_primitives import outputs

RECORDED = json.loads((pathlib.Path(__file__).parents[1] / "data/module_primitives_reference.json").read_text())


@quick_every(3)
@pytest.mark.parametrize("call", RECORDED, ids=lambda call: call["name"])
def test_a_primitive_computes_what_was_recorded(call: dict[str, Any]) -> None:
    for value, (expected, dtype) in zip(outputs("mixtrain", call), call["expected"], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
        assert ON_TENSORFLOW is False or str(value.dtype) == dtype  # JAX has no int64.


SEQUENCES: dict[str, tuple[list[Any], Any]] = {
    "SequenceAdd": ([(1, 2), (3,)], (1, 2, 3)), "SequenceAddOffset": ([(1, 2), (3,)], (0, 2)),
    "SequenceCount": ([(1, 2, 1), 1], 2), "SequenceIndex": ([(4, 5, 4), 4, 1, 3], 2), "SequenceMax": ([(1, 3, 2)], 3),
    "SequenceMin": ([(1, 3, 2)], 1), "SequenceMul": ([(1, 2), 2], (1, 2, 1, 2)),
    "SequenceSlice": ([(1, 2, 3, 4), 3, 0, -2], (4, 2)), "TensorToTuple": ([Tensor([1, 2])], (1, 2)),
    "TensorToList": ([Tensor([1, 2])], [1, 2]), "TensorToScalar": ([Tensor(3)], 3),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_primitives_of_sequences_do_what_python_does(name: str) -> None:
    inputs, expected = SEQUENCES[name]
    assert getattr(_sequence_ops, name)()(*inputs) == expected


def test_sequences_become_tensors_and_are_added_and_unstacked() -> None:
    assert _sequence_ops.TupleToTensor()((1, 2), mixtrain.int32).asnumpy().tolist() == [1, 2]
    assert _sequence_ops.ListToTensor()([1, 2]).dtype == mixtrain.float32
    one, two = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    assert _sequence_ops.SequenceAddN()((one, two)).asnumpy().tolist() == [4, 6]
    stacked = _sequence_ops.SequenceStack(1)((one, two))
    assert stacked.asnumpy().tolist() == [[1, 3], [2, 4]]
    assert _sequence_ops.SequenceUnstack(1)(stacked)[1].asnumpy().tolist() == [3, 4]


def test_places_of_a_sparse_array_move_with_its_shape() -> None:
    # MindSpore 2.10 returns indices from memory that was not written.
    places, shape = (Tensor(value, mixtrain.int32) for value in ([[0, 1], [2, 0]], [3, 2]))
    moved, new = ops.operations.SparseReshape()(places, shape, Tensor([2, -1], mixtrain.int32))
    assert moved.asnumpy().tolist() == [[0, 1], [1, 1]] and new.asnumpy().tolist() == [2, 3]


def test_drawn_numbers_are_in_their_ranges_and_repeat_with_a_seed() -> None:
    from mixtrain.ops.operations.random_ops import TruncatedNormal, Uniform

    normal = TruncatedNormal(seed=3)(Tensor([1000])).asnumpy()
    assert np.abs(normal).max() < 2 and np.array_equal(normal, TruncatedNormal(seed=3)((1000,)).asnumpy())
    uniform = Uniform(2.0, 3.0)(Tensor(np.zeros((50, 2), np.float32))).asnumpy()
    assert uniform.shape == (50, 2) and uniform.min() >= 2 and uniform.max() < 3


def test_a_tensor_is_no_constant_of_a_compiled_function() -> None:
    assert ops.functional.isconstant(3) and not ops.functional.isconstant(Tensor(3))


def test_primitives_that_have_no_kernel_on_a_cpu_there_are_the_functions_of_their_names() -> None:
    # MindSpore 2.10 refuses these on a CPU.
    x = Tensor(np.array([[0.3, 0.7], [0.5, 0.4]], np.float32))
    one, other = x * 2.0, x + 1.0
    assert array_ops.ArgminV2()(x, 1).asnumpy().tolist() == [0, 1]
    loss = nn_ops.TripletMarginLoss(2, True, 1e-6, "none")(x, one, other, 1.0)
    expected = ops.triplet_margin_loss(x, one, other, 1.0, 2, 1e-6, True, "none")
    assert loss.asnumpy().tolist() == expected.asnumpy().tolist()
    places = Tensor(np.array([[1, -1], [0, 1]], np.int32))
    loss = nn_ops.MultilabelMarginLoss("sum")(x, places)
    assert float(loss) == float(ops.multilabel_margin_loss(x, places, "sum"))
    assert auto_generate.AddExt()(x, one, 2).asnumpy().tolist() == (x + one * 2).asnumpy().tolist()
    assert auto_generate.SubExt()(x, one, 2).asnumpy().tolist() == (x - one * 2).asnumpy().tolist()
    assert auto_generate.OnesLikeExt()(x, mixtrain.int32).asnumpy().tolist() == [[1, 1], [1, 1]]
    assert auto_generate.ZerosLikeExt()(x).asnumpy().tolist() == [[0, 0], [0, 0]]
    assert array_ops.Expand()(x[0], (2, 2)).asnumpy().tolist() == [x[0].asnumpy().tolist()] * 2


def test_sparse_arrays_of_other_shapes_are_not_added() -> None:
    indices, values = Tensor(np.array([[0, 1]], np.int64)), Tensor([1.0])
    with pytest.raises(ValueError, match=r"ops.SparseAdd: x2_shape must be \(2, 2\), that of the first array; got"):
        sparse_ops.SparseAdd()(indices, values, (2, 2), indices, values, (2, 3), 0.0)


def test_optimizers_of_the_rows_with_a_gradient_write_what_was_recorded() -> None:
    # Recorded on MindSpore 2.10.
    var, squares, moment = (
        mixtrain.Parameter(np.array(value, np.float32), name=name)
        for name, value in (("v", [[0.6, 0.3], [0.1, 0.5]]), ("s", [[0.2, 0.4], [0.1, 0.3]]), ("m", [[0.3, 0.1]] * 2))
    )
    grad, indices = Tensor(np.array([[0.4, 0.8]], np.float32)), Tensor(np.array([1], np.int32))
    step = nn_ops.SparseApplyRMSProp(0.2, 0.01, 1e-6)(var, squares, moment, 0.01, grad, indices)
    np.testing.assert_allclose(step[1].asnumpy(), [[0.2, 0.4], [0.148, 0.572]], rtol=1e-6)
    np.testing.assert_allclose(moment.asnumpy(), [[0.3, 0.1], [0.01339747, 0.01157771]], rtol=1e-5)
    np.testing.assert_allclose(var.asnumpy(), [[0.6, 0.3], [0.08660253, 0.48842228]], rtol=1e-6)
    var.set_data(Tensor(np.array([[0.6, 0.3], [0.1, 0.5]], np.float32)))
    squares.set_data(Tensor(np.array([[0.2, 0.4], [0.1, 0.3]], np.float32)))
    nn_ops.SparseApplyAdagrad(0.1)(var, squares, grad, Tensor(np.array([0], np.int32)))
    np.testing.assert_allclose(var.asnumpy(), [[0.53333336, 0.22155356], [0.1, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(squares.asnumpy(), [[0.36, 1.04], [0.1, 0.3]], rtol=1e-6)


def test_a_gradient_of_pooled_regions_has_the_shape_of_the_pool() -> None:
    boxes = Tensor(np.zeros((1, 5, 1), np.float32))
    with pytest.raises(RuntimeError, match=r"PSROIPoolingGrad: the gradient must have shape \(1, 2, 2, 2\)"):
        _grad_ops.PSROIPoolingGrad((4, 4), 0.5, 2, 2)(ops.zeros((1, 3, 2, 2)), boxes)
    with pytest.raises(ValueError, match="PSROIPooling: features must have 8 channels; got 4"):
        ops.PSROIPooling(0.5, 2, 2)(ops.zeros((1, 4, 4, 4)), boxes)


@pytest.mark.parametrize(("training", "expected"), [
    (False, [[2.16412, -1.38668, 0.04363], [3.44716, -2.02775, 0.18568], [2.417, 1.31118, -4.48318]]),
    (True, [[2.24961, -2.20019, -0.42592], [2.46001, -2.3996, -0.97288], [2.417, 1.31118, -4.48318]]),
])
def test_the_gradient_of_a_batch_norm_is_what_was_recorded(training: bool, expected: list[list[float]]) -> None:
    random = np.random.RandomState(0)
    x, dy = (Tensor(random.randn(2, 3, 2, 2).astype(np.float32)) for _ in range(2))
    scale, mean, variance = (Tensor(row) for row in np.float32([[1, 2, 3], [0.1, 0.2, 0.3], [1.1, 1.2, 0.7]]))
    gradients = _grad_ops.BatchNormGrad(training)(dy, x, scale, mean, variance, scale)
    for gradient, first in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient.asnumpy().ravel()[:3], first, atol=2e-5)


def test_a_fractional_pool_with_a_fixed_window_takes_its_samples_and_returns_indices() -> None:
    x = Tensor(np.random.RandomState(0).randn(1, 2, 6, 6).astype(np.float32))
    samples = Tensor([[[0.1, 0.5], [0.8, 0.2]]])
    values, indices = nn_ops.FractionalMaxPoolWithFixedKsize(2, (3, 3))(x, samples)
    expected = ops.fractional_max_pool2d(x, 2, (3, 3), return_indices=True, _random_samples=samples)
    np.testing.assert_array_equal(values.asnumpy(), expected[0].asnumpy())
    np.testing.assert_array_equal(values.asnumpy().ravel(), np.take_along_axis(
        x.asnumpy().reshape(2, 36), indices.asnumpy().reshape(2, 9), 1
    ).ravel())


def test_a_depthwise_convolution_keeps_channels_apart() -> None:
    random = np.random.RandomState(0)
    x, weight = (Tensor(random.randn(*shape).astype(np.float32)) for shape in ((1, 3, 5, 5), (2, 3, 3, 3)))
    result = nn_ops.DepthwiseConv2dNative(2, (3, 3))(x, weight).asnumpy()
    assert result.shape == (1, 6, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x.asnumpy()[0], (3, 3), (1, 2))
    for channel in range(3):
        expected = np.einsum("hwij,mij->mhw", windows[channel], weight.asnumpy()[:, channel])
        np.testing.assert_allclose(result[0, 2 * channel : 2 * channel + 2], expected, rtol=1e-4, atol=1e-5)


def test_eigenvectors_and_eigenvalues_make_up_the_matrix() -> None:
    from mixtrain.ops.operations.math_ops import SelfAdjointEig

    matrix = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 5]], np.float32)
    values, vectors = SelfAdjointEig()(Tensor(matrix))
    np.testing.assert_allclose((vectors.asnumpy() * values.asnumpy()) @ vectors.asnumpy().T, matrix, atol=1e-5)
    np.testing.assert_allclose(SelfAdjointEig(False)(Tensor(matrix))[0].asnumpy(), values.asnumpy(), atol=1e-5)


def test_nesterov_momentum_of_rows_is_that_of_all() -> None:
    # MindSpore 2.10 ignores use_nesterov of rows on a CPU.
    grad, indices = Tensor([[0.4, 0.8]]), Tensor(np.array([0], np.int32))
    one, two = (mixtrain.Parameter(np.float32([[1, 2]]), name=name) for name in "ab")
    steps, other = (mixtrain.Parameter(np.float32([[0.5, 0.3]]), name=name) for name in "cd")
    nn_ops.SparseApplyMomentum(use_nesterov=True)(one, steps, 0.1, grad, indices, 0.9)
    ops.ApplyMomentum(use_nesterov=True)(two, other, 0.1, grad, 0.9)
    np.testing.assert_allclose(one.asnumpy(), two.asnumpy(), rtol=1e-6)


def test_updates_of_rows_refuse_what_mindspore_refuses() -> None:
    var, accum = (mixtrain.Parameter(np.ones((3, 2), np.float32), name=name) for name in "va")
    step, rows = ops.FusedSparseProximalAdagrad(), ops.ones((2, 2))
    indices = Tensor(np.array([0, 1], np.int32))
    for grad, index in ((rows, indices[0]), (Tensor(3.0), indices), (ops.ones((2, 3)), indices)):
        with pytest.raises(ValueError, match=r"grad must have rows of shape \(2,\) and indices one axis"):
            step(var, accum, 0.01, 0.0, 0.0, grad, index)
    for grad, index, text in ((rows, Tensor([0.0, 1.0]), "must be ints"), ([rows], indices, "must be a tensor")):
        with pytest.raises(TypeError, match=text):
            step(var, accum, 0.01, 0.0, 0.0, grad, index)


def test_weights_of_counts_are_as_many_as_values() -> None:
    indices, shape = Tensor(np.array([[0, 1], [1, 2]])), Tensor(np.array([2, 3]))
    with pytest.raises(RuntimeError, match=r"weights must be as many as values, and indices below \(2, 3\)"):
        sparse_ops.SparseCountSparseOutput()(indices, Tensor(np.array([1, 2])), shape, Tensor([1.0]))


def test_more_axes_scalars_bools_and_lengths() -> None:
    x = np.random.RandomState(0).rand(1, 2, 3, 1, 2, 2, 1, 2).astype(np.float32)
    assert np.array_equal(ops.Argmax(2)(Tensor(x)).asnumpy(), x.argmax(2))
    assert ops.argmin(Tensor(x), 4, True).shape == (1, 2, 3, 1, 1, 2, 1, 2)
    assert ops.PReLU()(Tensor(-2.0), Tensor([0.5])).shape == ()
    dense = ops.SparseToDense()(Tensor(np.array([[1]], np.int32)), Tensor(np.array([True])), (3,))
    assert dense.asnumpy().tolist() == [False, True, False]
    crops = ops.CropAndResize("nearest")(
        ops.ones((1, 4, 4, 1), mixtrain.float16), Tensor([[0.0, 0.0, 1.0, 1.0]]), Tensor([0], mixtrain.int32), (2, 2)
    )
    assert crops.dtype == mixtrain.float32 and crops.asnumpy().tolist() == np.ones((1, 2, 2, 1)).tolist()
    with pytest.raises(RuntimeError, match="sequence_length should be less than 3"):
        ops.CTCGreedyDecoder()(ops.ones((2, 1, 3)), Tensor([3], mixtrain.int32))


def test_primitives_run_compiled() -> None:
    var, accum = (mixtrain.Parameter(np.ones((3, 2), np.float32), name=name) for name in "wb")

    @mixtrain.jit
    def step(grad: Tensor, indices: Tensor) -> Tensor:
        return nn_ops.SparseApplyMomentum()(var, accum, 0.1, grad, indices, 0.9)

    step(ops.ones((2, 2)), Tensor(np.array([2, 2], np.int32)))
    np.testing.assert_allclose(var.asnumpy(), [[1, 1], [1, 1], [0.539, 0.539]], rtol=1e-6)
    scattered = mixtrain.jit(array_ops.MaskedScatter())(Tensor([1.0, 2.0]), Tensor([False, True]), Tensor([5.0]))
    assert scattered.asnumpy().tolist() == [1, 5]
