"""Networks that share layers: each plan in force where it was put last, back where it was, Keras's functions anew."""

from __future__ import annotations

import copy
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend, nn
from mixtrain.network.walk import tree_of
from mixtrain.trace_version import Version, version_of
from tests.precision.zoo_trace import contradicted, recording

L = keras.layers
X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)


def networks() -> tuple[keras.Model, keras.Model]:
    """Return an encoder, and an autoencoder that holds it."""
    encoder = keras.Sequential([keras.Input((6,)), L.Dense(5, name="one"), L.Dense(4, name="two")], name="encoder")
    return encoder, keras.Sequential([keras.Input((6,)), encoder, L.Dense(6, name="decoder")])


def cells() -> tuple[nn.Cell, nn.Cell]:
    encoder = nn.SequentialCell(nn.Dense(6, 5), nn.Dense(5, 4))
    return encoder, nn.SequentialCell(encoder, nn.Dense(4, 6))


def put(network: Any, level: str, half: str = "bfloat16") -> amp.AppliedPlan:
    return amp.apply_plan(network, amp.plan_precision(network, level, cast_model_type=half))


def output(network: Any) -> np.ndarray:
    return np.asarray(backend.to_numpy(network(backend.to_tensor(X))))


@pytest.mark.parametrize("make", [networks, cells])
def test_the_plan_put_last_is_in_force_and_the_one_before_comes_back(make: Any) -> None:
    encoder, auto = make()
    exact, pristine = output(encoder), set(vars(encoder))
    large = put(auto, "O2")
    half = output(encoder)
    assert not np.array_equal(half, exact) and large.in_force
    small = put(encoder, "O0")
    np.testing.assert_array_equal(output(encoder), exact)
    assert small.in_force and not large.in_force
    large.enforce()
    np.testing.assert_array_equal(output(encoder), half)
    assert large.in_force and not small.in_force
    large.undo()
    assert small.in_force and not large.in_force
    np.testing.assert_array_equal(output(encoder), exact)
    small.undo()
    assert set(vars(encoder)) == pristine


@pytest.mark.parametrize("make", [networks, cells])
def test_undoing_a_plan_in_the_middle_leaves_the_others(make: Any) -> None:
    encoder, auto = make()
    first, second = put(auto, "O2"), put(encoder, "O3", "float16")
    third = put(layer := list(encoder.layers if make is networks else encoder)[0], "O0")
    exact = output(layer)
    second.undo()
    np.testing.assert_array_equal(output(layer), exact)
    third.undo()
    assert first.in_force
    assert amp.applied_plan(auto) is first and amp.applied_plan(encoder) is None


def test_every_row_of_the_plan_in_force_is_what_its_layer_does() -> None:
    encoder, auto = networks()
    plans = [put(auto, "O2"), put(encoder, "O1", "float16")]
    for _ in range(2):
        for applied in plans:
            applied.enforce()
            with recording(applied.plan) as seen:
                applied.network(X)
            assert contradicted(applied.plan, seen) == []


def versions(network: Any) -> list[Version]:
    """Return what calls of a network are traced under."""
    return [version_of(node.layer) for node in tree_of(network).walk()]


def test_what_was_compiled_is_used_again_once_all_is_as_it_was() -> None:
    encoder, auto = networks()
    plain = versions(auto)
    large = put(auto, "O2")
    version = versions(auto)
    small = put(encoder, "O0")
    assert plain != version and versions(auto) not in (plain, version)
    small.undo()
    assert versions(auto) == version
    again = put(auto, "O2")
    assert versions(auto) == version and not large.in_force
    again.undo()
    assert versions(auto) == plain


def test_plans_that_agree_on_shared_layers_change_nothing_there() -> None:
    body = L.Dense(5, name="body")
    first = keras.Sequential([keras.Input((6,)), body, L.Dense(1)])
    second = keras.Sequential([keras.Input((6,)), body, L.Dense(2)])
    one, two = put(first, "O2"), put(second, "O2")
    version = versions(first) + versions(second)
    for applied in (one, two, one):
        assert applied.in_force
        applied.enforce()
    assert versions(first) + versions(second) == version
    one.undo()
    assert two.in_force and body.compute_dtype == "bfloat16"


def test_a_row_that_cannot_be_put_in_force_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, auto = networks()
    put(encoder, "O1")
    before, plan = output(encoder), amp.plan_precision(auto, "O3")

    def refuse(*_: Any) -> Any:
        raise RuntimeError("no cast here")

    monkeypatch.setattr("mixtrain.precision.row_effect._with_own_policy", refuse)
    with pytest.raises(RuntimeError, match="no cast here"):
        amp.apply_plan(auto, plan)
    monkeypatch.undo()
    np.testing.assert_array_equal(output(encoder), before)
    assert amp.applied_plan(auto) is None and amp.applied_plan(encoder).in_force


def test_a_deep_copy_of_a_planned_cell_has_a_plan_of_its_own() -> None:
    _, net = cells()
    exact = output(net)
    put(net, "O3")
    copied = copy.deepcopy(net)
    np.testing.assert_array_equal(output(copied), half := output(net))
    amp.applied_plan(copied).undo()
    np.testing.assert_array_equal(output(copied), exact)
    np.testing.assert_array_equal(output(net), half)
    assert amp.applied_plan(net).in_force
    part = copy.deepcopy(net[0])
    put(part, "O0")
    assert part[0].cast_rule.inputs is None and net[0][0].cast_rule.inputs == "bfloat16"


# ---- Keras's own functions ----------------------------------------------------------------------------------------
def predicted(network: keras.Model) -> np.ndarray:
    return np.asarray(network.predict(X, verbose=0))


@pytest.mark.slow
def test_keras_predicts_with_the_plan_in_force_also_in_networks_that_hold_the_layers() -> None:
    encoder, auto = networks()
    exact = predicted(encoder), predicted(auto)
    large = put(auto, "O2")
    assert not np.array_equal(predicted(encoder), exact[0]) and not np.array_equal(predicted(auto), exact[1])
    small = put(encoder, "O0")
    np.testing.assert_array_equal(predicted(encoder), exact[0])
    mixed = predicted(auto)
    small.undo()
    assert not np.array_equal(predicted(auto), mixed)
    large.undo()
    np.testing.assert_array_equal(predicted(encoder), exact[0])
    np.testing.assert_array_equal(predicted(auto), exact[1])
    # No plan is in force on the larger one now; it is known all the same.
    put(encoder, "O3")
    assert not np.array_equal(predicted(auto), exact[1])


@pytest.mark.slow
def test_keras_evaluates_and_fits_with_the_plan_in_force_and_keeps_what_is_not_stale() -> None:
    encoder, _ = networks()
    encoder.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=False)
    data: Any = (X, np.zeros((8, 4), np.float32))

    def losses() -> tuple[float, float]:
        return encoder.evaluate(*data, verbose=0), encoder.fit(*data, verbose=0).history["loss"][0]

    exact = losses()
    applied = put(encoder, "O3")
    half = losses()
    assert half[0] != exact[0] and half[1] != exact[1]
    functions = encoder.test_function, encoder.train_function
    put(encoder, "O3")
    assert (encoder.test_function, encoder.train_function) == functions
    amp.applied_plan(encoder).undo()
    assert not applied.in_force
    np.testing.assert_allclose(losses(), exact, rtol=1e-6)


def test_a_plan_may_change_in_the_midst_of_keras_s_fit() -> None:
    encoder, _ = networks()
    encoder.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=False)
    change = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: put(encoder, "O3"))
    encoder.fit(X, np.zeros((8, 4), np.float32), batch_size=4, verbose=0, callbacks=[change])
    assert encoder.layers[0].compute_dtype == "bfloat16"


# ---- Models -------------------------------------------------------------------------------------------------------
def model(network: Any, level: str = "O0", rate: float = 0.01, **options: Any) -> mixtrain.Model:
    options = {"cast_model_type": "bfloat16", **options}
    return mixtrain.Model(
        network, "mse", keras.optimizers.SGD(rate), amp_level=level, loss_scale_manager=None, **options
    )


def steps(of: mixtrain.Model) -> Any:
    return of._compiled.stepper._training


@pytest.mark.slow
@pytest.mark.parametrize("make", [networks, cells])
def test_the_network_that_runs_last_is_right_and_every_report_is_true(make: Any) -> None:
    encoder, auto = make()
    exact = output(encoder)
    large = model(auto, "O2", rate=0.0)
    large.train(1, [(X, X)], verbose=0)
    small, within = model(encoder, "O0", rate=0.0), "encoder/one" if make is networks else "0.0"
    alone = "one" if make is networks else "0"
    compiled = []
    for _ in range(3):
        assert small.precision_report().row(alone).compute_dtype == "float32"
        # Compiled or not, the last bit may differ; in bfloat16 the third digit would.
        np.testing.assert_allclose(backend.to_numpy(small.predict(X)), exact, rtol=1e-5)
        assert large.precision_report().row(within).compute_dtype == "bfloat16"
        assert not np.array_equal(output(encoder), exact)
        large.train(1, [(X, X)], verbose=0)
        small.train(1, [(X, X[:, :4])], verbose=0)
        compiled.append((steps(large)._compiled, steps(small)._compiled))
    # Neither is compiled again for the other's sake.
    assert compiled[0] == compiled[1] == compiled[2]
    assert large._compiled.stepper.traces() == 1


@pytest.mark.slow
def test_a_model_that_runs_inside_another_s_training_leaves_its_steps_as_planned() -> None:
    encoder, auto = networks()
    seen: list[Any] = []
    encoder.layers[0].activation = _Noting(seen)
    large, small = model(auto, "O2"), model(encoder, "O0")
    small.predict(X)
    assert set(seen) == {"float32"}
    seen.clear()

    class Between(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            small.predict(X)
            assert encoder.layers[0].compute_dtype == "float32"

    # The second batch has another size: its step is traced after the other network has run.
    large.train(1, [(X, X), (X[:4], X[:4])], callbacks=Between(), verbose=0)
    assert set(seen) == {"bfloat16"}


class _Noting:
    """An activation that notes the format that it is given."""

    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def __call__(self, x: Any) -> Any:
        self._seen.append(keras.backend.standardize_dtype(x.dtype))
        return x


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O2", "O0"])
def test_a_gan_s_two_networks_train_in_turn_as_keras_trains_them(level: str) -> None:
    def parts() -> tuple[keras.Model, keras.Model, keras.Model]:
        keras.utils.set_random_seed(3)
        generator = keras.Sequential([keras.Input((3,)), L.Dense(6, activation="tanh")], name="generator")
        hidden = L.Dense(5, activation="relu")
        judge = keras.Sequential([keras.Input((6,)), hidden, L.Dense(1, activation="sigmoid")], name="judge")
        return generator, judge, keras.Sequential([keras.Input((3,)), generator, judge])

    noise, ones = X[:, :3], np.ones((8, 1), np.float32)

    def losses(generator: keras.Model, judge: Any, both: Any) -> list[float]:
        result = []
        for _ in range(3):
            result.append(judge(np.concatenate([X, np.asarray(generator(noise))]), np.concatenate([ones, 0 * ones])))
            result.append(both(noise, ones))
        return result

    theirs, ours = parts(), parts()
    for network in (*theirs[1:],):
        network.compile(keras.optimizers.SGD(0.1), "binary_crossentropy", jit_compile=False)
    expected = losses(
        theirs[0], *(lambda x, y, net=net: net.fit(x, y, batch_size=16, verbose=0).history["loss"][0]
                     for net in theirs[1:]),
    )
    models = [
        mixtrain.Model(net, "binary_crossentropy", keras.optimizers.SGD(0.1), amp_level=level,
                       cast_model_type="bfloat16") for net in ours[1:]
    ]
    result = losses(ours[0], *(lambda x, y, m=m: m.train(1, [(x, y)], verbose=0)["loss"][0] for m in models))
    np.testing.assert_allclose(result, expected, rtol=1e-6 if level == "O0" else 2e-2)
    assert [item._compiled.stepper.traces() for item in models] == [1, 1]
    for item in models:
        with recording(plan := item.precision_report()) as seen:
            item.predict_network(X if item is models[0] else noise)
        assert contradicted(plan, seen) == []
