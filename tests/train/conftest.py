"""What tests of training share: each way of feeding steps to the device."""

from __future__ import annotations

from typing import Any

import pytest

from mixtrain.train.steps_per_call import StepsPerCall


@pytest.fixture(params=["host", "groups", "sink"])
def feed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of `train` for one step a call, three steps a call of the host feed, and an epoch a call."""
    size = 3 if request.param == "groups" else 1
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: size)
    return {"dataset_sink_mode": request.param == "sink", "verbose": 0}
