"""Scripts in the order of calls of MindSpore's beginner tutorials run with the import swapped, in either mode.

Each script asserts the numbers that it computes, and passes as it stands on MindSpore 2.10 on a CPU.
"""

from __future__ import annotations

import pathlib
import runpy
from collections.abc import Iterator

import pytest

import mixtrain
from tests.conformance.documents import swap_import

TUTORIALS = {path.stem: path for path in sorted((pathlib.Path(__file__).parent / "tutorials").glob("*.py"))}
MODES = {"graph": mixtrain.GRAPH_MODE, "pynative": mixtrain.PYNATIVE_MODE}


def cases() -> Iterator[tuple[str, str]]:
    """Yield each tutorial with the modes it runs in: both, or "own" where it sets the mode itself."""
    for name, path in TUTORIALS.items():
        for mode in ["own"] if "set_context(" in path.read_text() else MODES:
            yield name, mode


@pytest.mark.parametrize(("name", "mode"), list(cases()))
def test_a_tutorial_runs_with_the_import_swapped(
    name: str, mode: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / f"{name}.py"
    script.write_text(swap_import(TUTORIALS[name].read_text()))
    monkeypatch.chdir(tmp_path)
    if mode != "own":
        mixtrain.set_context(mode=MODES[mode])
    runpy.run_path(str(script), run_name="__main__")
