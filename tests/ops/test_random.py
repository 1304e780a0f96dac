"""Random operations: repeatable under a seed, drawn anew in compiled functions, of the right range and format."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, ops
from mixtrain.seed import restore_seed_state, seed_state
from tests.backends import held_as, quick_every

X = mixtrain.Tensor(np.ones((4, 5), np.float32))
DRAWS: dict[str, Callable[[], Any]] = {
    "uniform": lambda: ops.uniform((4, 5), mixtrain.Tensor(1.0), mixtrain.Tensor(2.0), seed=5),
    "normal": lambda: ops.normal((4, 5), 1.0, 2.0), "standard_normal": lambda: ops.standard_normal((4, 5), 3),
    "rand": lambda: ops.rand(4, 5), "randn": lambda: ops.randn((4, 5)), "randint": lambda: ops.randint(0, 99, (4, 5)),
    "rand_like": lambda: ops.rand_like(X), "randn_like": lambda: ops.randn_like(X, seed=4),
    "randperm": lambda: ops.randperm(20), "bernoulli": lambda: ops.bernoulli(X, 0.5),
    "dropout": lambda: ops.dropout(X, 0.5, seed=1), "dropout2d": lambda: ops.dropout2d(X, 0.5),
    "Dropout": lambda: ops.Dropout(0.5)(X)[0], "UniformReal": lambda: ops.UniformReal()((4, 5)),
    "StandardNormal": lambda: ops.StandardNormal()((4, 5)),
    "UniformInt": lambda: ops.UniformInt()((4, 5), mixtrain.Tensor(1), mixtrain.Tensor(90)),
}


@quick_every(3)
@pytest.mark.parametrize("name", DRAWS)
def test_draws_differ_and_repeat_under_a_seed(name: str) -> None:
    result = []
    for _ in range(2):
        mixtrain.set_seed(7)
        result.append([backend.to_numpy(DRAWS[name]()).tolist() for _ in range(3)])
    assert result[0] == result[1]
    assert result[0][0] != result[0][1] or result[0][1] != result[0][2]


def test_two_seeds_two_operations_and_two_process_seeds_draw_differently() -> None:
    draws = [
        lambda: ops.rand(9), lambda: ops.rand(9, seed=1), lambda: ops.rand(9, seed=2), lambda: ops.UniformReal()((9,))
    ]
    rows = []
    for seed in (0, 1):
        mixtrain.set_seed(seed)
        rows += [tuple(backend.to_numpy(draw()).tolist()) for draw in draws]
    assert len(set(rows)) == len(rows)


def test_streams_go_on_from_a_state() -> None:
    ops.rand(3)
    state = seed_state()
    expected = backend.to_numpy(ops.rand(3)).tolist()
    ops.rand(3)
    restore_seed_state(state)
    assert backend.to_numpy(ops.rand(3)).tolist() == expected


def test_ranges_and_formats() -> None:
    drawn = backend.to_numpy(ops.uniform((1000,), mixtrain.Tensor(1, mixtrain.int32), 4, dtype=mixtrain.int32))
    assert (drawn.dtype.name, sorted(set(drawn.tolist()))) == ("int32", [1, 2, 3])
    assert sorted(set(backend.to_numpy(ops.randint(-1, 2, (1000,))).tolist())) == [-1, 0, 1]
    assert ops.randint(0, 2, (1,)).dtype.name == held_as("int64")
    assert ops.randint(0, 2, (1,), dtype=mixtrain.int32).dtype.name == "int32"
    assert ops.rand(2, dtype=mixtrain.float16).dtype.name == "float16"
    assert sorted(backend.to_numpy(ops.randperm(6)).tolist()) == list(range(6))
    assert (tuple(ops.rand().shape), tuple(ops.randn(2, 3).shape)) == ((1,), (2, 3))
    wide = ops.uniform((3, 1, 2), mixtrain.Tensor([[3.0, 4.0], [5.0, 6.0]]), mixtrain.Tensor([8.0, 9.0]))
    assert tuple(wide.shape) == (3, 2, 2)
    values = backend.to_numpy(ops.normal((20_000,), 3.0, 2.0))
    assert (values.mean(), values.std()) == pytest.approx((3.0, 2.0), abs=0.05)


def test_dropout_scales_what_it_keeps_and_drops_alike_in_both_layouts() -> None:
    kept, mask = map(backend.to_numpy, ops.Dropout(0.25)(ops.ones((100, 100))))
    assert set(kept.flat) == {0.0, 4.0} and kept.mean() == pytest.approx(1.0, abs=0.1)
    assert (mask * 4 == kept).all()
    channels = backend.to_numpy(ops.dropout2d(ops.ones((50, 4, 2, 2)), 0.5))
    assert (channels == channels[:, :, :1, :1]).all() and set(channels.flat) == {0.0, 2.0}
    assert backend.to_numpy(ops.dropout(X, 1.0)).sum() == 0
    assert (ops.dropout(X, 0.0) == X).all() and (ops.dropout(X, 0.5, False) == X).all()


def test_dropout_drops_the_same_on_a_channels_last_view() -> None:
    def run(x: Any) -> Any:
        return ops.dropout(ops.relu(ops.MaxPool(1, 1)(x)), 0.5)

    result = []
    for function in (run, mixtrain.jit(run)):
        mixtrain.set_seed(3)
        result.append(backend.to_numpy(function(ops.ones((2, 3, 4, 5)))).tolist())
    assert result[0] == result[1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.randint(5, 5, (1,)), ValueError, "ops.randint: high must be at least 6"),
        (lambda: ops.randint(0, 5, (1,), dtype=mixtrain.float32), ValueError, "dtype must be an int format"),
        (lambda: ops.rand_like(mixtrain.Tensor([1])), ValueError, "ops.rand_like: dtype must be a float format"),
        (lambda: ops.rand(2, seed=-1), ValueError, "seed must be at least 0"),
        (lambda: ops.rand("a"), TypeError, "size must be a tuple of ints"),
        (lambda: ops.UniformReal("a"), TypeError, "UniformReal: seed must be an int"),
        (lambda: ops.dropout(X, 1.5), ValueError, "ops.dropout: p must be at most 1"),
        (lambda: ops.Dropout(0.0), ValueError, "Dropout: keep_prob must be greater than 0"),
        (lambda: ops.dropout2d(mixtrain.Tensor([1.0])), ValueError, "ops.dropout2d: input must have axes"),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


WEIGHTS = mixtrain.Tensor([0.0, 9.0, 4.0, 1.0])
MOMENTS: dict[str, tuple[Callable[[], Any], float, float]] = {
    "laplace": (lambda: ops.laplace((4000,), 1.0, 2.0), 1.0, 8**0.5),
    "random_gamma": (lambda: ops.random_gamma((4000,), mixtrain.Tensor(3.0)), 3.0, 3**0.5),
    "random_poisson": (lambda: ops.random_poisson((4000,), mixtrain.Tensor(5.0)), 5.0, 5**0.5),
    "randint_like": (lambda: ops.randint_like(ops.zeros(4000), 0, 3), 1.0, (2 / 3) ** 0.5),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_distributions_have_their_means_and_deviations_and_repeat_under_a_seed(name: str) -> None:
    draw, mean, deviation = MOMENTS[name]
    mixtrain.set_seed(3)
    result, again = backend.to_numpy(draw()), backend.to_numpy(draw())
    np.testing.assert_allclose([result.mean(), result.std()], [mean, deviation], rtol=0.1)
    mixtrain.set_seed(3)
    assert (backend.to_numpy(draw()) == result).all()
    assert (result != again).any()


def test_classes_are_drawn_by_their_weights() -> None:
    mixtrain.set_seed(3)
    counts = np.bincount(backend.to_numpy(ops.multinomial(WEIGHTS, 4000)), minlength=4)
    np.testing.assert_allclose(counts / 4000, [0, 9 / 14, 4 / 14, 1 / 14], atol=0.03)
    rows = [sorted(backend.to_numpy(ops.multinomial(WEIGHTS, 3, replacement=False)).tolist()) for _ in range(5)]
    assert rows == [[1, 2, 3]] * 5
    places, held = ops.choice_with_mask(mixtrain.Tensor([[True, False], [False, True]]), 3)
    assert sorted(map(tuple, backend.to_numpy(places)[backend.to_numpy(held)].tolist())) == [(0, 0), (1, 1)]
    assert ops.gumbel_softmax(ops.zeros((3, 4)), 1.0, True).asnumpy().sum(1).tolist() == [1.0, 1.0, 1.0]
    assert sorted(ops.shuffle(mixtrain.Tensor([3, 1, 2])).asnumpy().tolist()) == [1, 2, 3]


def test_candidates_say_how_often_they_were_to_be_expected() -> None:
    mixtrain.set_seed(3)
    # Tried until three of four classes were seen: each of them then with the chance of so many tries.
    drawn, true, expected = ops.UniformCandidateSampler(1, 3, True, 4)(mixtrain.Tensor([[0], [3]]))
    assert len(set(drawn.asnumpy().tolist())) == 3
    tries = np.log(1 - true.asnumpy()[0, 0]) / np.log(0.75)
    assert abs(tries - round(float(tries))) < 1e-3 and tries > 2.9
    np.testing.assert_allclose(expected.asnumpy(), true.asnumpy()[0, 0], rtol=1e-6)
    _, true, _ = ops.LogUniformCandidateSampler(1, 10, False, 4)(mixtrain.Tensor([[0], [3]]))
    np.testing.assert_allclose(true.asnumpy()[:, 0], 10 * np.log([2, 5 / 4]) / np.log(5), rtol=1e-5)


def test_a_generator_s_numbers_repeat_from_its_seed_and_state() -> None:
    x, generator = ops.zeros((3, 2)), mixtrain.Generator()
    draws = []
    for _ in range(2):
        generator.manual_seed(5)
        fill = ops.function.random_func.uniform_ if draws else mixtrain.Tensor.uniform_
        draws.append([fill(x, 1.0, 2.0, generator=generator).asnumpy().tolist() for _ in range(2)])
    assert ops.random_(x, 3, 4) is x and x.asnumpy().tolist() == [[3.0, 3.0]] * 3
    with pytest.raises(TypeError, match="ops.normal_: input must be a UserTensor"):
        ops.normal_(np.zeros(2))
    assert draws[0] == draws[1] and draws[0][0] != draws[0][1]
    state, process = generator.get_state(), mixtrain.get_rng_state()
    later = [x.normal_(generator=generator).asnumpy().tolist(), ops.rand(2).asnumpy().tolist()]
    generator.seed()
    generator.set_state(state)
    mixtrain.set_rng_state(process)
    assert [x.normal_(generator=generator).asnumpy().tolist(), ops.rand(2).asnumpy().tolist()] == later
    assert generator.initial_seed() == 5


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (lambda: ops.StandardNormal(10, 10), ((8,),)),
        (lambda: ops.UniformReal(seed=10), ((8,),)),
        (lambda: ops.Dropout(0.5, 3, 3), (np.ones(64, np.float32),)),
        (lambda: ops.Multinomial(3), (np.ones(50, np.float32), 8)),
        (lambda: ops.RandomShuffle(7), (np.arange(30, dtype=np.float32),)),
        (lambda: ops.RandomCategorical(), (np.zeros((1, 30), np.float32), 9, 3)),
        (lambda: ops.LogUniformCandidateSampler(1, 9, False, 30, 3), (np.ones((1, 1), np.int64),)),
    ],
)
def test_primitives_of_one_seed_draw_the_same_whatever_the_process_s_seed(make: Any, arguments: Any) -> None:
    def drawn(primitive: Any) -> list[float]:
        result = primitive(*(mixtrain.Tensor(value) if isinstance(value, np.ndarray) else value for value in arguments))
        return np.asarray((result[0] if isinstance(result, tuple) else result).asnumpy()).tolist()

    mixtrain.set_seed(1)
    one, other = make(), make()
    first, second = drawn(one), drawn(one)
    assert first != second and [drawn(other), drawn(other)] == [first, second]
    mixtrain.set_seed(2)
    assert drawn(make()) == first
    third, other_third = drawn(one), drawn(other)
    assert third == other_third not in (first, second)
    assert drawn(copy.deepcopy(one)) == first


@pytest.mark.parametrize(("function", "arguments"), [
    (ops.random_categorical, (np.zeros((1, 30), np.float32), 9)), (ops.bernoulli, (np.zeros(64, np.float32),)),
    (ops.log_uniform_candidate_sampler, (np.ones((1, 1), np.int64), 1, 9, False, 30)),
    (ops.uniform_candidate_sampler, (np.ones((1, 1), np.int64), 1, 9, False, 30)),
])
def test_each_call_of_these_functions_begins_where_its_seed_says(function: Any, arguments: Any) -> None:
    def drawn(seed: int) -> list[Any]:
        result = function(mixtrain.Tensor(arguments[0]), *arguments[1:], seed=seed)
        return np.asarray((result[0] if isinstance(result, tuple) else result).asnumpy()).tolist()

    assert drawn(3) == drawn(3) != drawn(4)
    assert drawn(0) != drawn(0)
