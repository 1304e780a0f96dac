"""Loss and loss scale over the steps of a run, as a picture."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mixtrain.diagnostics.figures import new_figure, write_figure
from mixtrain.train.callback.loss_scale_records import LossScaleRecords


def draw_loss_scale(records: LossScaleRecords, path: str | os.PathLike[str] | None = None) -> Any:
    """Draw the loss above and the loss scale below, skipped steps marked.

    Args:
        records: The steps.
        path: Where to write the picture, in the format that its ending names; None writes none.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure("LossScaleMonitor.plot", 8, 5)
    above, below = figure.subplots(2, 1, sharex=True)
    losses = np.where(records.applied, records.loss, np.nan)
    above.plot(records.step, losses, linewidth=1)
    above.set_ylabel("loss")
    below.step(records.step, records.loss_scale, where="mid", linewidth=1, label="loss scale")
    skipped = ~records.applied
    if skipped.any():
        below.plot(records.step[skipped], records.loss_scale[skipped], "rx", label="skipped step")
        below.legend(loc="best")
    below.set_yscale("log", base=2)
    below.set_ylabel("loss scale")
    below.set_xlabel("step")
    if path is not None:
        write_figure(figure, path)
    return figure
