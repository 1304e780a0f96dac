"""BatchNorm gives the reference's numbers, moves its statistics in float32, and refuses what does not fit."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32, float64
from mixtrain.nn.layer import BatchNorm1d, BatchNorm2d, SequentialCell
from mixtrain.ops.parameter_reads import parameters_read_as
from tests.backends import held_as, quick_every
from tests.nn.reference import case

CASES = {"2d": BatchNorm2d, "1d": BatchNorm1d, "1d_rank3": BatchNorm1d}


def numpy_of(value: Any) -> np.ndarray:
    return backend.to_numpy(value)


@quick_every(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_outputs_and_statistics_are_the_references(name: str, mode: str) -> None:
    expected = case(f"batchnorm{name}")
    norm = CASES[name](3)
    norm.gamma.set_data(expected["gamma"])
    norm.beta.set_data(expected["beta"])
    norm.set_train()
    run = norm if mode == "eager" else backend.compile_function(norm, choice=JitChoice(mode == "xla", "test"))
    for step in (1, 2):
        assert np.abs(numpy_of(run(Tensor(expected[f"train_x{step}"]))) - expected[f"train_y{step}"]).max() < 1e-5
        assert np.abs(norm.moving_mean.asnumpy() - expected[f"moving_mean{step}"]).max() < 1e-5
        assert np.abs(norm.moving_variance.asnumpy() - expected[f"moving_variance{step}"]).max() < 1e-5
    norm.set_train(False)
    assert np.abs(numpy_of(norm(Tensor(expected["eval_x"]))) - expected["eval_y"]).max() < 1e-5
    assert np.abs(norm.moving_mean.asnumpy() - expected["moving_mean2"]).max() < 1e-5


def test_parameters_have_the_references_names_and_order() -> None:
    norm = BatchNorm2d(3)
    assert [(p.name, p.requires_grad) for p in norm.get_parameters()] == [
        ("mean", False), ("variance", False), ("gamma", True), ("beta", True),
    ]
    assert [p.name for p in SequentialCell(norm).get_parameters()] == [
        "0.moving_mean", "0.moving_variance", "0.gamma", "0.beta",
    ]


def test_without_affine_gamma_and_beta_are_applied_but_not_learned() -> None:
    norm = BatchNorm1d(1, affine=False, gamma_init=2.0, beta_init=1.0, use_batch_statistics=True)
    assert norm.trainable_params() == []
    assert numpy_of(norm(Tensor([[-1.0], [1.0]]))).ravel() == pytest.approx([-1.0, 3.0], abs=1e-4)


@pytest.mark.parametrize(("use", "training", "moves"), [(None, True, True), (None, False, False), (True, False, True),
                                                        (False, True, False)])
def test_which_statistics_are_used_and_moved(use: bool | None, training: bool, moves: bool) -> None:
    norm = BatchNorm1d(1, use_batch_statistics=use).set_train(training)
    y = numpy_of(norm(Tensor([[2.0], [4.0]])))
    assert norm.moving_mean.asnumpy().tolist() == pytest.approx([0.3 if moves else 0.0])
    assert norm.moving_variance.asnumpy().tolist() == pytest.approx([0.9 + 0.1 * 2 if moves else 1.0])
    assert y.ravel() == pytest.approx([-1.0, 1.0] if moves else [2.0, 4.0], abs=1e-4)


def test_momentum_is_stored_as_the_references_share_of_the_batch() -> None:
    norm = BatchNorm2d(3, momentum=0.75)
    assert norm.momentum == 0.25
    assert "momentum=0.75" in repr(norm)


@pytest.mark.parametrize("mode", ["eager", "xla"])
def test_one_value_for_each_channel_keeps_the_statistics_finite(mode: str) -> None:
    norm = BatchNorm2d(2, beta_init=3.0).set_train()
    run = norm if mode == "eager" else backend.compile_function(norm, choice=JitChoice(True, "test"))
    y = numpy_of(run(Tensor(np.full((1, 2, 1, 1), 5, np.float32))))
    assert y.ravel().tolist() == [3.0, 3.0]
    assert norm.moving_variance.asnumpy() == pytest.approx(0.9)


@pytest.mark.parametrize("half", [float16, bfloat16])
@pytest.mark.parametrize("read_as", [None, "half"])
def test_half_in_half_out_with_statistics_in_float32(half: Any, read_as: str | None) -> None:
    # 1 + 1/1024 is not a bfloat16, and 4096 values of it do not sum up in float16.
    x = np.full((64, 1, 8, 8), 16.0, np.float32)
    x[::2] = 8.0
    norm = BatchNorm2d(1, gamma_init=1.5, beta_init=0.25).set_train()
    norm.moving_mean.set_data(np.float32([1 + 2**-12]))
    with parameters_read_as(half if read_as else None):
        y = norm.construct(Tensor(x, half))
    assert y.dtype == half
    assert numpy_of(y)[:2, 0, 0, 0] == pytest.approx([-1.25, 1.75], abs=1e-2)
    assert norm.moving_mean.asnumpy()[0] == np.float32(np.float32(1 + 2**-12) * np.float32(0.9) + np.float32(1.2))
    assert norm.moving_mean.stored_dtype == float32


def test_float64_comes_back_as_float64() -> None:
    assert BatchNorm1d(2)(Tensor(np.ones((3, 2)), float64)).dtype == held_as(float64)


def test_gradient_is_that_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((4, 3, 2, 2)).astype(np.float32)
    norm = BatchNorm2d(3).set_train()
    x = Tensor(data)
    weights = Tensor(rng.standard_normal(data.shape).astype(np.float32))

    def plain(x: Any) -> tuple[Any, None]:
        mean = keras.ops.mean(x, (0, 2, 3), keepdims=True)
        variance = keras.ops.mean(keras.ops.square(x - mean), (0, 2, 3), keepdims=True)
        return keras.ops.sum((x - mean) / keras.ops.sqrt(variance + 1e-5) * weights), None

    _, _, (expected,) = backend.value_and_gradient(plain, [], [x])
    _, _, (got,) = backend.value_and_gradient(lambda x: (keras.ops.sum(norm(x) * weights), None), [], [x])
    assert np.abs(numpy_of(got) - numpy_of(expected)).max() < 1e-5


def test_wrong_input_names_the_cell_and_the_cure() -> None:
    with pytest.raises(ValueError, match=r"^BatchNorm2d 0: expected 3 channels on axis 1; got 4 .*num_features=4"):
        SequentialCell(BatchNorm2d(3))(Tensor(np.ones((2, 4, 2, 2), np.float32)))
    with pytest.raises(ValueError, match=r"BatchNorm2d: expected 4 axes \(N, C, H, W\); got input shape \(2, 3\)"):
        BatchNorm2d(3)(Tensor(np.ones((2, 3), np.float32)))
    with pytest.raises(ValueError, match="BatchNorm1d: expected 2 or 3 axes"):
        BatchNorm1d(3)(Tensor(np.ones((2, 3, 1, 1), np.float32)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_features": 0}, ValueError, "num_features must be at least 1"),
        ({"num_features": 3.0}, TypeError, "num_features must be an int"),
        ({"momentum": 1.5}, ValueError, "momentum must be at most 1"),
        ({"eps": 0}, ValueError, "eps must be greater than 0"),
        ({"use_batch_statistics": 1}, TypeError, "use_batch_statistics must be True or False"),
    ],
)
def test_bad_argument_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BatchNorm2d(**{"num_features": 3, **arguments})
