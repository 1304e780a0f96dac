"""The driver: mixtrain's and Keras's optimizers do the same behind one interface."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.optim import SGD, Momentum
from mixtrain.step.optimizer_driver import drive
from tests.optim.setting import parameter, tensors, values

PLAIN = backend.JitChoice(False, "test")


def variable(name: str, *numbers: float) -> keras.Variable:
    return keras.Variable(np.array(numbers, np.float32), name=name)


@pytest.mark.parametrize("kind", ["mixtrain", "keras"])
def test_both_kinds_train_through_the_same_calls(kind: str) -> None:
    w = variable("w", 1.0)
    driver = drive(Momentum([w], 0.5, 0.5) if kind == "mixtrain" else keras.optimizers.SGD(0.5, momentum=0.5))
    chosen = driver.select([w])
    assert chosen == [w]
    driver.build(chosen)
    step = backend.compile_function(lambda gradients: driver.apply(gradients, chosen), choice=PLAIN)
    for _ in range(2):
        step(tensors([1.0]))
    assert values(w) == [-0.25]
    assert int(driver.iterations) == 2
    driver.finish(chosen)


def test_a_keras_optimizer_has_all_its_variables_after_build() -> None:
    w = variable("w", 1.0)
    driver = drive(keras.optimizers.Adam(0.1))
    driver.build([w])
    before = list(driver.state_variables())
    driver.apply(list(tensors([1.0])), [w])
    assert driver.state_variables() == before
    assert len(before) == 4


def test_loss_scales_are_the_optimizers_own() -> None:
    w = parameter("w", 1.0)
    assert (drive(SGD([w], 0.1)).loss_scale, drive(SGD([w], 0.1)).divides_by_loss_scale) == (1.0, True)
    assert drive(SGD([w], 0.1, loss_scale=8.0)).loss_scale == 8.0
    plain, scaled = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1, loss_scale_factor=4.0)
    assert (drive(plain).loss_scale, drive(plain).divides_by_loss_scale) == (1.0, False)
    assert (drive(scaled).loss_scale, drive(scaled).divides_by_loss_scale) == (4.0, True)


def test_a_mixtrain_optimizer_chooses_its_own_trained_parameters() -> None:
    a, b, c = parameter("a", 1.0), parameter("b", 1.0), parameter("c", 1.0, requires_grad=False)
    driver = drive(SGD([b, c, a], 0.1))
    assert driver.select([a, b]) == [b, a]
    assert drive(keras.optimizers.SGD(0.1)).select([a, b, c]) == [a, b]


def test_gradients_find_their_parameter_in_any_order_and_may_be_missing() -> None:
    a, b = parameter("a", 1.0), parameter("b", 1.0)
    driver = drive(SGD([a, b], 0.5, weight_decay=0.5))
    driver.apply(tensors([2.0]), [b])
    assert (values(a), values(b)) == ([0.75], [-0.25])


def test_a_variable_that_the_optimizer_does_not_hold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"SGD: it must hold the variables it is to update; got \['b'\]"):
        drive(SGD([parameter("a", 1.0)], 0.1)).build([parameter("b", 1.0)])


def test_keras_passes_over_a_missing_gradient_and_says_so() -> None:
    a, b = variable("a", 1.0), variable("b", 1.0)
    driver = drive(keras.optimizers.SGD(0.5))
    driver.build([a, b])
    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        driver.apply([None, tensors([1.0])[0]], [a, b])
    assert (values(a), values(b)) == ([1.0], [0.5])


def test_the_averages_of_a_keras_optimizer_become_the_weights_at_the_end() -> None:
    w = variable("w", 0.0)
    driver = drive(keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5))
    driver.build([w])
    driver.apply(list(tensors([1.0])), [w])
    driver.apply(list(tensors([1.0])), [w])
    driver.finish([w])
    assert values(w) != [-2.0]


def test_a_keras_loss_scale_optimizer_is_refused_by_name() -> None:
    inner: Any = keras.optimizers.Adam(0.1)
    with pytest.raises(ValueError, match=r"Write optimizer=keras.optimizers.Adam\(...\), and loss_scale_manager"):
        drive(keras.optimizers.LossScaleOptimizer(inner))


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match="it must be an optimizer of mixtrain or Keras; got str 'sgd'"):
        drive("sgd")
