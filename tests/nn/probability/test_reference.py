"""Distributions, bijectors and scripts that use them give MindSpore's numbers, eagerly and compiled."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn.probability as msp
from tests.backends import quick_every
from tests.nn.probability import cases, policies

REFERENCE = json.loads((pathlib.Path(__file__).parent / "reference.json").read_text())
TOLERANCES = {"float16": 4e-3, "float32": 3e-5}
LOSSES = {
    "soft actor": [0.5614491701126099, -0.6507625579833984, -1.3357949256896973, -1.7417283058166504],
    "autoencoder": [5.473550319671631, 4.265883922576904, 3.711684465408325, 3.5109784603118896],
    "policy": [0.9740318059921265, 0.5595614910125732, 0.3576696217060089, 0.2744812071323395],
}


def difference(expected: Any, found: Any, dtype: str) -> str | None:
    """Return how two results differ; where MindSpore has no number, any is right."""
    if expected == "TypeError" or expected == found:
        return None
    if isinstance(expected, str) or isinstance(found, str) or len(expected) != len(found):
        return f"{expected} {found}"
    if not isinstance(expected[0], str):
        pairs = zip(expected, found, strict=True)
        return next(filter(None, (difference(one, other, dtype) for one, other in pairs)), None)
    if expected[:2] != found[:2]:
        return f"{expected[:2]} {found[:2]}"
    for one, other in zip(expected[2], found[2], strict=True):
        close = one == other or abs(one - other) <= TOLERANCES[dtype] * max(1.0, abs(one))
        if not math.isnan(one) and not close:
            return f"{expected} {found}"
    return None


@quick_every(17)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", REFERENCE)
def test_functions_have_the_numbers_dtypes_shapes_and_errors_of_mindspore(name: str, compiled: bool) -> None:
    found = cases.results(mixtrain, msp, name, mixtrain.jit if compiled else lambda function: function)
    wrong = {
        key: difference(value, found[key], "float16" if "float16" in key else "float32")
        for key, value in REFERENCE[name].items()
    }
    assert {key: text for key, text in wrong.items() if text} == {}


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_policies_and_autoencoders_train_as_in_mindspore(compiled: bool) -> None:
    losses = policies.train(mixtrain, msp, compiled=compiled)
    for name, expected in LOSSES.items():
        np.testing.assert_allclose(losses[name], expected, atol=1e-5, err_msg=name)
