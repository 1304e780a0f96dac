"""GradScaler in loops: what is scaled, what is skipped, what is refused; eager, compiled, with XLA, in Keras."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, backend, nn, ops
from mixtrain.amp import GradScaler
from mixtrain.loss_scale.rule import LossScaleRule
from tests.backends import MODES, gradient_of


def weight(*values: float, name: str = "w") -> Parameter:
    return Parameter(np.array(values or (1.0,), np.float32), name=name)


def momentum(*weights: Any) -> nn.Momentum:
    return nn.Momentum(list(weights), 0.5, 0.5)


def gradients(scaler: GradScaler, variable: Any, slope: Any) -> list[Any]:
    """Return the gradient of the scaled loss ``slope * variable`` in a list: the slope, scaled."""
    slope = backend.to_tensor(slope, "float32")
    return gradient_of(lambda: scaler.scale(keras.ops.sum(slope * variable.value)), variable)


def numbers(variables: Any) -> list[Any]:
    return [backend.to_numpy(variable).tolist() for variable in variables]


# ---- the scale ------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_four_batches_of_which_the_third_overflows_equal_a_control_without_the_third(mode: str) -> None:
    scaler, w, control = GradScaler(128, 2.0, 0.5, 1), weight(1.0), weight(1.0)
    optimizer, plain = momentum(w), momentum(control)

    def step(slope: Any) -> Any:
        applied = scaler.step(optimizer, gradients(scaler, w, slope), [w])
        scaler.update()
        return applied

    run = MODES[mode](step)
    applied = [bool(run(Tensor(slope))) for slope in (0.25, 3.0, math.inf, -1.5)]
    for slope in (0.25, 3.0, -1.5):
        plain((Tensor([slope]),))
    assert applied == [True, True, False, True]
    assert scaler.get_scale() == 128 * 2**3 * 0.5
    assert numbers([w, optimizer.moments[0]]) == numbers([control, plain.moments[0]])
    assert numbers([optimizer.global_step]) == [[3]]


def test_the_defaults_are_pytorchs() -> None:
    scaler = GradScaler()
    assert scaler.state_dict() == {
        "scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0,
    }
    assert scaler.is_enabled() is True


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_a_loss_is_scaled_in_float32(dtype: str) -> None:
    loss = keras.ops.cast(60000, dtype)
    scaled = GradScaler(2.0**20).scale(loss)
    assert scaled.dtype == mixtrain.float32
    assert float(scaled) == float(loss) * 2.0**20


def test_structures_variables_numbers_and_float64_are_scaled_and_none_stays() -> None:
    scaler, double = GradScaler(8.0), Tensor(5.0, mixtrain.float64)
    result = scaler.scale({"a": (Tensor(2.0), None), "b": [weight(3.0), 4.0, double]})
    assert result["a"][1] is None and result["b"][2].dtype == double.dtype
    assert [float(value) for value in (result["a"][0], result["b"][0][0], *result["b"][1:])] == [16, 24, 32, 40]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_setters_hold_in_functions_that_are_compiled_already(mode: str) -> None:
    scaler, w = GradScaler(16.0, growth_interval=1), weight()
    optimizer = momentum(w)

    def step(slope: Any) -> None:
        scaler.step(optimizer, gradients(scaler, w, slope), [w])
        scaler.update()

    run = MODES[mode](step)
    run(Tensor(1.0))
    scaler.set_growth_factor(3.0)
    run(Tensor(1.0))
    scaler.set_backoff_factor(0.25)
    run(Tensor(math.nan))
    scaler.set_growth_interval(2)
    run(Tensor(1.0))
    assert (scaler.get_scale(), scaler.get_growth_tracker()) == (24.0, 1)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.25, 2)


def test_an_interval_set_below_the_tracker_grows_the_scale_at_the_next_good_iteration() -> None:
    scaler, w = GradScaler(16.0, growth_interval=100), weight()
    scaler.load_state_dict({**scaler.state_dict(), "_growth_tracker": 50})
    scaler.set_growth_interval(10)
    scaler.step(momentum(w), gradients(scaler, w, 1.0), [w])
    scaler.update()
    assert scaler.get_scale() == 32.0


@pytest.mark.parametrize("new_scale", [40.0, Tensor([40.0]), np.float32(40)])
def test_update_sets_a_new_scale_without_a_step_and_keeps_the_tracker(new_scale: Any) -> None:
    scaler = GradScaler(16.0)
    scaler.load_state_dict({**scaler.state_dict(), "_growth_tracker": 7})
    scaler.update(new_scale)
    assert (scaler.get_scale(), scaler.get_growth_tracker()) == (40.0, 7)


def test_in_a_compiled_function_the_scale_is_a_tensor_and_a_new_one_is_kept_in_range() -> None:
    scaler = GradScaler(16.0)

    @mixtrain.jit
    def run(value: Any) -> Any:
        scaler.update(value)
        return scaler.get_scale(), scaler.get_growth_tracker()

    assert [float(run(Tensor(value))[0]) for value in (40.0, 0.0, math.inf, math.nan)] == [
        40.0, 2.0**-126, float(np.finfo(np.float32).max), 1.0,
    ]
    assert int(run(Tensor(2.0))[1]) == 0


def test_a_state_goes_from_one_scaler_to_another() -> None:
    scaler, other, w = GradScaler(64.0, 3.0, 0.25, 5), GradScaler(), weight()
    scaler.step(momentum(w), gradients(scaler, w, 1.0), [w])
    scaler.update()
    state = scaler.state_dict()
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert state["_growth_tracker"] == 1 and state["scale"] == 64.0


def test_a_state_with_the_settings_in_force_is_taken_also_where_they_are_those_of_a_scale_that_stays() -> None:
    scaler = GradScaler(64.0)
    scaler.state.change_rule(LossScaleRule(1.0, 1, backoff=1.0))
    scaler.load_state_dict({**scaler.state_dict(), "scale": 8.0})
    assert (scaler.get_scale(), scaler.get_growth_factor()) == (8.0, 1.0)


# ---- skipping -------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_skipped_step_leaves_its_optimizer_alone_bit_for_bit_and_another_one_steps(mode: str) -> None:
    scaler, w, v = GradScaler(2.0**10), weight(1.0, 2.0), keras.Variable(np.ones(2, np.float32), name="v")
    first, second = keras.optimizers.Adam(0.1), nn.Momentum([w], 0.5, 0.9)
    first.build([v])

    def step(slope_v: Any, slope_w: Any) -> Any:
        grads_v, grads_w = gradients(scaler, v, slope_v), gradients(scaler, w, slope_w)
        applied = scaler.step(first, grads_v, [v]), scaler.step(second, grads_w, [w])
        scaler.update()
        return applied

    run = MODES[mode](step)
    run(Tensor(0.3), Tensor(0.7))
    before, others = numbers([v, *first.variables]), numbers([w, *second.moments, second.global_step])
    applied = run(Tensor(math.inf), Tensor(0.7))
    assert [bool(item) for item in applied] == [False, True]
    assert all(item.dtype == mixtrain.bool_ and item.shape == () for item in applied)
    assert numbers([v, *first.variables]) == before and int(first.iterations) == 1
    after = numbers([w, *second.moments, second.global_step])
    assert after[0] != others[0] and after[1] != others[1] and after[2] == [2]
    assert (scaler.get_scale(), scaler.get_growth_tracker()) == (2.0**9, 0)


def test_several_losses_share_the_scale_and_accumulated_micro_batches_are_one_iteration() -> None:
    scaler, w = GradScaler(2.0**10, growth_interval=1), weight(0.0)
    optimizer = nn.SGD([w], 1.0)
    grads = [ops.addn([gradients(scaler, w, slope)[0] for slope in (1.0, 2.0, 4.0)])]
    scaler.step(optimizer, grads, [w])
    scaler.update()
    assert numbers([w]) == [[-7.0]] and scaler.get_scale() == 2.0**11


def test_a_bad_micro_batch_skips_the_whole_sum() -> None:
    scaler, w = GradScaler(), weight(0.0)
    grads = [ops.addn([gradients(scaler, w, slope)[0] for slope in (1.0, math.inf, 4.0)])]
    assert bool(scaler.step(nn.SGD([w], 1.0), grads, [w])) is False
    assert numbers([w]) == [[0.0]]


def test_gradients_are_clipped_between_unscaling_and_the_step() -> None:
    scaler, w = GradScaler(2.0**10), weight(0.0)
    optimizer = nn.SGD([w], 1.0)
    grads = scaler.unscale_(tuple(gradients(scaler, w, 8.0)), optimizer)
    assert isinstance(grads, tuple) and numbers(grads) == [[8.0]]
    scaler.step(optimizer, [keras.ops.clip(grads[0], -1.0, 1.0)], [w])
    assert numbers([w]) == [[-1.0]]


def test_gradients_that_were_not_finite_are_skipped_even_if_mended_and_those_spoilt_by_clipping_are_too() -> None:
    scaler, w = GradScaler(2.0**10), weight(0.0)
    optimizer = nn.SGD([w], 1.0)
    scaler.unscale_(gradients(scaler, w, math.nan), optimizer)
    assert bool(scaler.step(optimizer, [Tensor([1.0])], [w])) is False
    scaler.update()
    scaler.unscale_(gradients(scaler, w, 1.0), optimizer)
    assert bool(scaler.step(optimizer, [Tensor([math.nan])], [w])) is False
    scaler.update()
    assert numbers([w]) == [[0.0]] and scaler.get_scale() == 2.0**8


def test_a_gradient_that_a_tiny_scale_would_make_infinite_is_skipped() -> None:
    scaler, w = GradScaler(2.0**-126), weight(0.0)
    scaler.scale(Tensor(0.0))
    assert bool(scaler.step(nn.SGD([w], 1.0), [Tensor([1e10])], [w])) is False


def test_half_gradients_are_unscaled_in_float32_and_float64_stays() -> None:
    scaler, optimizer = GradScaler(2.0**20), keras.optimizers.SGD(1.0)
    scaler.scale(Tensor(0.0))
    given = Tensor([1.0], mixtrain.float16), Tensor([1.0], mixtrain.float64)
    half, double = scaler.unscale_(given, optimizer)
    assert (half.dtype, double.dtype) == (mixtrain.float32, given[1].dtype)
    assert numbers([half, double]) == [[2.0**-20]] * 2


@pytest.mark.parametrize("make", [lambda w, v: nn.SGD([w, v], 1.0), lambda w, v: keras.optimizers.SGD(1.0)])
def test_a_gradient_of_none_leaves_its_variable(make: Any) -> None:
    scaler, w, v = GradScaler(), weight(1.0), weight(2.0, name="v")
    optimizer = make(w, v)
    grads = scaler.unscale_([None, *gradients(scaler, v, 1.0)], optimizer)
    assert grads[0] is None
    scaler.step(optimizer, grads, [w, v])
    assert numbers([w, v]) == [[1.0], [1.0]]


@pytest.mark.slow
@pytest.mark.tensorflow  # JAX's gradients are never sparse.
@pytest.mark.parametrize("mode", MODES)
def test_sparse_gradients_stay_sparse_and_a_bad_row_skips(mode: str) -> None:
    tf = pytest.importorskip("tensorflow")
    scaler, table = GradScaler(2.0**10), keras.Variable(np.zeros((4, 1), np.float32))
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.build([table])
    kinds = []

    def step(slope: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = scaler.scale(tf.reduce_sum(slope * tf.gather(table.value, [2, 2])))
        grads = scaler.unscale_([tape.gradient(loss, table.value)], optimizer)
        kinds.append(backend.is_sparse(grads[0]))
        applied = scaler.step(optimizer, grads, [table])
        scaler.update()
        return applied

    run = MODES[mode](step)
    assert [bool(run(tf.constant(slope))) for slope in (1.0, math.inf)] == [True, False]
    assert all(kinds) and numbers([table]) == [[[0.0], [0.0], [-2.0], [0.0]]]


def test_a_mixtrain_optimizer_knows_its_variables() -> None:
    scaler, w = GradScaler(), weight(1.0)
    assert bool(scaler.step(nn.SGD([w], 1.0), gradients(scaler, w, 1.0))) is True
    assert numbers([w]) == [[0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_disabled_scaler_passes_everything_through(mode: str) -> None:
    scaler, w = GradScaler(enabled=False), weight(1.0)
    optimizer = momentum(w)

    def step(slope: Any) -> Any:
        grads = gradients(scaler, w, slope)
        assert scaler.unscale_(grads, optimizer) is grads
        applied = scaler.step(optimizer, grads, [w])
        scaler.update()
        return applied

    run = MODES[mode](step)
    assert bool(run(Tensor(1.0))) is True and numbers([w]) == [[0.5]]
    assert bool(run(Tensor(math.inf))) is True and not np.isfinite(w.asnumpy()).any()
    assert (scaler.get_scale(), scaler.get_growth_tracker(), scaler.state_dict()) == (1.0, 0, {})
    assert scaler.is_enabled() is False
    scaler.load_state_dict({})


# ---- Keras's own loop -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.tensorflow  # A train_step of one's own is stateless on JAX.
@pytest.mark.parametrize("how", [{"jit_compile": False}, {"jit_compile": True}, {"run_eagerly": True}], ids=str)
def test_a_keras_train_step_skips_the_batch_that_overflows(how: dict[str, bool]) -> None:
    tf = pytest.importorskip("tensorflow")

    class Scaled(keras.Sequential):
        scaler = None

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
                scaled = self.scaler.scale(loss)
            variables = self.trainable_variables
            grads = tape.gradient(scaled, [variable.value for variable in variables])
            applied = self.scaler.step(self.optimizer, grads, variables)
            self.scaler.update()
            return {"loss": loss, "applied": applied}

    model = Scaled([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.scaler = GradScaler(2.0**10)
    model.compile(keras.optimizers.SGD(0.25, momentum=0.5), "mse", **how)
    x, y = np.array([[1.0], [np.inf], [1.0]], np.float32), np.zeros((3, 1), np.float32)
    applied = []
    watch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: applied.append(bool(logs["applied"])))
    model.fit(x, y, batch_size=1, verbose=0, callbacks=[watch], shuffle=False)
    assert applied == [True, False, True]
    assert int(model.optimizer.iterations) == 2 and model.scaler.get_scale() == 2.0**9
    # Weights 1, 0: the gradient is 2 both times; then 0, with half the momentum of the first step.
    assert numbers(model.trainable_variables) == [[[0.25]], [-0.75]]


# ---- bad arguments --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: GradScaler("cuda"), TypeError, "GradScaler: init_scale must be a number; got str 'cuda'"),
        (lambda: GradScaler(0.0), ValueError, "init_scale must be at least 1.17549e-38; got 0.0. Write init_"),
        (lambda: GradScaler(math.inf), ValueError, "init_scale must be finite"),
        (lambda: GradScaler(growth_factor=1.0), ValueError, "growth_factor must be greater than 1; got 1.0. Write"),
        (lambda: GradScaler(backoff_factor=1.0), ValueError, "backoff_factor must be less than 1; got 1.0. Write"),
        (lambda: GradScaler(backoff_factor=0), ValueError, "backoff_factor must be greater than 0; got 0. Write"),
        (lambda: GradScaler(growth_interval=0), ValueError, "growth_interval must be at least 1; got 0. Write"),
        (lambda: GradScaler(growth_interval=2.0), TypeError, "growth_interval must be an int; got float 2.0"),
        (lambda: GradScaler(enabled=1), TypeError, "enabled must be True or False; got int 1"),
        (lambda: GradScaler().set_backoff_factor(2.0), ValueError, "backoff_factor must be less than 1; got 2.0"),
        (lambda: GradScaler().update(-1.0), ValueError, "update: new_scale must be at least"),
        (lambda: GradScaler().load_state_dict(None), TypeError, "state_dict must be a dict; got NoneType None"),
        (lambda: GradScaler().load_state_dict({}), RuntimeError, "must hold a scale; got an empty dict"),
        (lambda: GradScaler().load_state_dict({"scale": 1.0}), ValueError, "must hold ['_growth_tracker', 'b"),
    ],
)
def test_a_bad_argument_is_refused_with_what_to_write(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, o, w: s.step(o, Tensor([1.0]), [w]), TypeError, "step: grads must be a tuple or list"),
        (lambda s, o, w: s.unscale_(None, o), TypeError, "unscale_: grads must be a tuple or list"),
        (lambda s, o, w: s.unscale_(o, [Tensor(1.0)]), TypeError, "must be an optimizer of mixtrain or Keras"),
        (lambda s, o, w: s.step(o, [None], [w]), ValueError, "the loss must depend on some of the optimizer's"),
        (lambda s, o, w: s.step(o, [Tensor(1.0)] * 2, [w]), ValueError, "each of the 1 variables; got '2 grad"),
        (lambda s, o, w: s.step(keras.optimizers.SGD(), [Tensor([1.0])]), ValueError, "variables must be given"),
        (lambda s, o, w: s.unscale_([], nn.SGD([w], 1.0, loss_scale=8.0)), ValueError, "SGD(...) without loss_scale."),
        (lambda s, o, w: s.step(keras.optimizers.SGD(loss_scale_factor=8.0), [], []), ValueError, "_factor=8"),
    ],
)
def test_a_bad_call_is_refused_with_what_to_write(call: Any, error: type[Exception], message: str) -> None:
    scaler, w = GradScaler(), weight()
    scaler.scale(Tensor(1.0))
    with pytest.raises(error) as caught:
        call(scaler, momentum(w), w)
    assert message in str(caught.value)


def test_gradients_that_are_tensors_stay_tensors_with_their_methods() -> None:
    optimizer, scaler = nn.SGD([mixtrain.Parameter(np.ones(2, np.float32), name="w")], 0.5), GradScaler(4.0)
    loss = scaler.scale(mixtrain.Tensor(1.0))
    grads = scaler.unscale_([mixtrain.Tensor([12.0, 16.0])], optimizer)
    applied = scaler.step(optimizer, grads)
    assert (loss.item(), grads[0].norm().item(), bool(applied.asnumpy())) == (4.0, 5.0, True)
