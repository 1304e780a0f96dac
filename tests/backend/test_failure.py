"""The reason in an error of TensorFlow, without the names of its operations."""

from __future__ import annotations

import pytest

from mixtrain import backend

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("message", "reason"), [
        ("{{function_node __wrapped__Mul}} sizes differ: [2] [5] [Op:Mul] name: ", "sizes differ: [2] [5]"),
        ("sizes differ for '{{node y}} = Add[T=float](a, b)' with input shapes: [2], [5].",
         "sizes differ with input shapes: [2], [5]"),
    ],
)
def test_a_reason_names_no_operation(message: str, reason: str) -> None:
    assert backend.error_reason(ValueError(message)) == reason
