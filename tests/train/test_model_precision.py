"""A Model and its network's precision: its own plan in force, later rules, and how the step is compiled."""

from __future__ import annotations

import gc
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, amp, backend, nn
from mixtrain.backend import DeviceInfo, choose_jit

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
DATA = [(X, X[:, :1])]
CPU, GPU, TPU = (DeviceInfo(kind, kind, True) for kind in ("CPU", "GPU", "TPU"))  # type: ignore[arg-type]


def _cells() -> nn.SequentialCell:
    mixtrain.set_seed(3)
    return nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 1))


def _keras() -> Any:
    layers = keras.layers
    return keras.Sequential([keras.Input((6,)), layers.Dense(5, name="first"), layers.Dense(1, name="last")])


@keras.saving.register_keras_serializable("tests")
class Own(keras.layers.Dense):
    """A layer of the user's, of which nothing is known."""

    def call(self, inputs: Any) -> Any:
        return keras.ops.matmul(inputs, self.kernel)

    def __init__(self, units: int = 6) -> None:
        super().__init__(units, use_bias=False)


def _model(net: Any, level: Any = "O0", **options: Any) -> Model:
    return Model(net, "mse", keras.optimizers.SGD(0.01), amp_level=level, loss_scale_manager=None, **options)


def _jit(model: Model) -> bool:
    """Return how the step that was compiled was compiled."""
    return model._compiled.stepper._training.choice().jit


@pytest.mark.slow
def test_two_models_on_one_network_each_put_their_own_plan_in_force() -> None:
    net = _cells()
    half, full = _model(net, "O3"), _model(net, "O0")
    outputs = []
    for model, dtype in ((half, "float16"), (full, None), (half, "float16"), (full, None)):
        model.train(1, DATA, verbose=0)
        assert net[0].cast_rule.inputs == dtype
        outputs.append(backend.to_numpy(model.predict(X)))
        assert net[0].cast_rule.inputs == dtype
    assert not np.array_equal(backend.to_numpy(half.predict(X)), backend.to_numpy(full.predict(X)))
    assert (half.precision_report().level, full.precision_report().level) == ("O3", "O0")
    assert amp.applied_plan(net).plan.level == "O0"
    # The full one computes as a network that was never touched.
    fresh = _cells()
    for mine, theirs in zip(fresh.get_parameters(), net.get_parameters(), strict=True):
        mine.set_data(theirs)
    fresh_output = backend.to_numpy(_model(fresh).predict(X))
    np.testing.assert_array_equal(backend.to_numpy(full.predict(X)), fresh_output)


@pytest.mark.slow
def test_two_models_on_one_keras_network_as_well() -> None:
    net = _keras()
    half, full = _model(net, "O2"), _model(net, "O0")
    for model, dtype in ((half, "float16"), (full, "float32"), (half, "float16")):
        model.train(1, DATA, verbose=0)
        assert [layer.compute_dtype for layer in net.layers] == [dtype] * 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cells", "keras"])
def test_a_rule_of_the_users_takes_effect_after_the_model_was_made_and_after_it_trained(kind: str) -> None:
    net = _cells() if kind == "cells" else _keras()
    first, path = (net[0], "0") if kind == "cells" else (net.layers[0], "first")
    model = _model(net, "O2")
    mixtrain.to_float(first, mixtrain.bfloat16)
    assert model.precision_report().row(path).compute_dtype == mixtrain.bfloat16
    model.train(1, DATA, verbose=0)
    mixtrain.to_float(first, mixtrain.float32)
    model.train(1, DATA, verbose=0)
    row = model.precision_report().row(path)
    assert (row.compute_dtype, row.rule) == (mixtrain.float32, "to_float")
    assert (first.cast_rule.inputs if kind == "cells" else first.compute_dtype) == "float32"


@pytest.mark.slow
def test_a_new_rule_compiles_the_step_anew_and_an_old_one_does_not() -> None:
    net = _cells()
    model = _model(net)
    model.train(2, DATA, verbose=0)
    compiled = model._compiled.stepper._training.compiled()
    model.train(2, DATA, verbose=0)
    assert model._compiled.stepper._training.compiled() is compiled
    net[0].to_float(mixtrain.float16)
    model.train(1, DATA, verbose=0)
    assert model._compiled.stepper._training.compiled() is not compiled
    assert "float16" in model._compiled.stepper._training.choice().reason


# ---- how long a plan is in force ----------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cells", "keras"])
def test_a_plan_ends_with_its_model(kind: str) -> None:
    net = _cells() if kind == "cells" else _keras()
    exact = backend.to_numpy(net(backend.to_tensor(X)))
    model = _model(net, "O3", metrics={"mae"})
    # No step, evaluation or prediction holds the Model.
    model.fit(1, [(X, 0 * X[:, :1])], DATA, verbose=0)
    model.predict(X)
    assert not np.array_equal(backend.to_numpy(net(backend.to_tensor(X))), exact)
    fresh = _cells() if kind == "cells" else keras.models.clone_model(net)
    del model
    assert amp.applied_plan(net) is None
    for mine, theirs in zip(_variables(fresh), _variables(net), strict=True):
        mine.assign(backend.to_numpy(theirs))
    result, expected = (backend.to_numpy(network(backend.to_tensor(X))) for network in (net, fresh))
    np.testing.assert_array_equal(result, expected)


def _variables(net: Any) -> list[Any]:
    return list(net.get_parameters()) if isinstance(net, nn.Cell) else net.weights


def test_a_train_network_that_was_handed_out_keeps_the_plan() -> None:
    net = _cells()
    step = _model(net, "O3").train_network
    gc.collect()
    assert net[0].cast_rule.inputs == "float16"
    del step
    gc.collect()
    assert amp.applied_plan(net) is None


def test_a_plan_ends_only_where_the_model_put_it_in_force() -> None:
    net = _keras()
    amp.build_train_network(net, keras.optimizers.SGD(0.1), "mse", "O2", loss_scale_manager=None)
    assert amp.applied_plan(net).plan.level == "O2"
    first, second = _model(net, "O3"), _model(net, "O1")
    del first
    assert amp.applied_plan(net).plan.level == "O1"
    amp.auto_mixed_precision(net, "O2")
    del second
    assert amp.applied_plan(net).plan.level == "O2"


def test_a_model_that_cannot_be_made_leaves_no_plan() -> None:
    net = _cells()
    with pytest.raises(ValueError, match="loss_scale"):
        mixtrain.Model(
            net, "mse", nn.SGD(net.trainable_params(), 0.1, loss_scale=8.0), amp_level="O3",
            loss_scale_manager=mixtrain.FixedLossScaleManager(4.0, drop_overflow_update=False),
        )
    gc.collect()
    assert amp.applied_plan(net) is None


@pytest.mark.slow
def test_keras_s_own_predict_follows_the_level_of_the_model_that_ran_last() -> None:
    net = _keras()
    exact = net.predict(X, verbose=0)
    half, full = _model(net, "O2"), _model(net, "O0")
    for model, same in ((half, False), (full, True), (half, False)):
        model.predict(X)
        assert np.array_equal(net.predict(X, verbose=0), exact) is same
    del half, full, model
    np.testing.assert_array_equal(net.predict(X, verbose=0), exact)


# ---- how a step is compiled, where a backend has more than one way ------------------------------------------------
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("dtypes", "device", "level", "expected"),
    [
        (["float32"], CPU, "auto", False), (["float16"], CPU, "auto", True), (["bfloat16"], CPU, "auto", False),
        (["float16", "float32"], CPU, "auto", True), (["float16", "bfloat16"], CPU, "auto", True),
        (["float16"], GPU, "auto", False), (["float32"], TPU, "auto", True), ([], CPU, "auto", False),
        (["float16"], CPU, "O0", False), (["float32"], CPU, "O1", True), (["float32"], CPU, "O2", True),
    ],
)
def test_the_backend_chooses_by_device_and_dtype_and_the_user_overrides(
    dtypes: list[Any], device: DeviceInfo, level: str, expected: bool
) -> None:
    mixtrain.set_context(jit_level=level)
    choice = choose_jit(dtypes, device)
    assert choice.jit is expected and choice.reason
    assert (f'"{level}"' in choice.reason) is (level != "auto")


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(backend.describe_device().kind != "CPU", reason="the choice of a CPU")
@pytest.mark.parametrize(
    ("level", "half", "expected"),
    [("O0", None, False), ("O1", None, True), ("O2", None, True), ("O3", None, True), ("O2", "bfloat16", False)],
)
def test_float16_on_cpu_is_compiled_with_xla_where_a_layer_multiplies_by_itself(
    level: str, half: Any, expected: bool
) -> None:
    own = keras.Sequential([keras.Input((6,)), Own(), keras.layers.Dense(1)])
    for net, jit in ((own, expected), (_cells(), False)):
        model = _model(net, level, cast_model_type=half)
        model.train(1, DATA, verbose=0)
        assert _jit(model) is jit


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(("jit_level", "level", "expected"), [("O0", "O2", False), ("O1", "O0", True)])
def test_the_users_jit_level_beats_the_backend_choice(jit_level: str, level: str, expected: bool) -> None:
    mixtrain.set_context(jit_level=jit_level)
    model = _model(_cells(), level)
    model.train(1, DATA, verbose=0)
    assert _jit(model) is expected
