"""Tensors, Parameters and dtypes print as MindSpore's do."""

from __future__ import annotations

import pytest

import mixtrain
from tests.common import tensor_reference

TEXTS = {
    start: [one for one in tensor_reference.KNOWN["printing"] if one.startswith(start)]
    for start in ("str(T", "repr(T", "str(ms.", "repr(ms.")
}
TEXTS["others"] = [
    one for one in tensor_reference.KNOWN["printing"] if not any(one in texts for texts in TEXTS.values())
]


@pytest.mark.parametrize("start", TEXTS)
def test_texts_are_mindspore_s(start: str) -> None:
    known = tensor_reference.KNOWN["printing"]
    found = {
        one: tensor_reference.disagreement(one, known[one]) for one in TEXTS[start]
        if tensor_reference.is_held(one, known[one])
    }
    wrong = [f"{one}: {message}" for one, message in found.items() if message]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(found)} differ", *wrong])


def test_print_writes_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    print(mixtrain.Tensor([[1.0, 2.5], [3.0, -4.0]]), mixtrain.Tensor([True, False]), mixtrain.Tensor(3))
    assert capsys.readouterr().out == "[[ 1.   2.5]\n [ 3.  -4. ]] [ True False] 3\n"
