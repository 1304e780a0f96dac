"""Adam and AdamWeightDecay: slots, arguments and what sets them apart; test_reference.py has the numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.common.parameter import Parameter
from mixtrain.optim import Adam, AdamWeightDecay
from tests.optim.setting import parameter, tensors, values


def test_adam_keeps_both_means_and_the_powers() -> None:
    optimizer = Adam([parameter("w", 1.0)])
    optimizer(tensors([2.0]))
    assert {variable.name for variable in optimizer.state_variables()} == {
        "global_step", "learning_rate", "beta1_power", "beta2_power", "moment1.w", "moment2.w",
    }
    assert values(optimizer.beta1_power) == pytest.approx(0.9)
    assert values(optimizer.moment1[0]) == pytest.approx([0.2])
    assert values(optimizer.moment2[0]) == pytest.approx([0.004], rel=1e-4)


def test_amsgrad_keeps_the_greatest_mean_square() -> None:
    optimizer = Adam([parameter("w", 1.0)], use_amsgrad=True, beta2=0.5)
    optimizer(tensors([2.0]))
    optimizer(tensors([0.0]))
    assert values(optimizer.moment2[0]) == [1.0]
    assert values(optimizer.vhat[0]) == [2.0]


def test_adam_takes_the_reference_keywords_that_change_nothing() -> None:
    Adam([parameter("w", 1.0)], 1e-3, 0.9, 0.999, 1e-8, False, use_lazy=True, use_offload=False)


@pytest.mark.parametrize("rule", [Adam, AdamWeightDecay])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta1": 0.0}, "beta1 must be greater than 0"),
        ({"beta2": 1.0}, "beta2 must be less than 1"),
        ({"eps": 0.0}, "eps must be greater than 0"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0"),
    ],
)
def test_bad_numbers_are_refused(rule: type, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{rule.__name__}: {message}"):
        rule([parameter("w", 1.0)], **options)


def test_decoupled_decay_shrinks_weights_without_gradients() -> None:
    w, gamma = parameter("w", 1.0), parameter("gamma", 1.0)
    optimizer = AdamWeightDecay([w, gamma], 0.5, weight_decay=0.5)
    optimizer(tensors([0.0], [0.0]))
    assert (values(w), values(gamma)) == ([0.75], [1.0])


def test_decoupled_decay_is_no_part_of_the_means() -> None:
    optimizer = AdamWeightDecay([parameter("w", 1.0)], 0.5, weight_decay=0.5)
    optimizer((None,))
    assert values(optimizer.moments1[0]) == [0.0]


def test_a_half_parameter_is_updated_in_float32() -> None:
    w = Parameter(np.ones(1, np.float16), "w")
    optimizer = Adam([w], 0.5)
    optimizer(tensors([1.0]))
    assert optimizer.moment1[0].dtype == "float32"
    assert w.dtype == "float16"
    assert values(w) == [0.5]
