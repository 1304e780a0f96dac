"""Loggers of others, offline: what MetricsLogger tells them they have afterwards, to the digit."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import MetricsLogger, Model, set_seed

BATCHES = [(np.full((4, 2), value, np.float32), np.ones((4, 1), np.float32)) for value in (0.5, 1.0)]
# A logger warns as it likes.
pytestmark = pytest.mark.filterwarnings("ignore")


def logger(name: str) -> Any:
    """Return the package of a logger, or skip the test where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed: pip install {name}")


def trained(log: Callable[..., Any]) -> list[tuple[int, dict[str, float]]]:
    """Train with a logger; return what a second one of the same run is told."""
    logged: list[tuple[int, dict[str, float]]] = []

    def keep(values: dict[str, float], step: int) -> None:
        logged.append((step, values))

    set_seed(0)
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model = Model(network, "mse", keras.optimizers.SGD(0.1))
    model.fit(2, BATCHES, BATCHES, callbacks=[MetricsLogger(log), MetricsLogger(keep)], verbose=0)
    return logged


def _column(logged: list[tuple[int, dict[str, float]]], name: str) -> dict[int, float]:
    return {step: values[name] for step, values in logged if name in values}


def test_mlflow(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = logger("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        logged = trained(mlflow.log_metrics)
    client = mlflow.tracking.MlflowClient()
    for name in ("train/loss", "train/learning_rate", "epoch/val_loss"):
        history = client.get_metric_history(run.info.run_id, name)
        assert {item.step: item.value for item in history} == _column(logged, name)


def test_weights_and_biases(tmp_path: pathlib.Path) -> None:
    wandb = logger("wandb")
    with wandb.init(project="mixtrain", mode="offline", dir=tmp_path) as run:
        logged = trained(wandb.log)
        wandb.log({}, step=logged[-1][0] + 1)  # A step is complete when the next one begins.
        for name in ("train/loss", "epoch/val_loss"):
            assert run.summary[name] == list(_column(logged, name).values())[-1]


def test_trackio(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    trackio = logger("trackio")
    trackio.init(project="mixtrain", name="run", embed=False)
    logged = trained(trackio.log)
    trackio.finish()
    rows = trackio.sqlite_storage.SQLiteStorage.get_logs("mixtrain", "run")
    for name in ("train/loss", "epoch/val_loss"):
        assert {row["step"]: row[name] for row in rows if name in row} == _column(logged, name)
