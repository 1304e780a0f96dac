"""Generators: streams of a script's own, drawn from eagerly, compiled and in a training step."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import mixtrain
from mixtrain import Generator, Tensor, mint, nn, ops
from mixtrain.common.generator import default_generator

_X = np.zeros(4, np.float32)


def _draws(draw: Callable[[Tensor], Tensor], count: int = 3) -> list[list[float]]:
    return [draw(Tensor(_X)).asnumpy().tolist() for _ in range(count)]


@pytest.mark.parametrize("method", ["uniform", "bernoulli", "normal_", "exponential_", "random_"])
@pytest.mark.parametrize("generator", [Generator(), default_generator], ids=["own", "process"])
def test_compiled_code_draws_what_eager_code_draws_and_new_numbers_in_each_call(
    generator: Generator, method: str
) -> None:
    arguments = (Tensor(0.5),) if method == "bernoulli" else ()

    def draw(x: Tensor) -> Tensor:
        return getattr(x + 0, method)(*arguments, generator=generator)

    drawn = []
    for call in (draw, mixtrain.jit(draw)):
        generator.manual_seed(3)
        drawn.append(_draws(call, 4))
    assert drawn[0] == drawn[1]
    assert len(set(map(tuple, drawn[0]))) > 1


def test_a_state_restores_the_numbers_that_follow() -> None:
    generator = Generator().manual_seed(2**40 + 5)
    _draws(lambda x: x.uniform(generator=generator))
    state = generator.get_state()
    following = _draws(lambda x: x.uniform(generator=generator))
    generator.manual_seed(1)
    generator.set_state(state)
    assert generator.initial_seed() == 2**40 + 5
    assert _draws(lambda x: x.uniform(generator=generator)) == following


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_draws_the_same_numbers_apart_from_the_first(copied: Callable[[Generator], Generator]) -> None:
    first = Generator().manual_seed(7)
    _draws(lambda x: x.uniform(generator=first), 1)
    second = copied(first)
    drawn = _draws(mixtrain.jit(lambda x: x.uniform(generator=second)))
    assert drawn == _draws(mixtrain.jit(lambda x: x.uniform(generator=first)))
    assert copied(default_generator) is default_generator


def test_a_step_returns_the_seed_and_the_numbers_drawn_and_skips_more() -> None:
    generator = Generator().manual_seed(5)
    assert [tuple(map(int, generator._step(step))) for step in (1, Tensor(4), 1)] == [(5, 0), (5, 1), (5, 5)]


def test_the_process_generator_is_that_of_the_seed_functions() -> None:
    assert mixtrain.manual_seed(13) is default_generator
    assert (default_generator.initial_seed(), mixtrain.initial_seed(), mixtrain.get_seed()) == (13, 13, 13)
    state = mixtrain.get_rng_state()
    drawn = ops.rand(3).asnumpy().tolist()
    default_generator.set_state(state)
    assert ops.rand(3).asnumpy().tolist() == drawn


class _Noisy(nn.Cell):
    """A layer and noise from a generator."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.dense, self.generator = nn.Dense(4, 1), generator

    def construct(self, x: Tensor) -> Tensor:
        return self.dense(x) + x[:, :1].uniform(generator=self.generator)


def test_a_compiled_training_step_draws_new_numbers() -> None:
    generator = Generator().manual_seed(3)
    network = _Noisy(generator)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(network, nn.MSELoss()), nn.SGD(network.trainable_params(), learning_rate=0.0)
    )
    x, y = Tensor(np.ones((2, 4), np.float32)), Tensor(np.ones((2, 1), np.float32))
    losses = [float(step(x, y)) for _ in range(3)]
    generator.manual_seed(3)
    assert len(set(losses)) == 3
    assert [float(step(x, y)) for _ in range(3)] == losses


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: mint.rand(5, generator=g), lambda g: mint.randn(5, generator=g),
        lambda g: mint.randperm(50, generator=g),
        lambda g: mint.randint(0, 1000, (5,), generator=g),
        lambda g: mint.multinomial(Tensor(np.ones(50, np.float32)), 5, generator=g),
    ],
)
def test_compiled_functions_of_mint_draw_on_too(draw: Callable[[Generator], Tensor]) -> None:
    generator = Generator().manual_seed(3)
    first, second = (draw(generator).asnumpy().tolist() for _ in range(2))
    generator.manual_seed(3)
    compiled = mixtrain.jit(lambda: draw(generator))
    assert first != second
    assert [compiled().asnumpy().tolist() for _ in range(2)] == [first, second]


def test_what_no_compiled_code_can_hold_and_no_state_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Generator: expected to be made outside compiled code"):
        mixtrain.jit(lambda x: x.uniform(generator=Generator()))(Tensor(_X))
    for state in (Tensor(np.array([1, 2], np.uint8)), 3):
        with pytest.raises(RuntimeError, match="Generator.set_state: state must be one that get_state returned"):
            Generator().set_state(state)
    assert mixtrain.default_generator is default_generator
