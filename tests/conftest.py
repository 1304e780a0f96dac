"""What every test starts from: a seed, the default mode, and no name taken by an earlier test."""

from __future__ import annotations

import gc
import pathlib
from collections.abc import Generator, Iterator
from typing import Any

import keras
import pytest

from tests import devices  # noqa: F401  isort: skip  First: it makes the devices that tests/distribution trains on.

import mixtrain
from mixtrain import execution
from mixtrain.context import _ignored
from mixtrain.seed import _Streams
from tests import kernels, sampling
from tests.conformance.table import pytest_terminal_summary  # noqa: F401  A hook: it prints the conformance table.

# Recipes, run by hand where the reference is installed, and scripts of MindSpore code, run with the import swapped.
collect_ignore_glob = ["data/make_*.py", "conformance/tutorials/*.py"]


# What every backend must hold to; the rest (documents, examples, benchmarks) is tested on TensorFlow.
CONTRACT = (
    "amp", "backend", "cell", "common", "compat", "conformance", "data_backend", "dataset", "diagnostics",
    "distribution", "experimental", "golden", "keras", "loss_scale", "metrics", "mint", "network", "nn", "ops", "optim",
    "precision", "scipy", "serialization", "step", "structure/test_nothing_is_changed.py", "structure/test_wall.py",
    "test_checks.py", "test_faces.py", "test_float_format.py", "test_main.py", "test_numpy.py", "test_words.py",
    "train",
)
ROOT = pathlib.Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer a limit of minutes, and the seed of what is run within it."""
    sampling.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Limit the run, and draw its order, where that is wanted."""
    minutes, seed = config.getoption("--minutes"), config.getoption("--sample")
    config.pluginmanager.register(sampling.Sampling(minutes, seed), "sampling")


@pytest.hookimpl(optionalhook=True)  # Of pytest-xdist's.
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process tests that are neighbors: they share what is trained once. One that is done takes over others.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_ignore_collect(collection_path: pathlib.Path) -> bool | None:
    """Collect the contract alone where another backend than TensorFlow runs."""
    if keras.backend.backend() == "tensorflow" or collection_path.is_relative_to(ROOT) is False:
        return None
    if collection_path.suffix == ".py" and "\npytestmark = pytest.mark.tensorflow\n" in collection_path.read_text():
        return True  # It may import TensorFlow, which need not be there.
    kept = [ROOT / part for part in CONTRACT]
    inside = any(collection_path.is_relative_to(part) or part.is_relative_to(collection_path) for part in kept)
    return None if inside else True


@pytest.hookimpl(tryfirst=True)  # Before pytest looks at what -m leaves out.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow rows of tests with `quick_every`; leave out what is about TensorFlow where it does not run."""
    rows: dict[object, int] = {}
    for item in items:
        mark = item.get_closest_marker("quick_every")
        if mark is not None and not item.get_closest_marker("slow"):
            test = (item.parent, getattr(item, "originalname", item.name))
            rows[test] = rows.get(test, -1) + 1
            count, first = mark.args
            if rows[test] % count != first:
                item.add_marker(pytest.mark.slow)
        if keras.backend.backend() != "tensorflow" and item.get_closest_marker("tensorflow"):
            item.add_marker(pytest.mark.skip(reason="about the TensorFlow backend"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect no garbage while modules are imported, which leave none: a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep what is there before the first test out of garbage collections: a million objects, a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Seed every generator, clear Keras's names, and run in the default mode, as if no script had set one."""
    _ignored.clear()
    _Streams.of_operations.clear()  # Hundreds after a while, each of which `set_seed` starts anew.
    with kernels.kept():
        keras.utils.clear_session(free_memory=False)
        mixtrain.set_seed(0)
    vars(execution.current).update(vars(execution.Execution()))
    yield
    vars(execution.current).update(vars(execution.Execution()))
