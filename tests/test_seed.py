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
