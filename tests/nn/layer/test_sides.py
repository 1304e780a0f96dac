"""The padding cells give what MindSpore 2.10 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import Tensor, nn

X = np.arange(6, dtype=np.float32).reshape(1, 2, 3)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (nn.ConstantPad1d((1, 2), 0.5), [[[0.5, 0, 1, 2, 0.5, 0.5], [0.5, 3, 4, 5, 0.5, 0.5]]]),
        (nn.ReflectionPad2d((1, 1, 1, 0)), [[[4, 3, 4, 5, 4], [1, 0, 1, 2, 1], [4, 3, 4, 5, 4]]]),
        (nn.ReplicationPad2d((2, 0, 1, 1)), [[[0, 0, 0, 1, 2]] * 2 + [[3, 3, 3, 4, 5]] * 2]),
        (nn.ZeroPad2d((1, -1, 0, 1)), [[[0, 0, 1], [0, 3, 4], [0, 0, 0]]]),
        (nn.ReplicationPad1d(1), [[[0, 0, 1, 2, 2], [3, 3, 4, 5, 5]]]),
        (nn.ReflectionPad1d((1, 2)), [[[1, 0, 1, 2, 1, 0], [4, 3, 4, 5, 4, 3]]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_padded_tensor_is_the_references(cell: Any, expected: Any) -> None:
    assert cell(Tensor(X)).asnumpy().tolist() == expected


def test_three_axes_are_padded_from_the_last_one_on() -> None:
    x = Tensor(np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2))
    expected = [[[[7] * 3] * 2, [[0, 1, 7], [2, 3, 7]], [[4, 5, 7], [6, 7, 7]]]]
    assert nn.ConstantPad3d((0, 1, 0, 0, 1, 0), 7.0)(x).asnumpy().tolist() == expected


def test_fewer_paddings_are_those_of_the_last_axis() -> None:
    padded = nn.ConstantPad2d((0, 1), 0.5)(Tensor(np.arange(6, dtype=np.float32).reshape(1, 2, 3)))
    assert padded.asnumpy().tolist() == [[[0, 1, 2, 0.5], [3, 4, 5, 0.5]]]


def test_the_number_of_paddings_is_checked() -> None:
    with pytest.raises(ValueError, match="ReflectionPad2d: padding must be an int or 4 ints"):
        nn.ReflectionPad2d((1, 1, 1))
    with pytest.raises(TypeError, match="ReflectionPad1d: padding must hold ints"):
        nn.ReflectionPad1d(("2", 2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must have at least 3 axes"):
        nn.ReplicationPad3d(1)(Tensor([[1.0]]))
