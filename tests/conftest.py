"""What every test starts from: a seed, graph mode, and no name taken by an earlier test."""

from __future__ import annotations

from collections.abc import Iterator

import keras
import pytest

import mixtrain
from tests.conformance.table import pytest_terminal_summary  # noqa: F401  A hook: it prints the conformance table.

# Recipes, run by hand where the reference is installed.
collect_ignore_glob = ["data/make_*.py"]


@pytest.fixture(autouse=True)
def fresh_state() -> Iterator[None]:
    """Seed every generator, clear Keras's names, and run in graph mode."""
    keras.utils.clear_session(free_memory=False)
    mixtrain.set_seed(0)
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE, jit_level="auto")
    yield
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE, jit_level="auto")
