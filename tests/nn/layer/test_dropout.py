"""Dropout drops in training only, keeps the mean, and is repeatable under a seed."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16
from mixtrain.nn.layer import Conv2d, Dropout, SequentialCell
from mixtrain.seed import set_seed
from tests.backends import quick_every


def numpy_of(value: Any) -> np.ndarray:
    return backend.to_numpy(value)


def test_outside_training_the_very_input_comes_back() -> None:
    x = Tensor([1.0])
    assert Dropout(p=0.5)(x) is x
    assert Dropout(p=0).set_train()(x) is x
    assert Dropout(keep_prob=1.0).set_train()(x) is x


@pytest.mark.parametrize("shape", [(10000,), (10, 10, 10, 10)])
def test_in_training_elements_are_dropped_or_scaled(shape: tuple[int, ...]) -> None:
    y = numpy_of(Dropout(p=0.2).set_train()(Tensor(np.ones(shape, np.float32))))
    assert set(np.unique(y).tolist()) == {0.0, 1.25}
    assert (y == 0).mean() == pytest.approx(0.2, abs=0.02)


def test_first_argument_is_the_chance_of_keeping() -> None:
    y = numpy_of(Dropout(0.25).set_train()(Tensor(np.ones(10000, np.float32))))
    assert set(np.unique(y).tolist()) == {0.0, 4.0}
    assert (y == 0).mean() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("shape", [(64,), (2, 3, 4, 5)])
def draws(mode: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return what two calls of a fresh cell make of ones."""
    set_seed(7)
    dropout = Dropout(p=0.5).set_train()
    run = dropout if mode == "eager" else backend.compile_function(dropout, choice=JitChoice(mode == "xla", "test"))
    return [numpy_of(run(Tensor(np.ones(shape, np.float32)))) for _ in range(2)]


@quick_every(7)
@pytest.mark.parametrize("shape", [(64,), (2, 3, 4, 5)])
@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_each_call_draws_anew_and_a_seed_repeats_it(shape: tuple[int, ...], mode: str) -> None:
    first, again = draws(mode, shape), draws(mode, shape)
    assert (first[0] != first[1]).any()
    assert all((x == y).all() for x, y in zip(first, again, strict=True))


@pytest.mark.parametrize("shape", [(64,), (2, 3, 4, 5)])
def test_eager_and_graph_draw_the_same(shape: tuple[int, ...]) -> None:
    eager, graph = draws("eager", shape), draws("graph", shape)
    assert all((x == y).all() for x, y in zip(eager, graph, strict=True))


def test_after_a_convolution_compiled_and_eager_drop_the_same_elements() -> None:
    x = Tensor(np.ones((2, 1, 6, 6), np.float32))
    results = []
    for compiled in (False, True):
        set_seed(7)
        net = SequentialCell(Conv2d(1, 4, 3), Dropout(p=0.5)).set_train()
        run = backend.compile_function(net, choice=JitChoice(False, "test")) if compiled else net
        results.append(numpy_of(run(x)))
    assert np.abs(results[0] - results[1]).max() < 1e-6


def test_two_cells_draw_differently() -> None:
    x = Tensor(np.ones(64, np.float32))
    assert (numpy_of(Dropout().set_train()(x)) != numpy_of(Dropout().set_train()(x))).any()


@pytest.mark.parametrize("half", [float16, bfloat16])
def test_format_stays(half: Any) -> None:
    assert Dropout(p=0.3).set_train()(Tensor(np.ones(8), half)).dtype == half


def test_gradient_passes_where_elements_are_kept() -> None:
    x = Tensor(np.ones((2, 3, 4, 4), np.float32))
    dropout = Dropout(p=0.5).set_train()
    y, _, (gradient,) = backend.value_and_gradient(lambda x: (keras.ops.sum(dropout(x)), None), [], [x])
    assert numpy_of(gradient).sum() == float(y)


def test_it_has_no_parameters() -> None:
    assert list(Dropout(p=0.5).get_parameters()) == []


def test_representation_is_the_references() -> None:
    assert (repr(Dropout(p=0.3)), repr(Dropout())) == ("Dropout(p=0.3)", "Dropout(keep_prob=0.5)")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"p": 1.0}, ValueError), ({"p": -0.1}, ValueError), ({"p": "0.5"}, TypeError), ({"keep_prob": 0.0}, ValueError),
     ({"keep_prob": 1.1}, ValueError), ({"keep_prob": True}, TypeError)],
)
def test_bad_argument_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"Dropout: {next(iter(arguments))} must be"):
        Dropout(**arguments)
