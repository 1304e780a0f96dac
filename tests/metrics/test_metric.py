"""The metric base: the three methods, the choice of inputs, and what inputs may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain.common.tensor import Tensor
from mixtrain.nn.metrics import MAE, Metric, rearrange_inputs


class Seen(Metric):
    def clear(self) -> None:
        self.inputs: list[Any] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        self.inputs += inputs

    def eval(self) -> list[Any]:
        return self.inputs


def test_a_call_is_clear_update_and_eval() -> None:
    metric = Seen()
    metric.clear()
    metric.update(1)
    assert metric(2, 3) == [2, 3]


def test_indexes_choose_and_order_the_inputs() -> None:
    metric = Seen().set_indexes([2, 0])
    assert metric.indexes == [2, 0]
    assert metric(1, 2, 3) == [3, 1]
    assert Seen().indexes is None


def test_indexes_of_a_subclass_that_forgot_its_base_are_none() -> None:
    class Forgetful(Seen):
        def __init__(self) -> None:
            pass

    assert Forgetful()(1, 2) == [1, 2]


@pytest.mark.parametrize("indexes", [(0, 1), [0, "1"], [True], 3])
def test_other_indexes_are_refused(indexes: Any) -> None:
    with pytest.raises(ValueError, match="set_indexes: indexes must be a list of ints"):
        Seen().set_indexes(indexes)


def test_a_subclass_without_a_method_says_which() -> None:
    with pytest.raises(NotImplementedError, match=r"must define clear, update and eval. Write def clear\(self\)"):
        Metric().clear()
    with pytest.raises(NotImplementedError, match="def update"):
        Metric().update()
    with pytest.raises(NotImplementedError, match="def eval"):
        Metric().eval()


@pytest.mark.parametrize("kind", [Tensor, np.asarray, list])
def test_tensors_arrays_and_lists_are_taken(kind: Any) -> None:
    assert MAE()(kind([1.0, 2.0]), kind([1.0, 4.0])) == 1.0


def test_bfloat16_tensors_are_taken() -> None:
    assert MAE()(Tensor([1.0, 2.0], "bfloat16"), [1.0, 4.0]) == 1.0


def test_other_inputs_are_refused() -> None:
    with pytest.raises(TypeError, match="MAE.update: each input must be a tensor, array or list; got str"):
        MAE().update("a", [1.0])
