"""A Model without a level keeps the precision that its user gave to what is inside: plans, lists, rules, policies."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, amp, backend, nn, ops

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
Y = X[:, :1] * 3
DATA = [(X, Y), (X[::-1].copy(), Y[::-1].copy())]


class Net(nn.Cell):
    """A network that notes the dtype that its first layer returns."""

    def __init__(self) -> None:
        super().__init__()
        mixtrain.set_seed(3)
        self.first = nn.Dense(6, 5)
        self.second = nn.Dense(5, 1)
        self.seen: set[str] = set()

    def construct(self, x: Any) -> Any:
        hidden = self.first(x)
        self.seen.add(str(hidden.dtype))
        return self.second(hidden)


class Wrapper(nn.Cell):
    """A cell of the user's around a network."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def construct(self, x: Any) -> Any:
        return self.net(x) * 1.0


class OwnLoss(Wrapper):
    def construct(self, x: Any, y: Any) -> Any:
        return ops.reduce_mean(ops.square(self.net(x) - y))


class OwnStep(nn.Cell):
    def __init__(self, net: Any, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer = optimizer
        self.value_and_grad = nn.ForwardValueAndGrad(OwnLoss(net), weights=optimizer.parameters, get_by_list=True)

    def construct(self, x: Any, y: Any) -> Any:
        loss, gradients = self.value_and_grad(x, y)
        return ops.depend(loss, self.optimizer(gradients))


def sgd(net: Any) -> Any:
    return nn.SGD(net.trainable_params(), 0.1)


def _planned_by_apply(net: Any) -> None:
    amp.apply_plan(net, amp.plan_precision(net, "O2"))


def _in_a_larger_network(net: Any) -> None:
    net.larger_one = [amp.auto_mixed_precision(Wrapper(net), "O2")]  # In a list, so that it is no part of it.


PLANS: dict[str, Callable[[Any], Any]] = {
    "O2": lambda net: amp.auto_mixed_precision(net, "O2"),
    "white_list": lambda net: amp.custom_mixed_precision(net, white_list=["first"]),
    "apply_plan": _planned_by_apply,
    "to_float": lambda net: net.to_float(mixtrain.float16),
    "part": lambda net: amp.auto_mixed_precision(net.first, "O3"),
    "larger": _in_a_larger_network,
}
MODELS: dict[str, Callable[[Any], Model]] = {
    "train cell": lambda net: Model(nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), sgd(net))),
    "scaled train cell": lambda net: Model(
        nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), sgd(net), mixtrain.Tensor(1.0))
    ),
    "own train cell": lambda net: Model(OwnStep(net, sgd(net))),
    "build_train_network": lambda net: Model(
        amp.build_train_network(net, sgd(net), nn.MSELoss(), loss_scale_manager=None)
    ),
    "train network": lambda net: Model(_model(net).train_network),
    "loss cell": lambda net: Model(
        nn.WithLossCell(net, nn.MSELoss()), optimizer=sgd(net), loss_scale_manager=None
    ),
    "own loss cell": lambda net: Model(OwnLoss(net), optimizer=sgd(net), loss_scale_manager=None),
    "wrapper": lambda net: _model(Wrapper(net), sgd(net)),
    "network": lambda net: _model(net),
}


def _model(net: Any, optimizer: Any = None, **options: Any) -> Model:
    return Model(net, nn.MSELoss(), optimizer or sgd(net), loss_scale_manager=None, **options)


def _float16_inside(plan: str) -> str:
    # A list's layers return float32.
    return "Float32" if plan in ("white_list", "part") else "Float16"


def losses(kind: str, plan: str, *, sink: bool = False) -> list[float]:
    """Train a planned network in a Model without a level; check its dtypes and its outputs before, during and after."""
    net = Net()
    PLANS[plan](net)
    before = net(mixtrain.Tensor(X)).asnumpy()
    inside = next(iter(net.seen))
    model = MODELS[kind](net)
    values = net(mixtrain.Tensor(X)).asnumpy()
    np.testing.assert_array_equal(values, before)
    net.seen.clear()
    history = model.train(2, DATA, dataset_sink_mode=sink, verbose=0)
    assert net.seen == {inside} and inside == _float16_inside(plan)
    row = next(row for row in model.precision_report().rows if row.target is net.first)
    assert row.compute_dtype == mixtrain.float16
    del model
    gc.collect()
    trained = net(mixtrain.Tensor(X)).asnumpy()
    fresh = Net()
    PLANS[plan](fresh)
    for mine, theirs in zip(fresh.get_parameters(), net.get_parameters(), strict=True):
        mine.set_data(theirs)
    np.testing.assert_array_equal(trained, fresh(mixtrain.Tensor(X)).asnumpy())
    return [float(value) for value in history["loss"]]


@pytest.mark.slow
def test_a_plan_inside_a_train_cell_stays_in_force_during_and_after_the_model() -> None:
    assert losses("train cell", "O2") == losses("network", "O2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "plan"),
    [*((kind, "O2") for kind in MODELS), *(("own train cell", plan) for plan in PLANS if plan != "O2")],
)
def test_every_plan_stays_in_force_in_every_wrapper_with_the_same_numbers(kind: str, plan: str) -> None:
    np.testing.assert_allclose(losses(kind, plan, sink=True), losses("network", plan), rtol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["O2", "white_list", "apply_plan", "part"])
def test_eval_and_predict_compute_as_the_network_inside_was_planned(plan: str) -> None:
    net = Net()
    PLANS[plan](net)
    expected = net(mixtrain.Tensor(X)).asnumpy()
    for model in (
        Model(Wrapper(net), nn.MSELoss(), metrics={"mse"}),
        Model(nn.WithLossCell(net, nn.MSELoss()), eval_network=nn.WithEvalCell(net, nn.MSELoss()),
              eval_indexes=[0, 1, 2], metrics={"mse"}),
    ):
        net.seen.clear()
        mse = model.eval(DATA)["mse"]
        assert net.seen == {_float16_inside(plan)}
        assert mse == pytest.approx(float(np.mean(np.square(expected - Y))), rel=1e-3)
    net.seen.clear()
    np.testing.assert_allclose(Model(Wrapper(net)).predict(X).asnumpy(), expected, rtol=2e-3, atol=1e-3)
    assert net.seen == {_float16_inside(plan)}


def test_a_level_of_the_model_holds_for_all_that_is_inside_and_ends_with_it() -> None:
    net = amp.auto_mixed_precision(Net(), "O2")
    half = net(mixtrain.Tensor(X)).asnumpy()
    wrapper = Wrapper(net)
    model = _model(wrapper, sgd(net), amp_level="O3", cast_model_type=mixtrain.bfloat16)
    assert {row.compute_dtype for row in model.precision_report().rows} == {mixtrain.bfloat16}
    own = _model(net, amp_level="O3", cast_model_type=mixtrain.bfloat16)
    net.seen.clear()
    own.predict(X)
    assert net.seen == {"BFloat16"}
    del model, own
    gc.collect()
    np.testing.assert_array_equal(net(mixtrain.Tensor(X)).asnumpy(), half)
    assert amp.applied_plan(net).plan.level == "O2" and amp.applied_plan(wrapper) is None


def test_the_loss_is_scaled_by_default_where_the_plan_inside_calls_for_it() -> None:
    net = amp.auto_mixed_precision(Net(), "O2")
    model = Model(nn.WithLossCell(net, nn.MSELoss()), optimizer=sgd(net))
    assert isinstance(model.loss_scale_manager, mixtrain.DynamicLossScaleManager)
    report = model.precision_report()
    assert report.level == "O2" and report.row("").compute_dtype == mixtrain.float32
    assert report.row("_backbone.first").why == "the level's default"


def test_a_plan_that_is_changed_or_undone_under_a_model_is_followed() -> None:
    net = amp.auto_mixed_precision(Net(), "O2")
    model = _model(Wrapper(net), sgd(net))
    outputs = {}
    for name, change in {
        "Float16": lambda: None,
        "BFloat16": lambda: amp.auto_mixed_precision(net, "O2", mixtrain.bfloat16),
        "Float32": lambda: amp.applied_plan(net).undo(),
    }.items():
        change()
        net.seen.clear()
        outputs[name] = model.predict(X).asnumpy()
        assert net.seen == {name}
    net.first.to_float(mixtrain.float16)
    model.predict(X)
    assert net.seen == {"Float32", "Float16"}


def test_the_last_plan_of_a_layer_is_the_one_that_stays() -> None:
    net = Net()
    wrapper = amp.auto_mixed_precision(Wrapper(net), "O2")
    amp.auto_mixed_precision(net.first, "O3", mixtrain.bfloat16)
    report = Model(nn.WithLossCell(wrapper, nn.MSELoss())).precision_report()
    dtypes = {type(row.target).__name__ + row.path[-6:]: row.compute_dtype.name for row in report.rows}
    assert dtypes["Dense.first"] == "bfloat16" and dtypes["Densesecond"] == "float16"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["O2", "policy", "to_float", "initialize"])
def test_a_keras_network_in_a_train_cell_keeps_its_precision(kind: str) -> None:
    def network() -> Any:
        keras.utils.set_random_seed(3)
        dtype: Any = {"dtype": "mixed_float16"} if kind == "policy" else {}
        net = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, **dtype), keras.layers.Dense(1, **dtype)])
        if kind == "O2":
            amp.auto_mixed_precision(net, "O2")
        if kind == "to_float":
            mixtrain.to_float(net.layers[0], mixtrain.float16)
        if kind == "initialize":
            amp.initialize(net, opt_level="O2", verbosity=0)
        return net

    def step(net: Any) -> Any:
        return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), keras.optimizers.SGD(0.1))

    net, alone = network(), network()
    model = Model(step(net))
    result = model.train(2, DATA, verbose=0)["loss"]
    assert net.layers[0].compute_dtype == "float16"
    expected = _model(alone, keras.optimizers.SGD(0.1)).train(2, DATA, verbose=0)["loss"]
    np.testing.assert_allclose(result, expected, rtol=2e-3)
    output = backend.to_numpy(net(backend.to_tensor(X)))
    del model
    gc.collect()
    if kind != "to_float":  # It takes effect on a Keras layer while a plan is applied.
        np.testing.assert_array_equal(backend.to_numpy(net(backend.to_tensor(X))), output)


@pytest.mark.slow
def test_a_level_for_what_holds_an_initialized_network_is_refused() -> None:
    net = amp.initialize(Net(), opt_level="O2", verbosity=0)
    with pytest.raises(ValueError, match="the precision of a network is decided once"):
        _model(Wrapper(net), sgd(net), amp_level="O3")
    assert amp.applied_plan(net).plan.level == "O2"
