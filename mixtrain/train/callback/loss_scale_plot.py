"""Plot of loss and loss scale over the steps of a run."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mixtrain.diagnostics.figures import new_figure, write_figure
from mixtrain.train.callback.loss_scale_records import LossScaleRecords


def plot_loss_scale(records: LossScaleRecords, path: str | os.PathLike[str] | None = None) -> Any:
    """Plot the loss and, below it, the loss scale, with marks at skipped steps; write the figure to `path`, if any."""
    figure = new_figure("LossScaleMonitor.plot", 8, 5)
    loss_axes, scale_axes = figure.subplots(2, 1, sharex=True)
    losses = np.where(records.applied, records.loss, np.nan)
    loss_axes.plot(records.step, losses, linewidth=1)
    loss_axes.set_ylabel("loss")
    scale_axes.step(records.step, records.loss_scale, where="mid", linewidth=1, label="loss scale")
    skipped = ~records.applied
    if skipped.any():
        scale_axes.plot(records.step[skipped], records.loss_scale[skipped], "rx", label="skipped step")
        scale_axes.legend(loc="best")
    scale_axes.set_yscale("log", base=2)
    scale_axes.set_ylabel("loss scale")
    scale_axes.set_xlabel("step")
    if path is not None:
        write_figure(figure, path)
    return figure
