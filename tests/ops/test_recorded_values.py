"""Values of operations at edges where the libraries below differ from MindSpore 2.10, as recorded there."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops
from mixtrain.backend import EAGER_COMPILES

MATRIX = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(("k", "expected"), [
    (1, [[3, 6], [2, 5], [1, 4]]), (2, [[6, 5, 4], [3, 2, 1]]), (-2, [[6, 5, 4], [3, 2, 1]]),
    (3, [[4, 1], [5, 2], [6, 3]]), (4, [[1, 2, 3], [4, 5, 6]]),
])
def test_matrices_that_are_not_square_are_rotated(k: int, expected: Any) -> None:
    assert ops.rot90(Tensor(MATRIX), k, (0, 1)).asnumpy().tolist() == expected
    assert mixtrain.numpy.rot90(MATRIX, k).asnumpy().tolist() == expected


@pytest.mark.parametrize("order", ["fro", "nuc", np.inf, 1, 2, -2])
@pytest.mark.parametrize(("axis", "shape"), [((-2, -1), (3, 1, 1)), ((0, 2), (1, 2, 1)), ((1, 0), (1, 1, 2))])
def test_the_norm_of_matrices_keeps_its_axes(order: Any, axis: tuple[int, int], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((3, 2, 2)).astype(np.float32)
    result = ops.matrix_norm(Tensor(x), order, axis, keepdims=True)
    assert tuple(result.shape) == shape
    expected = np.linalg.norm(x.astype(np.float64), order, axis, keepdims=True)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)


def test_nan_is_left_out_before_a_sum_becomes_whole() -> None:
    x = Tensor(np.array([[np.nan, 128.1, -np.nan], [np.nan, np.nan, -128.9]], np.float32))
    assert ops.nansum(x, 0, dtype=mixtrain.int32).asnumpy().tolist() == [0, 128, -128]


def test_nan_has_the_sign_0() -> None:
    assert ops.sign(Tensor([np.nan, -2.0, 0.0, 3.0])).asnumpy().tolist() == [0, -1, 0, 1]
    assert ops.sign(Tensor([-2, 3])).asnumpy().tolist() == [-1, 1]


def test_adjoints_of_complex_matrices_are_conjugated() -> None:
    x = np.array([[1 + 2j, 3 - 1j], [2j, 1 - 1j]], np.complex64)
    right = np.array([[1.0 + 1j], [2.0]], np.complex64)
    np.testing.assert_allclose(Tensor(x).H.asnumpy(), x.conj().T)
    solved = ops.matrix_solve(Tensor(x), Tensor(right), adjoint=True).asnumpy()
    np.testing.assert_allclose(solved, np.linalg.solve(x.conj().T, right), rtol=1e-4)
    inverse = ops.MatrixInverse(adjoint=True)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(inverse, np.linalg.inv(x.conj().T), rtol=1e-4)


def test_products_of_integers_have_their_dtype() -> None:
    small = ops.matmul(Tensor(np.full((1, 2), 30, np.int8)), Tensor(np.full((2, 1), 15, np.int8)))
    assert (small.dtype, small.asnumpy().tolist()) == (mixtrain.int8, [[-124]])
    if not EAGER_COMPILES:  # JAX has no 64 bits here.
        large = ops.matmul(Tensor(np.array([[2**40]], np.uint64)), Tensor(np.array([[1]], np.uint64)))
        assert (large.dtype, large.asnumpy().tolist()) == (mixtrain.uint64, [[2**40]])


def test_binary_cross_entropy_of_sure_probabilities_is_finite_in_compiled_functions() -> None:
    # Compilers turn (1 - x) + 1e-12 into (1 + 1e-12) - x, which is 0.
    loss = ops.BinaryCrossEntropy(reduction="none")
    x, y = Tensor(np.float32([16, 20, 20, 20])), Tensor(np.float32([0, 0, 1, 0.5]))

    def of_logits(x: Any, y: Any) -> Any:
        return loss(ops.sigmoid(x), y, None)

    def of_rest(x: Any, y: Any) -> Any:
        return loss(1 - ops.sigmoid(x), 1 - y, None)

    for function in (of_logits, of_rest):
        for run in (function, mixtrain.jit(function)):
            np.testing.assert_allclose(run(x, y).asnumpy(), [15.942384, 27.631021, 0, 13.815511], atol=2e-5)
    gradients = mixtrain.jit(ops.GradOperation()(of_logits))(x, y).asnumpy()
    np.testing.assert_allclose(gradients, [1, 0, 0, 0], atol=1e-6)


def test_small_binary_cross_entropies_of_logits_keep_their_digits() -> None:
    x = np.float32([-11.46, -30, 30, 17])
    function = functools.partial(ops.binary_cross_entropy_with_logits, reduction="none")
    for loss in (nn.BCEWithLogitsLoss("none"), function):
        for label in (0.0, 1.0):
            y, wide = Tensor(np.full(4, label, np.float32)), x.astype(np.float64) * (1 - 2 * label)
            np.testing.assert_allclose(loss(Tensor(x), y).asnumpy(), np.log1p(np.exp(wide)), rtol=1e-5)
            gradient = ops.GradOperation()(lambda x, y, loss=loss: loss(x, y).sum())(Tensor(x), y).asnumpy()
            np.testing.assert_allclose(gradient * (1 - 2 * label), 1 / (1 + np.exp(-wide)), rtol=2e-5)


@pytest.mark.parametrize(
    ("labels", "expected"), [([1, 2, 3], 23.563782), ([1, 2, 3, 6, 6, 6], 23.563782), ([1, 2, 9], 20.99791)]
)
def test_labels_from_the_blank_on_fill_up_a_target(labels: list[int], expected: float) -> None:
    x = (np.random.default_rng(0).standard_normal((12, 1, 7)) * 2).astype(np.float32)
    indices = np.array([[0, place] for place in range(len(labels))], np.int64)
    losses, _ = ops.CTCLoss()(Tensor(x), Tensor(indices), Tensor(np.array(labels, np.int32)), Tensor(np.int32([12])))
    assert losses.asnumpy().tolist() == pytest.approx([expected], rel=1e-5)


@pytest.mark.parametrize(("name", "expected"), [
    ("imag", 1j), ("real", 1), ("abs", 0.955779 + 0.29408586j), ("angle", -0.21621624 + 0.7027027j),
])
def test_gradients_by_complex_numbers_are_those_of_the_reference(name: str, expected: complex) -> None:
    gradient = mixtrain.grad(lambda x: getattr(ops, name)(x))(Tensor(np.array([1.3 + 0.4j], np.complex64)))
    assert gradient.dtype == mixtrain.complex64
    np.testing.assert_allclose(gradient.asnumpy(), [expected], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "import mixtrain.dataset as ds; x = [row for row in ds.NumpySlicesDataset([[1.5, 2.5]], shuffle=False)][0][0]",
        "from mixtrain import ops; x = ops.ones((2,)) * 1.5",
        "import mixtrain.ops.operations as P; x = P.StandardNormal(1, 2)((2,))",
        "import mixtrain.numpy as mnp; x = mnp.ones(2)",
        "from mixtrain.common import initializer as i; x = i.initializer(1, (2,))",
    ],
)
def test_the_first_result_of_a_script_is_a_tensor(script: str) -> None:
    code = f"{script}\nprint(type(x).__module__, x.asnumpy().shape)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "mixtrain.common.tensor (2,)\n"


def test_parameters_of_one_name_in_a_tuple_are_refused() -> None:
    cell = nn.Cell()
    with pytest.raises(ValueError, match="ParameterTuple: its Parameters must have different names; got 'w, w'"):
        mixtrain.ParameterTuple([mixtrain.Parameter(1.0, name="w"), mixtrain.Parameter(2.0, name="w")])
    one = mixtrain.Parameter(1.0, name="w")
    cell.twice = mixtrain.ParameterTuple([one, one])
    assert [parameter.name for parameter in cell.trainable_params()] == ["w"]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2)])
def test_diag_has_twice_the_axes_of_its_input(shape: tuple[int, ...]) -> None:
    x = np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    for result in (ops.diag(Tensor(x)), ops.Diag()(Tensor(x)), Tensor(x).diag()):
        assert result.asnumpy().tolist() == np.diag(x.ravel()).reshape(shape * 2).tolist()
    assert mixtrain.grad(ops.diag)(Tensor(x)).asnumpy().tolist() == np.ones(shape).tolist()


def test_numpy_transposes_a_tensor() -> None:
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert np.transpose(x).tolist() == x.transpose(None).tolist() == [[1, 4], [2, 5], [3, 6]]
    with pytest.raises(TypeError, match=r"dims must be a tuple of ints; got NoneType None. Write dims=\(1, 0\)"):
        ops.transpose(x, None)


@pytest.mark.parametrize("dtype", [mixtrain.int32, mixtrain.int8, mixtrain.int64])
def test_inverses_and_sums_of_integers_are_integers(dtype: Any) -> None:
    x = Tensor([-100, -1, 1, 2], dtype)
    stored = x.dtype  # JAX has int32 for int64.
    for result, expected in ((ops.inv(x), [0, -1, 1, 0]), (ops.Inv()(x), [0, -1, 1, 0]), (ops.nansum(x), -98)):
        assert (result.dtype, result.asnumpy().tolist()) == (stored, expected)
    assert ops.nanmedian(x)[0].dtype == stored and ops.reciprocal(x).dtype == mixtrain.float32


def test_the_dot_product_of_complex_vectors_conjugates_the_first() -> None:
    x = Tensor(np.array([1 + 2j, 3 + 4j], np.complex64))
    assert complex(ops.vecdot(x, x * x).asnumpy()) == 80 + 110j


def test_vectors_must_be_as_many_as_inputs() -> None:
    x = Tensor([1.0])
    with pytest.raises(ValueError, match="jvp: v must have 2 vectors, one an input; got 1"):
        ops.jvp(lambda a, b: a * b, (x, x), x)


def test_moving_statistics_move_once_however_often_vjp_differentiates() -> None:
    norm = nn.BatchNorm1d(2, momentum=0.9)
    norm.set_train()
    x = Tensor([[1.0, 2.0], [3.0, 5.0]])
    _, vjp_fn = mixtrain.vjp(norm, x)
    once = norm.moving_mean.asnumpy().copy()
    for _ in range(3):
        vjp_fn((x,))
    np.testing.assert_array_equal(norm.moving_mean.asnumpy(), once)
    np.testing.assert_allclose(once, [0.2, 0.35], rtol=1e-6)


@pytest.mark.parametrize("how", ["sum", "max", "min", "prod"])
def test_a_segment_that_does_not_exist_is_refused(how: str) -> None:
    function = getattr(ops, f"unsorted_segment_{how}")
    with pytest.raises(ValueError, match=f"ops.unsorted_segment_{how}: each segment id must be from .* to 1; got 5"):
        function(Tensor([1.0, 2.0]), Tensor([0, 5]), 2)
    assert function(Tensor([1.0, 2.0]), Tensor([-1, 0]), 2).asnumpy()[0] == 2.0


def test_a_target_that_is_no_class_is_refused_where_it_counts() -> None:
    logs = Tensor(np.log(np.full((6, 1, 4), 0.25, np.float32)))
    loss = nn.CTCLoss(blank=0, reduction="none")
    with pytest.raises(ValueError, match="ops.ctc_loss: each target must be from 0 to 3; got 5"):
        loss(logs, Tensor([[1, 5]]), Tensor([6]), Tensor([2]))
    assert float(loss(logs, Tensor([[1, 3]]), Tensor([6]), Tensor([2]))[0]) == pytest.approx(4.06927)
    assert np.isfinite(loss(logs, Tensor([[1, 99]]), Tensor([6]), Tensor([1])).asnumpy()).all()


def test_the_gradient_of_a_dict_of_outputs_is_a_dict() -> None:
    squares = ops.GradOperation(sens_param=True)(lambda x: {"a": x * x, "b": 3 * x})
    assert squares(Tensor([2.0]), {"a": Tensor([3.0]), "b": Tensor([10.0])}).asnumpy().tolist() == [42.0]
    single = ops.GradOperation(sens_param=True)(lambda x: (x * x,))
    assert single(Tensor([2.0]), (Tensor([3.0]),)).asnumpy().tolist() == [12.0]


def test_the_hook_of_a_parameter_that_nothing_depends_on_sees_zeros() -> None:
    used, unused = mixtrain.Parameter([2.0], name="used"), mixtrain.Parameter([3.0], name="unused")
    seen: list[list[float]] = []
    for parameter in (used, unused):
        parameter.register_hook(lambda gradient: seen.append(gradient.asnumpy().tolist()))
    mixtrain.grad(lambda x: x * used, None, [used, unused])(Tensor([5.0]))
    assert seen == [[5.0], [0.0]]


def test_parts_of_complex_tensors_by_their_methods() -> None:
    x = Tensor(np.array([1.5 + 0.5j], np.complex64))
    assert (x.real().dtype, x.real().asnumpy().tolist()) == (mixtrain.float32, [1.5])
    assert x.imag().asnumpy().tolist() == [0.5] and x.conj().asnumpy().tolist() == [1.5 - 0.5j]
    assert Tensor([2.0]).real().asnumpy().tolist() == Tensor([2.0]).conj().asnumpy().tolist() == [2.0]


@pytest.mark.parametrize("power", [3, 20, 90])
def test_norms_of_high_powers_neither_vanish_nor_overflow(power: int) -> None:
    x = np.array([[0.338541, 5.0, 0.0], [-0.132092, -1.0, 0.0], [0.0, 100.0, 0.0]])
    expected = [np.linalg.norm(column, power) for column in x.T]
    columns = Tensor(x, mixtrain.float32)
    for norms in (ops.norm(columns, power, 0), ops.LpNorm(axis=0, p=power)(columns)):
        np.testing.assert_allclose(norms.asnumpy(), expected, rtol=1e-5, atol=1e-11)
    gradient = mixtrain.grad(lambda at: ops.norm(at, power, 0))(Tensor(x[:, :2], mixtrain.float32)).asnumpy()
    np.testing.assert_allclose(gradient[[0, 2], [0, 1]], [(abs(x[0, 0]) / expected[0]) ** (power - 1), 1.0], rtol=1e-3)


def test_a_negative_padding_is_cropped_before_the_rest_goes_around() -> None:
    x = Tensor(np.arange(9.0, dtype=np.float32).reshape(1, 1, 3, 3))
    padded = ops.pad(x, (1, -1, 1, 2), mode="circular").asnumpy()[0, 0]
    assert padded.tolist() == [[7, 6, 7], [1, 0, 1], [4, 3, 4], [7, 6, 7], [1, 0, 1], [4, 3, 4]]


def test_a_mapped_function_writes_to_the_parameters_that_it_maps_over() -> None:
    weight, mean, square = (mixtrain.Parameter(np.ones((2, 3), np.float32), name=name) for name in "wms")

    def step(w: Any, m: Any, s: Any, g: Any) -> Any:
        return ops.Adam()(w, m, s, 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, g)

    mixtrain.vmap(step, (0, 0, 0, 0), 0)(weight, mean, square, Tensor(np.ones((2, 3), np.float32)))
    np.testing.assert_allclose(weight.asnumpy(), np.full((2, 3), 0.9683774), rtol=1e-6)
    with pytest.raises(ValueError, match="vmap: a function may write to what it maps over"):
        mixtrain.vmap(lambda w, g: ops.assign_add(w, g), (None, 0), 0)(weight, Tensor(np.ones((2, 2, 3), np.float32)))


@pytest.mark.parametrize("dtype", [mixtrain.int8, mixtrain.int32, mixtrain.uint8])
def test_integers_are_divided_in_place_towards_zero(dtype: Any) -> None:
    first = 8 if dtype == mixtrain.uint8 else -8
    x = mixtrain.Parameter(Tensor([first, 9, 10], dtype), name="x")
    ops.ScatterDiv()(x, Tensor([0, 1], mixtrain.int32), Tensor([3, 2], dtype))
    assert (x.dtype, x.asnumpy().tolist()) == (dtype, [2 if first > 0 else -2, 4, 10])


def test_whole_numbers_between_fractions() -> None:
    assert ops.arange(10.0, dtype=mixtrain.int32).asnumpy().tolist() == list(range(10))
    assert ops.arange(0.5, 4, dtype=mixtrain.int32).asnumpy().tolist() == [0, 1, 2, 3]
    assert ops.arange(0, 1, 0.25).asnumpy().tolist() == [0, 0.25, 0.5, 0.75]


def test_arguments_and_methods_that_mindspore_has() -> None:
    x = Tensor(np.ones((3, 4, 5), np.float32))
    assert ops.swapdims(x, dim0=0, dim1=2).shape == x.swapdims(dim0=0, dim1=2).shape == (5, 4, 3)
    one = Tensor(np.ones(4, np.float32))
    assert ops.BatchNorm()(input_x=x, scale=one, bias=one, mean=one, variance=one)[0].shape == (3, 4, 5)
    square = Tensor([[4.0, 1.0], [1.0, 3.0]])
    for name in ("igamma", "igammac"):
        by_method, by_function = getattr(square, name)(square), getattr(ops, name)(square, square)
        assert by_method.asnumpy().tolist() == by_function.asnumpy().tolist()
    assert square.nanmedian()[0].asnumpy().tolist() == [1.0, 1.0] and len(square.geqrf()) == 2
