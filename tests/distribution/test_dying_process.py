"""A process that dies ends the other in time, with a sentence that names it; started again, the run is undisturbed."""

from __future__ import annotations

import os
import pathlib
import random
import time

import numpy as np
import pytest

from tests.backends import ON_TENSORFLOW
from tests.distribution.dying_process import EPOCHS, STEPS
from tests.distribution.test_processes import both, equal

pytestmark = pytest.mark.slow

SECONDS = 30
KILLS = int(os.environ.get("MIXTRAIN_KILLS", "1"))


def run(folder: pathlib.Path, *more: str) -> tuple[list[int], list[str], float]:
    """Run both; return how they ended, what they said, and how long the last one lived after the last step."""
    codes, texts = both("tests.distribution.dying_process", folder, *more)
    ended = time.time()
    steps = [float(line.split()[2]) for text in texts for line in text.splitlines() if line.startswith("step ")]
    assert steps, "\n".join(text[-3000:] for text in texts)
    return codes, texts, ended - max(steps)


def finals(folder: pathlib.Path, rank: int) -> list[np.ndarray]:
    return list(np.load(folder / f"{rank}.npz").values())


# Keras divides weights with JAX alone.
WAYS = ["replicas"] if ON_TENSORFLOW else ["replicas", "mesh"]


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How the two train together."""
    return str(request.param)


@pytest.fixture(scope="module")
def undisturbed(way: str, tmp_path_factory: pytest.TempPathFactory) -> list[np.ndarray]:
    folder = tmp_path_factory.mktemp("undisturbed")
    codes, texts, _ = run(folder, way)
    assert codes == [0, 0], "\n".join(text[-3000:] for text in texts)
    return finals(folder, 0)


@pytest.mark.parametrize("kill", range(KILLS))
def test_the_other_process_ends_and_the_run_goes_on(
    kill: int, tmp_path: pathlib.Path, way: str, undisturbed: list[np.ndarray]
) -> None:
    draw = random.Random(kill)
    dying, step, milliseconds = (kill + 1) % 2, draw.randrange(4, EPOCHS * STEPS - 5), draw.randrange(5)
    codes, texts, seconds = run(tmp_path, way, str(dying), str(step), str(milliseconds))
    said = f"the process of rank {dying} has ended, and this one ends with it. Write resume=... in train"
    assert codes[dying] == -9 and codes[1 - dying] != 0 and said in texts[1 - dying], texts[1 - dying][-3000:]
    assert seconds < SECONDS
    codes, texts, _ = run(tmp_path, way)
    assert codes == [0, 0], "\n".join(text[-3000:] for text in texts)
    for rank in (0, 1):
        result = finals(tmp_path, rank)
        assert all(equal(one, other) for one, other in zip(result, undisturbed, strict=True))
