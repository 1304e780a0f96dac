"""The notebook runs from top to bottom, offline, and says what its text says."""

from __future__ import annotations

import importlib.util
import json
import os
from typing import Any

import pytest

from tests.docs.pages import ROOT

NOTEBOOK = ROOT / "examples" / "mixtrain_in_ten_minutes.ipynb"
MISSING = [name for name in ("nbclient", "nbformat", "ipykernel", "sklearn") if importlib.util.find_spec(name) is None]


def test_its_code_is_python() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 8
    for source in code:
        compile(source, str(NOTEBOOK), "exec")


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f'needs {", ".join(MISSING)}: pip install -e ".[docs,test]"')
def test_it_runs_and_shows_what_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    import nbclient
    import nbformat

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = [_text_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert any("precision plan: O2" in text for text in shown)
    assert any("image/png" in text for text in shown)
    assert sum("O2 float16: accuracy 0." in text for text in shown) == 1
    assert any("above 65504" in text and "would do" in text for text in shown)
    assert shown[-1].strip() == "True"


def _text_of(cell: Any) -> str:
    """Return what a cell shows, and the kinds of pictures that it does."""
    texts = []
    for output in cell.outputs:
        data = output.get("data", {})
        texts += [output.get("text", "") if output.get("name") != "stderr" else "", data.get("text/plain", ""), *data]
    return "\n".join(text for text in texts if not text.startswith("text/"))
