"""A wrong call is refused in a sentence of mixtrain's: what was expected, what came, what to write; it does no harm."""

from __future__ import annotations

import pathlib
import traceback
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn
from tests.backends import quick_every
from tests.train.wrong_calls import CALLS, DATA, NAMES, calls

ROOT = pathlib.Path(mixtrain.__file__).parent
# Not an AttributeError: that would be a name that the table has wrong.
KINDS = (TypeError, ValueError, RuntimeError, OSError, KeyError, IndexError)

pytestmark = pytest.mark.filterwarnings("ignore")


def refused(call: str) -> str | None:
    """Return what is wrong with how a call is refused; None where nothing is."""
    try:
        eval(call, dict(NAMES))
    except KINDS as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        if not pathlib.Path(where).is_relative_to(ROOT):
            return f"{call}: raised in {where}: {error}"
        message = str(error)
        whole = "got" in message and ("Write" in message or "Look" in message)
        return None if whole else f"{call}: {type(error).__name__} {message}"
    except Exception as error:
        return f"{call}: {type(error).__name__} {error}"
    return f"{call}: not refused"


@quick_every(3)
@pytest.mark.parametrize(("template", "values"), CALLS, ids=[template for template, _ in CALLS])
def test_a_wrong_call_is_refused_in_a_sentence(
    template: str, values: tuple[str, ...], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = [refused(call) for call in calls([(template, values)])]
    assert [wrong for wrong in results if wrong is not None] == []


def test_the_table_has_calls_enough() -> None:
    assert len(set(calls(CALLS))) >= 250


@pytest.mark.slow
def test_training_after_wrong_calls_equals_training_without_them(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def trained() -> list[Any]:
        mixtrain.set_seed(4)
        net = nn.SequentialCell(nn.Dense(6, 4), nn.Dropout(p=0.3), nn.Dense(4, 1))
        model = mixtrain.Model(
            net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.01), amp_level="O2", cast_model_type="bfloat16",
            loss_scale_manager=mixtrain.DynamicLossScaleManager(8, 2, 2),
        )
        model.train(2, DATA, verbose=0)
        return [backend.to_numpy(weight) for weight in net.get_parameters()]

    control = trained()
    assert [wrong for wrong in map(refused, calls(CALLS)) if wrong is not None] == []
    assert all(np.array_equal(one, other) for one, other in zip(control, trained(), strict=True))
