"""apex's API: the meaning of each level, its options, and a loss that is scaled once, by a loop or by a Model."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain import amp, backend
from mixtrain.precision.dtypes import computed_dtypes
from tests.backends import quick_every

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 8).astype(np.int32)


def make_network() -> nn.SequentialCell:
    r = np.random.default_rng(0)
    first, second = (r.standard_normal(shape).astype(np.float32) / 3 for shape in ((5, 6), (3, 5)))
    return nn.SequentialCell(
        nn.Dense(6, 5, weight_init=mixtrain.Tensor(first), bias_init="zeros"), nn.BatchNorm1d(5), nn.ReLU(),
        nn.Dense(5, 3, weight_init=mixtrain.Tensor(second), bias_init="zeros"),
    ).set_train()


def make_pair(**options: Any) -> tuple[Any, amp.AmpOptimizer]:
    network = make_network()
    optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
    return amp.initialize(network, optimizer, verbosity=0, **options)  # type: ignore[no-any-return]


def formats_of(network: Any) -> list[str]:
    return [parameter.dtype.name for parameter in network.trainable_params()]


def train(network: Any, optimizer: Any, batches: Any) -> list[float]:
    """Run a loop in apex's order of calls; return the unscaled losses."""
    loss_fn, losses = nn.CrossEntropyLoss(), []

    def forward(x: Any, y: Any) -> Any:
        loss = loss_fn(network(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            return scaled_loss, loss

    gradient_of = mixtrain.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    for x, y in batches:
        (_, loss), gradients = gradient_of(mixtrain.Tensor(x), mixtrain.Tensor(y))
        optimizer.step(gradients)
        losses.append(float(loss))
    return losses


HALF, FULL = "float16", "float32"


@quick_every(4)
@pytest.mark.parametrize(
    ("options", "stored", "computed", "scale"),
    [
        ({"opt_level": "O0"}, [FULL] * 6, {FULL}, None),
        ({"opt_level": "O1"}, [FULL] * 6, {FULL}, 65536.0),
        ({"opt_level": "O2"}, [HALF, HALF, FULL, FULL, HALF, HALF], {HALF, FULL}, 65536.0),
        ({"opt_level": "O3"}, [HALF, HALF, FULL, FULL, HALF, HALF], {HALF, FULL}, None),
        ({"opt_level": "O2", "master_weights": False, "loss_scale": 8}, [HALF] * 2 + [FULL] * 2 + [HALF] * 2,
         {HALF, FULL}, 8.0),
        ({"opt_level": "O2", "cast_model_type": "bfloat16", "loss_scale": 1.0},
         ["bfloat16"] * 2 + [FULL] * 2 + ["bfloat16"] * 2, {"bfloat16", FULL}, None),
        ({"opt_level": "O2", "enabled": False}, [FULL] * 6, {FULL}, None),
        ({"loss_scale": "128.0"}, [FULL] * 6, {FULL}, 128.0),
        ({"opt_level": "O2", "max_loss_scale": 2.0**10}, [HALF] * 2 + [FULL] * 2 + [HALF] * 2, {HALF, FULL}, 1024.0),
    ],
)
def test_a_level_means_what_apex_says(
    options: dict[str, Any], stored: list[str], computed: set[str], scale: float | None
) -> None:
    network, optimizer = make_pair(**options)
    assert formats_of(network) == stored
    assert computed_dtypes(network) == computed
    assert (None if optimizer.scaler is None else optimizer.scaler.get_scale()) == scale
    assert [value.dtype.name for value in amp.master_params(optimizer)] == (
        [FULL] * 6 if options.get("master_weights", options.get("opt_level") != "O3") else stored
    )
    assert network(mixtrain.Tensor(X)).dtype.name == "float32"


def test_o1_casts_operators_inside_the_network_alone() -> None:
    network, _ = make_pair(opt_level="O1", cast_model_type="bfloat16")
    seen = []
    for cell in network.cells():
        cell.register_forward_hook(lambda cell, inputs, output: seen.append(output.dtype.name))
    network(mixtrain.Tensor(X))
    assert seen[0] == "bfloat16" and not amp.is_autocast_enabled()
    assert mixtrain.ops.matmul(mixtrain.Tensor(X), mixtrain.Tensor(X.T)).dtype.name == "float32"


def test_keep_batchnorm_fp32_says_what_normalization_gives() -> None:
    rules = {}
    for keep in ("True", "False"):
        network, _ = make_pair(opt_level="O3", keep_batchnorm_fp32=keep)
        rules[keep] = amp.applied_plan(network).plan.row("1").rule  # type: ignore[union-attr]
    assert rules == {"True": "keep_batchnorm_fp32=True", "False": "keep_batchnorm_fp32=False"}


def test_the_options_in_force_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    network = make_network()
    amp.initialize(network, nn.SGD(network.trainable_params(), 0.1), opt_level="O2", keep_batchnorm_fp32="False")
    assert capsys.readouterr().out.splitlines() == [
        "opt_level             : O2",
        "cast_model_type       : float16",
        "patch_torch_functions : False",
        "keep_batchnorm_fp32   : False  (given; O2 has True)",
        "master_weights        : True",
        "loss_scale            : dynamic",
    ]
    make_pair(opt_level="O2")
    assert capsys.readouterr().out == ""


@quick_every(4)
@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"opt_level": "O1", "keep_batchnorm_fp32": True}, ValueError,
         'got opt_level="O1" with keep_batchnorm_fp32=True, but at O1 operators are cast'),
        ({"opt_level": "O1", "master_weights": True}, ValueError, 'opt_level="O1" with master_weights=True'),
        ({"opt_level": "O0", "master_weights": False}, ValueError, 'opt_level="O0" with master_weights=False'),
        ({"opt_level": "O0", "cast_model_type": "float16"}, ValueError, "but at O0 nothing is cast"),
        ({"opt_level": "O1", "cast_model_type": "float32"}, ValueError, "at O1 operators compute in half"),
        ({"opt_level": "O2", "cast_model_type": "float32"}, ValueError,
         'layers compute in half. Write it without cast_model_type, or opt_level="O0"'),
        ({"opt_level": "O2", "patch_torch_functions": True}, ValueError,
         'without patch_torch_functions, or opt_level="O1"'),
        ({"opt_level": "o2"}, ValueError, 'the letter O and a digit; got \'o2\'. Write opt_level="O2"'),
        ({"opt_level": 1}, ValueError, 'Write opt_level="O1"'),
        ({"opt_level": True}, ValueError, 'Write opt_level="O1"'),
        ({"opt_level": "O4"}, ValueError, "opt_level must be one of O0, O1, O2, O3"),
        ({"loss_scale": "dynamc"}, ValueError, 'loss_scale must be "dynamic" or a number'),
        ({"loss_scale": 0.0}, ValueError, "loss_scale must be at least 1.17549e-38"),
        ({"loss_scale": "1e50"}, ValueError, "loss_scale must be at most 3.40282e\\+38"),
        ({"opt_level": "O2", "keep_batchnorm_fp32": "yes"}, TypeError, "keep_batchnorm_fp32 must be True or False"),
        ({"cast_model_outputs": "float16"}, ValueError, "outputs are float32"),
        ({"num_losses": 2}, ValueError, "an optimizer has one scaler"),
        ({"min_loss_scale": 2.0**20, "max_loss_scale": 2.0**10}, ValueError, "max_loss_scale must be at least"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_options_that_contradict_each_other_are_refused(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make_pair(**options)


def test_what_is_initialized_must_be_fit_for_it() -> None:
    network, optimizer = make_pair(opt_level="O1")
    with pytest.raises(ValueError, match="a network is initialized once"):
        amp.initialize(network, nn.SGD(network.trainable_params(), 0.1))
    other = make_network()
    with pytest.raises(ValueError, match="an optimizer is initialized once"):
        amp.initialize(other, optimizer)
    with pytest.raises(ValueError, match="the optimizer must not do it as well; got 'loss_scale=8'"):
        amp.initialize(other, nn.SGD(other.trainable_params(), 0.1, loss_scale=8.0), verbosity=0)
    with pytest.raises(ValueError, match="must have its variables"):
        amp.initialize(keras.Sequential([keras.layers.Dense(2)]), keras.optimizers.SGD(0.1))
    with pytest.raises(TypeError, match="optimizers must be one that amp.initialize returned"):
        with amp.scale_loss(mixtrain.Tensor(1.0), nn.SGD(other.trainable_params(), 0.1)):
            pass
    with pytest.raises(TypeError, match="what amp.initialize returned"):
        next(amp.master_params(nn.SGD(other.trainable_params(), 0.1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("sgd", {}),
        (keras.optimizers.SGD(0.1, loss_scale_factor=8.0), {}),
        (keras.optimizers.SGD(0.1, use_ema=True), {}),
        (keras.optimizers.SGD(0.1), {"min_loss_scale": 2.0, "max_loss_scale": 1.0}),
    ],
)
def test_a_call_that_is_refused_leaves_the_network_as_it_was(
    optimizer: Any, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    network = make_network()
    with pytest.raises((TypeError, ValueError)):
        amp.initialize(network, optimizer, opt_level="O2", **options)
    assert formats_of(network) == [FULL] * 6 and capsys.readouterr().out == ""
    amp.initialize(network, nn.SGD(network.trainable_params(), 0.1), opt_level="O2", verbosity=0)


def test_lists_come_back_as_lists_each_optimizer_with_its_own_scaler() -> None:
    first, second = make_network(), make_network()
    optimizers = [nn.SGD(network.trainable_params(), 0.1) for network in (first, second)]
    networks, made = amp.initialize([first, second], optimizers, opt_level="O2", verbosity=0)
    assert networks == [first, second] and [optimizer.inner for optimizer in made] == optimizers
    assert made[0].scaler is not made[1].scaler
    third = make_network()
    assert amp.initialize(third, verbosity=0) is third


@pytest.mark.slow
def test_a_loop_with_o0_equals_the_optimizer_alone() -> None:
    network, plain = make_network(), make_network()
    network, optimizer = amp.initialize(
        network, nn.Momentum(network.trainable_params(), 0.1, 0.9), opt_level="O0", verbosity=0
    )
    losses = train(network, optimizer, [(X, Y)] * 4)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(plain, nn.CrossEntropyLoss()), nn.Momentum(plain.trainable_params(), 0.1, 0.9)
    ).set_train()
    expected = [float(step(mixtrain.Tensor(X), mixtrain.Tensor(Y))) for _ in range(4)]
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_an_overflow_is_skipped_and_the_scale_halves_and_grows_as_apex_says() -> None:
    network, optimizer = make_pair(opt_level="O2", loss_scale="dynamic", max_loss_scale=2.0**6, min_loss_scale=16)
    optimizer.scaler.set_growth_interval(2)
    bad = X.copy()
    bad[0, 0] = np.nan
    before = [backend.to_numpy(value) for value in amp.master_params(optimizer)]
    scales = []
    for index, x in enumerate((bad, bad, bad, X, X, X, X, X, X)):
        train(network, optimizer, [(x, Y)])
        scales.append(optimizer.scaler.get_scale())
        if index == 2:
            after = [backend.to_numpy(value) for value in amp.master_params(optimizer)]
            assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert scales == [32, 16, 16, 16, 32, 32, 64, 64, 64]
    assert int(backend.to_numpy(optimizer.global_step).item()) == 6


def test_gradients_of_a_scaled_loss_are_not_applied_undivided() -> None:
    network, optimizer = make_pair(opt_level="O2", loss_scale=128.0)
    gradients = [mixtrain.ops.zeros_like(parameter) for parameter in optimizer.parameters]
    with pytest.raises(RuntimeError, match="scale"):
        optimizer.step(gradients)
    with amp.scale_loss(mixtrain.Tensor(2.0), optimizer) as scaled_loss:
        assert float(scaled_loss) == 256.0
    with pytest.raises(RuntimeError, match=r"Write optimizer.step\(gradients\)"):
        optimizer(gradients)
    assert bool(optimizer.step(gradients))
    with pytest.raises(ValueError, match="got a train step after amp.scale_loss"):
        mixtrain.Model(network, nn.CrossEntropyLoss(), optimizer)


@pytest.mark.parametrize("loss_scale", [1.0, 8.0])
def test_a_gradient_of_none_leaves_the_variable_of_a_keras_optimizer(loss_scale: float) -> None:
    network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    network, optimizer = amp.initialize(
        network, keras.optimizers.SGD(1.0), opt_level="O2", loss_scale=loss_scale, verbosity=0
    )
    with amp.scale_loss(mixtrain.Tensor(1.0), optimizer) as scaled_loss:
        assert bool(optimizer.step([mixtrain.ops.reshape(-scaled_loss, (1, 1)), None]))
    assert [float(backend.to_numpy(weight).item()) for weight in network.trainable_variables] == [1.0, 0.0]


def test_gradients_may_be_clipped_between_unscaling_and_the_step() -> None:
    network, optimizer = make_pair(opt_level="O2", loss_scale=128.0)
    with amp.scale_loss(mixtrain.Tensor(1.0), optimizer):
        gradients = [mixtrain.ops.ones_like(parameter) for parameter in optimizer.parameters]
    before = backend.to_numpy(next(amp.master_params(optimizer)))
    unscaled = optimizer.scaler.unscale_(gradients, optimizer)
    assert bool(optimizer.apply_gradients(zip([gradient * 128.0 for gradient in unscaled], optimizer.parameters)))
    np.testing.assert_allclose(backend.to_numpy(next(amp.master_params(optimizer))), before - 0.1, rtol=1e-6)


@pytest.mark.slow
def test_a_model_scales_by_the_optimizers_scaler_and_reports_it() -> None:
    network = nn.SequentialCell(nn.Dense(6, 3))
    network, optimizer = amp.initialize(
        network, nn.Momentum(network.trainable_params(), 0.1, 0.9), opt_level="O2", verbosity=0
    )
    optimizer.scaler.update(2.0**24)  # so large that the first step overflows
    model = mixtrain.Model(network, nn.CrossEntropyLoss(), optimizer)
    assert model.precision_report() is amp.applied_plan(network).plan  # type: ignore[union-attr]
    history = model.train(1, [(X, Y)] * 16, verbose=0)
    skipped = history["skipped_steps"][0]
    assert 0 < skipped < 16 and optimizer.scaler.get_scale() == 2.0 ** (24 - skipped)
    assert formats_of(network) == [HALF, HALF] and int(backend.to_numpy(optimizer.global_step).item()) == 16 - skipped
    with pytest.raises(ValueError, match="got amp.scale_loss after a train step"):
        with amp.scale_loss(mixtrain.Tensor(1.0), optimizer):
            pass


def test_a_model_refuses_a_second_precision_and_a_second_scale() -> None:
    network, optimizer = make_pair(opt_level="O2")
    with pytest.raises(ValueError, match="the loss is scaled once"):
        mixtrain.Model(
            network, nn.CrossEntropyLoss(), optimizer, loss_scale_manager=mixtrain.DynamicLossScaleManager()
        )
    with pytest.raises(ValueError, match="Model: the precision of a network is decided once"):
        mixtrain.Model(network, nn.CrossEntropyLoss(), optimizer, amp_level="O3")


@pytest.mark.slow
def test_a_keras_network_with_a_keras_optimizer_learns_in_a_compiled_loop() -> None:
    keras.utils.set_random_seed(3)
    network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "relu"), keras.layers.Dense(3)])
    network, optimizer = amp.initialize(
        network, keras.optimizers.Adam(0.05), opt_level="O2", cast_model_type="bfloat16", verbosity=0
    )
    assert str(network.layers[0].kernel.dtype) == "bfloat16"
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def forward(x: Any, y: Any) -> Any:
        loss = loss_fn(y, network(x, training=True))
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            return scaled_loss, loss

    @mixtrain.jit
    def step(x: Any, y: Any) -> Any:
        gradient_of = mixtrain.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
        (_, loss), gradients = gradient_of(x, y)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss

    losses = [float(step(mixtrain.Tensor(X), mixtrain.Tensor(Y))) for _ in range(12)]
    assert losses[-1] < 0.7 * losses[0] and int(optimizer.iterations) == 12
    assert np.float32(optimizer.learning_rate) == np.float32(0.05)
    optimizer.learning_rate = 0.25
    assert float(optimizer.inner.learning_rate) == 0.25


@pytest.mark.slow
def test_a_model_trains_a_keras_network_under_o1_and_resumes_with_its_optimizer(tmp_path: Any) -> None:
    def make() -> tuple[Any, mixtrain.Model]:
        keras.utils.set_random_seed(3)
        network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, "tanh"), keras.layers.Dense(3)])
        network, optimizer = amp.initialize(
            network, keras.optimizers.Adam(0.05), opt_level="O1", cast_model_type="bfloat16", verbosity=0
        )
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return optimizer, mixtrain.Model(network, loss_fn, optimizer)

    optimizer, model = make()
    seen: list[str] = []
    call = model.predict_network.layers[1].call
    object.__setattr__(
        model.predict_network.layers[1], "call", lambda x, **kw: seen.append(x.dtype.name) or call(x, **kw)
    )
    history = model.train(2, [(X, Y)] * 8, verbose=0)
    assert set(seen) == {"bfloat16"} and history["loss"][1] < history["loss"][0]
    assert history["skipped_steps"] == [0, 0] and optimizer.scaler.get_growth_tracker() == 16
    mixtrain.save_checkpoint(model.train_network, str(tmp_path / "run.ckpt"))
    other, again = make()
    mixtrain.load_param_into_net(again.train_network, mixtrain.load_checkpoint(str(tmp_path / "run.ckpt")))
    assert other.scaler.get_growth_tracker() == 16 and int(other.iterations) == 16
    assert again.train(1, [(X, Y)] * 3, verbose=0)["loss"] == model.train(1, [(X, Y)] * 3, verbose=0)["loss"]
