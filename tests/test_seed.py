"""The state of the process's random streams: what a checkpoint holds of it, and what restoring costs."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn, seed


@pytest.fixture(autouse=True)
def _as_before() -> Any:
    yield
    mixtrain.set_seed(0)


def test_streams_that_nobody_has_asked_for_are_restored_when_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    mixtrain.set_seed(3)
    state = seed.seed_state()
    drawing = [[f"operation{number}", 0, [number, 2]] for number in range(50)]
    made: list[Any] = []
    own = keras.random.SeedGenerator
    monkeypatch.setattr(keras.random, "SeedGenerator", lambda **options: made.append(1) or own(**options))
    seed.restore_seed_state({**state, "drawing": drawing})
    assert not made, "a file with many entries makes no variables"
    assert backend.to_numpy(seed.stream_of("operation7").state).tolist() == [7, 2]
    assert {tuple(map(str, entry)) for entry in drawing} <= {tuple(map(str, e)) for e in seed.seed_state()["drawing"]}
    mixtrain.set_seed(3)
    assert not np.array_equal(backend.to_numpy(seed.stream_of("operation8").state), [8, 2]), "a new seed begins anew"


def test_an_operation_with_a_seed_of_its_own_draws_the_same_in_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed._Streams, "seed", None)
    assert seed._first_seed("normal", 5) == seed._first_seed("normal", 5) != seed._first_seed("normal", 6)
    assert len({seed._first_seed("normal", 0) for _ in range(8)}) > 1


def test_streams_of_an_object_are_forgotten_with_it_and_begin_again() -> None:
    class Drawing:
        pass

    def drawn(owner: Drawing) -> list[float]:
        with seed.drawing_as(owner, "Drawing[3]"):
            return [float(keras.random.uniform((), seed=seed.stream_of("draw", 3))) for _ in range(2)]

    first, second = Drawing(), Drawing()
    numbers = drawn(first)
    assert drawn(second) == numbers != drawn(first)
    count = len(seed.stream_states())
    del first, second
    assert len(seed.stream_states()) == count - 2
    assert drawn(Drawing()) == numbers


@pytest.mark.parametrize(
    ("create", "drawn"),
    [
        (lambda: nn.Dense(2, 2), 0.4384092314408935),
        (lambda: (nn.Conv2d(2, 2, 1, has_bias=True), nn.Embedding(2, 2), nn.BatchNorm2d(2)), 0.7234651778309412),
        (lambda: nn.GRU(2, 3, 2, bidirectional=True), 0.1957743293224542),
    ],
    ids=["Dense", "Conv2d, Embedding, BatchNorm2d", "GRU"],
)
def test_initial_values_take_from_numpys_generator_what_mindspores_take(create: Any, drawn: float) -> None:
    np.random.seed(7)
    create()
    assert np.random.rand() == drawn  # Recorded from MindSpore 2.10.


def test_recurrent_layers_begin_with_mindspores_values_of_the_same_seed() -> None:
    mixtrain.set_seed(7)
    weight = nn.LSTM(1, 1).trainable_params()[0].asnumpy().ravel().tolist()
    # Recorded from MindSpore 2.10.
    assert weight == [-0.847383439540863, 0.5598375797271729, -0.1231815367937088, 0.4469303488731384]


def test_numpys_seed_alone_makes_initial_values_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed._Streams, "seed", None)
    weights = []
    for _ in range(2):
        np.random.seed(3)
        weights.append(nn.Dense(2, 2).weight.asnumpy())
    assert (weights[0] == weights[1]).all()
    assert (nn.Dense(2, 2).weight.asnumpy() != weights[0]).any()
