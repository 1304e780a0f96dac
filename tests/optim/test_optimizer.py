"""What all optimizers share: the step count, decay, the loss scale, gradients of every kind, and refusals."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.common.tensor import Tensor
from mixtrain.optim import SGD, Adam, Momentum, Optimizer
from tests.optim.setting import parameter, tensors, values


class Net(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = parameter("", 1.0)
        self.beta = parameter("", 1.0)


# ---- parameters -------------------------------------------------------------------------------------------------
def test_parameters_are_a_tuple_in_the_order_given() -> None:
    first, second = parameter("a", 1.0), parameter("b", 2.0)
    optimizer = SGD(iter([first, second]), 0.1)
    assert isinstance(optimizer.parameters, ParameterTuple)
    assert optimizer.parameters == (first, second)


def test_keras_variables_and_parameters_mix() -> None:
    variable = keras.Variable(np.ones(2, np.float32), name="kernel")
    w = parameter("w", 1.0)
    optimizer = Momentum([variable, w], 0.5, 0.9)
    optimizer(tensors([1.0, 2.0], [4.0]))
    assert (values(variable), values(w)) == ([0.5, 0.0], [-1.0])


def test_keras_variables_of_one_name_get_slots_of_their_own() -> None:
    layers = [keras.layers.Dense(1, name=name) for name in ("one", "two")]
    for layer in layers:
        layer.build((None, 1))
    optimizer = Momentum([layer.kernel for layer in layers], 0.1, 0.9)
    assert [slot.name for slot in optimizer.moments] == ["moments.one.kernel", "moments.two.kernel"]
    same = [keras.Variable(0.0, name="x"), keras.Variable(0.0, name="x")]
    assert [slot.name for slot in Momentum(same, 0.1, 0.9).moments] == ["moments.x", "moments.x#2"]


def test_unnamed_parameters_are_numbered() -> None:
    unnamed = [Parameter(1.0), Parameter(2.0)]
    assert [slot.name for slot in Momentum(unnamed, 0.1, 0.9).moments] == ["moments.Parameter$1", "moments.Parameter$2"]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ([], ValueError, "SGD: params must not be empty"),
        (None, ValueError, "SGD: params must be a list of parameters or of dicts"),
        (3, TypeError, "SGD: params must be a list"),
        ({"params": []}, TypeError, "SGD: params must be a list of parameters or of dicts"),
        ([np.ones(2)], TypeError, "each parameter must be a Parameter or keras.Variable; got ndarray"),
        ([parameter("w", 1.0), parameter("w", 1.0)], ValueError, "two parameters must not share a name; got 'w'"),
        ([parameter("w", 1.0), {"params": []}], TypeError, "all parameters or all dicts"),
        ([Parameter(3, "count")], ValueError, "count must hold floats; got"),
    ],
)
def test_wrong_parameters_are_refused(params: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        SGD(params, 0.1)


def test_a_parameter_listed_twice_is_refused() -> None:
    w = parameter("w", 1.0)
    with pytest.raises(ValueError, match="each parameter must be listed once; got 'w'"):
        SGD([w, w], 0.1)


def test_parameters_without_gradient_are_left_as_they_are() -> None:
    w, mean = parameter("w", 1.0), parameter("moving_mean", 1.0, requires_grad=False)
    optimizer = Momentum([w, mean], 0.5, 0.9, weight_decay=0.5)
    optimizer((tensors([1.0])[0], None))
    assert (values(w), values(mean)) == ([0.25], [1.0])


def test_a_parameter_frozen_later_stays_and_thawed_goes_on() -> None:
    w, v = parameter("w", 1.0), parameter("v", 1.0)
    optimizer = SGD([w, v], 0.5)
    v.requires_grad = False
    optimizer(tensors([1.0], [1.0]))
    v.requires_grad = True
    optimizer(tensors([1.0], [1.0]))
    assert (values(w), values(v)) == ([0.0], [0.5])


def test_only_frozen_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match=r"some parameter must require a gradient; got \['w'\]"):
        SGD([parameter("w", 1.0, requires_grad=False)], 0.1)


# ---- the step ---------------------------------------------------------------------------------------------------
def test_the_step_count_rises_by_one() -> None:
    optimizer = SGD([parameter("w", 1.0)], 0.1)
    assert tuple(optimizer.global_step.shape) == (1,)
    assert optimizer.global_step.dtype == "int32"
    for _ in range(3):
        optimizer(tensors([0.0]))
    assert values(optimizer.global_step) == [3]


def test_decay_spares_names_with_beta_or_gamma_and_takes_the_bias() -> None:
    names = ("fc.weight", "fc.bias", "bn.gamma", "bn.beta", "alphabetagamma")
    parameters = [parameter(name, 1.0) for name in names]
    optimizer = SGD(parameters, 0.5, weight_decay=0.5)
    optimizer((None,) * 5)
    assert [values(item) for item in parameters] == [[0.75], [0.75], [1.0], [1.0], [1.0]]
    assert optimizer.decay_flags == (True, True, False, False, False)


def test_decay_goes_by_the_own_name_of_a_keras_variable_not_by_its_path() -> None:
    layer = keras.layers.Dense(1, name="alphabeta", kernel_initializer="ones")
    layer.build((None, 1))
    SGD([layer.kernel], 0.5, weight_decay=0.5)((None,))
    assert values(layer.kernel) == [[0.75]]


def test_decay_is_not_touched_by_the_loss_scale() -> None:
    w = parameter("w", 1.0)
    SGD([w], 0.5, weight_decay=0.5, loss_scale=4.0)(tensors([4.0]))
    assert values(w) == [1.0 - 0.5 * (1.0 + 0.5)]


def test_a_missing_gradient_counts_as_zero_for_decay_and_momentum() -> None:
    w = parameter("w", 1.0)
    optimizer = Momentum([w], 0.5, 0.5)
    optimizer(tensors([1.0]))
    optimizer((None,))
    assert values(w) == [0.25]


@pytest.mark.tensorflow
def test_sparse_gradients_are_added_up_row_by_row() -> None:
    table = Parameter(np.ones((3, 2), np.float32), "table")
    used = Tensor(np.array([0, 2, 2]))

    def loss() -> Any:
        return keras.ops.sum(keras.ops.take(table, used, axis=0)), None

    _, _, gradients = backend.value_and_gradient(loss, [table])
    assert not backend.is_tensor(gradients[0])
    SGD([table], 0.25)(tuple(gradients))
    assert values(table) == [[0.75, 0.75], [1.0, 1.0], [0.5, 0.5]]


def test_half_and_numpy_gradients_are_taken() -> None:
    w, v = parameter("w", 1.0), parameter("v", 1.0)
    SGD([w, v], 0.5)([Tensor(np.array([1.0], np.float16)), np.array([1.0])])
    assert (values(w), values(v)) == ([0.5], [0.5])


def test_wrong_gradients_are_refused() -> None:
    optimizer = SGD([parameter("w", 1.0), parameter("v", 1.0)], 0.1)
    with pytest.raises(ValueError, match="one gradient for each of the 2 parameters; got '1 gradients'"):
        optimizer(tensors([1.0]))
    with pytest.raises(ValueError, match=r"the gradient of v must have shape \(1,\); got \(2,\)"):
        optimizer(tensors([1.0], [1.0, 2.0]))
    with pytest.raises(TypeError, match="gradients must be a tuple or list"):
        optimizer(tensors([1.0])[0])


@pytest.mark.parametrize(("loss_scale", "error"), [(0.0, ValueError), (-1.0, ValueError), ("2", TypeError)])
def test_bad_loss_scales_are_refused(loss_scale: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="loss_scale must be"):
        SGD([parameter("w", 1.0)], 0.1, loss_scale=loss_scale)


def test_a_decay_cell_is_asked_with_the_step() -> None:
    class Later(Cell):
        def construct(self, global_step: Any) -> Any:
            return keras.ops.cast(global_step, "float32")

    w = parameter("w", 1.0)
    optimizer = Momentum([w], 0.5, 0.0, weight_decay=Later())
    optimizer((None,))
    assert values(w) == [1.0]
    assert float(optimizer.get_weight_decay()) == 1.0
    optimizer((None,))
    assert values(w) == [0.5]


# ---- rules of the user's own ------------------------------------------------------------------------------------
def test_a_subclass_may_define_update_alone() -> None:
    class Sign(Optimizer):
        def __init__(self, params: Any, learning_rate: Any) -> None:
            super().__init__(learning_rate, params)

        def update(self, index: int, weight: Any, gradient: Any, rate: Any) -> Any:
            return weight - rate * keras.ops.sign(gradient)

    w = parameter("w", 1.0, 1.0)
    Sign([w], 0.25)(tensors([7.0, -3.0]))
    assert values(w) == [0.75, 1.25]


def test_a_subclass_may_define_construct_as_in_the_reference() -> None:
    class MyMomentum(Optimizer):
        def __init__(self, params: Any, learning_rate: Any, momentum: float = 0.9) -> None:
            super().__init__(learning_rate, params, weight_decay=0.5, loss_scale=2.0)
            self.moments = self.parameters.clone(prefix="moments", init="zeros")
            self.momentum = momentum

        def construct(self, gradients: Any) -> Any:
            lr = self.get_lr()
            gradients = self.scale_grad(self.gradients_centralization(self.decay_weight(gradients)))
            for weight, moment, gradient in zip(self.parameters, self.moments, gradients, strict=True):
                moment.assign(moment * self.momentum + gradient)
                weight.assign(weight - lr * moment)
            return True

    mine, theirs = parameter("w", 1.0), parameter("w", 1.0)
    own = MyMomentum([mine], 0.1)
    ready = Momentum([theirs], 0.1, 0.9, weight_decay=0.5, loss_scale=2.0)
    for _ in range(3):
        own(tensors([2.0]))
        ready(tensors([2.0]))
    assert values(mine) == pytest.approx(values(theirs))
    assert [variable.name for variable in own.state_variables()] == ["global_step", "learning_rate", "moments.w"]


def test_a_subclass_without_a_rule_says_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match="Write def update"):
        Optimizer(0.1, [parameter("w", 1.0)])(tensors([1.0]))


# ---- as a cell ----------------------------------------------------------------------------------------------------
def test_it_lists_its_state_and_the_parameters_it_trains() -> None:
    optimizer = Adam([parameter("w", 1.0)])
    assert list(optimizer.parameters_dict()) == [
        "global_step", "learning_rate", "beta1_power", "beta2_power", "moment1.w", "moment2.w", "w",
    ]
    assert [item.name for item in optimizer.trainable_params()] == ["w"]


def test_a_cell_that_holds_it_renames_its_state_not_the_network() -> None:
    class Trainer(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.network = Net()
            self.optimizer = Momentum(self.network.trainable_params(), 0.1, 0.9)

    trainer = Trainer()
    assert [item.name for item in trainer.network.get_parameters()] == ["network.weight", "network.beta"]
    assert trainer.optimizer.moments[0].name == "optimizer.moments.network.weight"
    assert trainer.optimizer.global_step.name == "optimizer.global_step"


def test_a_network_parameter_named_as_its_state_is_kept_apart() -> None:
    w = parameter("global_step", 1.0)
    optimizer = SGD([w], 0.5)
    optimizer(tensors([1.0]))
    assert (values(w), values(optimizer.global_step)) == ([0.5], [1])
    assert w in list(optimizer.get_parameters())


def test_updates_stay_in_float32_inside_cells_that_compute_in_half() -> None:
    class Trainer(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = parameter("", 1.0)
            self.optimizer = SGD([self.weight], 2.0**-14)

        def construct(self, gradient: Any) -> Any:
            return self.optimizer((gradient,))

    trainer = Trainer().to_float("float16")
    trainer(Tensor(np.ones(1, np.float32)))
    assert values(trainer.weight) == [1.0 - 2.0**-14]
