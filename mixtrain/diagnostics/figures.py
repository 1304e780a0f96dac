"""Figures of matplotlib, an optional extra, and their files."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any


def new_figure(where: str, width: float, height: float) -> Any:
    """Return an empty `matplotlib.figure.Figure`; width and height are in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"{where}: expected matplotlib, which draws the picture; it is not installed. "
            "Write pip install mixtrain[plot]."
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def write_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure atomically, in the format of the path's suffix."""
    path = pathlib.Path(path)
    file_format = path.suffix.lstrip(".") or "png"
    handle, name = tempfile.mkstemp(suffix=f".{file_format}", prefix=".", dir=path.parent)
    os.close(handle)
    try:
        figure.savefig(name, format=file_format)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
