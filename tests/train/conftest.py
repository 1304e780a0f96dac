"""What tests of training share: each way of feeding steps to the device."""

from __future__ import annotations

from typing import Any

import pytest

from mixtrain.train.pace import Pace


@pytest.fixture(params=["host", "groups", "sink"])
def feed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of `train` for one step a call, three steps a call of the host feed, and an epoch a call."""
    monkeypatch.setattr(Pace, "steps", lambda self, batch_bytes, most=0: 3 if request.param == "groups" else 1)
    return {"dataset_sink_mode": request.param == "sink", "verbose": 0}
