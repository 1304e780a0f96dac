"""The state of the process's random streams: what a checkpoint holds of it, and what restoring costs."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, seed


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
