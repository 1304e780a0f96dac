"""Scripts in the order of calls of MindSpore's beginner tutorials run with the import swapped, in either mode.

Each script asserts the numbers that it computes, and passes as it stands on MindSpore 2.10 on a CPU, in both modes.
"""

from __future__ import annotations

import pathlib
import re
import runpy
from collections.abc import Iterator
from typing import Final

import pytest

import mixtrain
from tests.backends import ON_TENSORFLOW, quick_every
from tests.conformance.documents import swap_import

TUTORIALS: Final = {path.stem: path for path in sorted((pathlib.Path(__file__).parent / "tutorials").glob("*.py"))}
MODES: Final = {"graph": mixtrain.GRAPH_MODE, "pynative": mixtrain.PYNATIVE_MODE}
# Several seconds each on JAX, where every network is compiled by XLA.
SLOW_ON_JAX: Final = frozenset({
    "gradient_accumulation-pynative", "mixed_precision-graph", "mixed_precision-pynative",
    "mixed_precision_model-graph", "mixed_precision_model-pynative", "save_load-pynative",
})
# A while that a tensor decides is refused there in one sentence: tests/backend/test_branches.py.
NOT_ON_JAX: Final = frozenset({"while_loops"})


def cases() -> Iterator[object]:
    """Yield each tutorial with the modes it runs in: both, or "own" where it sets the mode itself."""
    for name, path in TUTORIALS.items():
        if name in NOT_ON_JAX and not ON_TENSORFLOW:
            continue
        for mode in ["own"] if "set_context(" in path.read_text() else MODES:
            case = f"{name}-{mode}"
            slow = [pytest.mark.slow] if case in SLOW_ON_JAX and not ON_TENSORFLOW else []
            yield pytest.param(name, mode, marks=slow, id=case)


def source_of(name: str) -> str:
    """Return a tutorial's source with the import swapped, and on JAX with 32 bits in the place of 64."""
    source = swap_import(TUTORIALS[name].read_text())
    return source if ON_TENSORFLOW else re.sub(r"([Ii]nt|[Ff]loat)64\b", r"\g<1>32", source)


@quick_every(32)
@pytest.mark.filterwarnings("ignore:load_param_into_net:UserWarning")  # What a tutorial loads in part on purpose.
@pytest.mark.parametrize(("name", "mode"), list(cases()))
def test_a_tutorial_runs_with_the_import_swapped(
    name: str, mode: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / f"{name}.py"  # A file, since compiled functions are read from their source.
    script.write_text(source_of(name))
    monkeypatch.chdir(tmp_path)
    if mode != "own":
        mixtrain.set_context(mode=MODES[mode])
    runpy.run_path(str(script), run_name="__main__")
