"""Two Models alive: what happens to one never retraces the other, and a change of its own layers does."""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend, nn, ops
from mixtrain.precision import plan_inputs
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import ON_TENSORFLOW, on_jax_only_some, quick_only_some

L = keras.layers
X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((8, 2)).astype(np.float32)
DATA = [(X, Y)]


@pytest.fixture(autouse=True)
def _one_step_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many steps a call runs depends on the time that they take, and each number is a trace of its own."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 1)


class Traced:
    """A network whose Python code is counted: it runs where something is traced.

    Attributes:
        network: The network.
        first: Its first layer.
        runs: How often its code ran.
    """

    def __init__(self, kind: str, first: Any = None) -> None:
        self.runs = 0
        if kind == "keras":
            self.first = first or L.Dense(5)
            body = [keras.Input((6,)), self.first, L.Dense(4, activation=self._counting), L.Dense(2)]
            self.network: Any = keras.Sequential(body)
        else:
            self.first = first or nn.Dense(6, 5)
            self.network = nn.SequentialCell(self.first, _Counting(self), nn.Dense(5, 2))

    def _counting(self, x: Any) -> Any:
        self.runs += 1
        return keras.ops.relu(x)


class _Counting(nn.Cell):
    def __init__(self, counted: Traced) -> None:
        super().__init__()
        self.counted = counted

    def construct(self, x: Any) -> Any:
        self.counted.runs += 1
        return ops.relu(x)


class Used:
    """A network in every compiled call that a user makes of it: step, evaluation, prediction and a function."""

    def __init__(self, kind: str, level: str = "O0", first: Any = None) -> None:
        self.traced = Traced(kind, first)
        self.network = network = self.traced.network
        weights = {} if kind == "keras" else {"params": network.trainable_params()}
        optimizer = nn.SGD(weights["params"], 0.0) if weights else keras.optimizers.SGD(0.0)
        loss = "mse" if kind == "keras" else nn.MSELoss()
        self.model = mixtrain.Model(
            network, loss, optimizer, metrics={"loss"} if kind == "cells" else None, amp_level=level,
            cast_model_type="bfloat16", loss_scale_manager=None,
        )
        self.function = mixtrain.jit(lambda x: network(x))

    @property
    def first_cell(self) -> nn.Cell:
        """Return a cell of the network: the train cell, where it is Keras's."""
        return self.model.train_network if isinstance(self.network, keras.Layer) else self.network

    def run(self) -> np.ndarray:
        """Call all, and return what the network predicts."""
        self.model.train(1, DATA, verbose=0)
        self.model.eval(DATA)
        predicted = backend.to_numpy(self.model.predict(X))
        # In the mode and under the plan that `predict` leaves.
        called = backend.to_numpy(self.function(backend.to_tensor(X)))
        # XLA may round to bfloat16 in other places.
        np.testing.assert_allclose(called, predicted, atol=0.02)
        return predicted

    def traces(self) -> int:
        """Return how often Python ran in a round of all calls."""
        before = self.traced.runs
        self.run()
        return self.traced.runs - before


KINDS = ["keras", "cells"]


def _hooks(used: Used) -> Iterator[None]:
    cell = used.model.train_network
    handles = [
        cell.register_forward_pre_hook(lambda cell, inputs: None),
        cell.register_forward_hook(lambda cell, inputs, output: output),
        used.first_cell.register_backward_hook(lambda cell, of_inputs, of_outputs: None),
    ]
    yield
    for handle in handles:
        handle.remove()
    yield


def _modes(used: Used) -> Iterator[None]:
    used.model.train_network.set_train(True)
    yield
    used.model.train_network.set_train(False)
    yield


def _plans(used: Used) -> Iterator[None]:
    applied = amp.apply_plan(used.network, amp.plan_precision(used.network, "O3", cast_model_type="bfloat16"))
    yield
    applied.undo()
    yield


def _rules(used: Used) -> Iterator[None]:
    mixtrain.to_float(used.network, mixtrain.bfloat16)
    yield
    amp.auto_mixed_precision(used.network, "O2", "bfloat16")
    yield


def _initialized(used: Used) -> Iterator[None]:
    network = Traced("keras" if isinstance(used.network, keras.Layer) else "cells").network
    amp.initialize(network, keras.optimizers.SGD(0.1), opt_level="O2", cast_model_type=mixtrain.bfloat16)
    yield


def _recorded(used: Used) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, mixtrain.SummaryRecord(folder):
        yield
    yield


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs"), on_jax_only_some([("keras", "cells"), ("cells", "keras")]))
def test_nothing_that_happens_to_one_model_traces_another(ours: str, theirs: str) -> None:
    one = Used(ours)
    one.run()
    assert one.traces() == 0
    other = Used(theirs, "O2")
    assert one.traces() == 0
    other.model.train(1, DATA, verbose=0)
    assert one.traces() == 0
    for change in (_hooks, _modes, _plans, _rules, _initialized, _recorded):
        for _ in change(other):
            other.model.predict(X)
            assert one.traces() == 0, change.__name__
    del other
    gc.collect()
    assert one.traces() == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_for_a_layer_of_its_own_retraces_all_calls_of_a_network(kind: str) -> None:
    used = Used(kind, "O2")
    plain = used.run()
    mixtrain.to_float(used.network, mixtrain.float32)
    assert used.traces() >= 4
    exact = used.run()
    assert used.traces() == 0
    assert not np.array_equal(exact, plain) and np.abs(exact - plain).max() < 0.1
    np.testing.assert_allclose(exact, backend.to_numpy(used.network(backend.to_tensor(X))), atol=1e-5)


@pytest.mark.slow
def test_a_hook_of_its_own_retraces_all_calls_of_a_network_and_so_does_its_removal() -> None:
    used = Used("cells")
    plain = used.run()
    handle = used.network.register_forward_hook(lambda cell, inputs, output: output * 2)
    assert used.traces() >= 4
    doubled = used.run()
    np.testing.assert_array_equal(doubled, 2 * plain)
    handle.remove()
    assert used.traces() >= 4
    np.testing.assert_array_equal(used.run(), plain)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_that_is_undone_brings_the_traces_of_before_back(kind: str) -> None:
    used = Used(kind)
    plain = used.run()
    applied = amp.apply_plan(used.network, amp.plan_precision(used.network, "O3", cast_model_type="bfloat16"))
    half = backend.to_numpy(used.function(backend.to_tensor(X)))
    assert not np.array_equal(half, plain) and np.abs(half - plain).max() < 0.1
    applied.undo()
    assert used.traces() == 0
    amp.apply_plan(used.network, applied.plan)
    before = used.traced.runs
    again = backend.to_numpy(used.function(backend.to_tensor(X)))
    assert used.traced.runs == before
    np.testing.assert_array_equal(again, half)


@pytest.mark.slow
@pytest.mark.parametrize("kind", on_jax_only_some(KINDS))
def test_a_change_of_a_layer_that_two_networks_share_retraces_both(kind: str) -> None:
    one = Used(kind, "O2")
    two = Used(kind, "O2", first=one.traced.first)
    one.run()
    two.run()
    assert (one.traces(), two.traces()) == (0, 0)
    mixtrain.to_float(one.traced.first, mixtrain.float32)
    assert one.traces() >= 4 and two.traces() >= 4
    assert (one.traces(), two.traces()) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_network_is_planned_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = Used(kind, "O2")
    used.run()
    planned: list[int] = []
    monkeypatch.setattr("mixtrain.precision.planned.plan_precision", lambda *args, **kwargs: planned.append(1))
    monkeypatch.setattr("mixtrain.precision.plan_inputs.tree_of", lambda *args: planned.append(2))
    for _ in range(3):
        used.run()
        used.model.precision_report()
    assert planned == []


@pytest.mark.slow
def test_a_layer_that_is_added_to_a_network_is_planned_and_run() -> None:
    used = Used("cells", "O2")
    used.run()
    used.network.append(nn.Dense(2, 3))
    assert used.model.predict(X).shape == (8, 3)
    assert used.model.precision_report().row("3").compute_dtype == "bfloat16"
    network = keras.Sequential([keras.Input((6,)), L.Dense(5)])
    model = mixtrain.Model(network, amp_level="O2", cast_model_type="bfloat16")
    assert model.predict(X).shape == (8, 5)
    network.add(L.Dense(3, name="added"))
    assert model.predict(X).shape == (8, 3)
    assert model.precision_report().row("added").compute_dtype == "bfloat16"


def test_a_policy_that_a_keras_layer_is_given_is_planned_with() -> None:
    network = keras.Sequential([keras.Input((6,)), L.Dense(5, name="body"), L.Dense(2)])
    model = mixtrain.Model(network)
    exact = backend.to_numpy(model.predict(X))
    network.layers[0].dtype_policy = "mixed_bfloat16"
    assert model.precision_report().row("body").compute_dtype == "bfloat16"
    assert not np.array_equal(backend.to_numpy(model.predict(X)), exact)


class _Registry:
    """Holds networks where no attribute, closure or global of a user's code leads."""

    __slots__ = ("networks",)

    def __init__(self) -> None:
        self.networks: dict[str, Any] = {}


REGISTRY = _Registry()


@pytest.fixture
def registered() -> Iterator[Traced]:
    traced = Traced("cells")
    REGISTRY.networks["net"] = traced.network
    yield traced
    REGISTRY.networks.clear()


@pytest.mark.slow
def test_a_function_is_traced_again_for_cells_that_it_finds_only_while_it_runs(registered: Traced) -> None:
    function = mixtrain.jit(lambda x: REGISTRY.networks["net"](x))
    x = mixtrain.Tensor(X)
    exact = function(x).asnumpy()
    assert mixtrain.to_float(registered.network, mixtrain.float16) is registered.network
    half = function(x)
    assert half.dtype == mixtrain.float16 and np.abs(half.asnumpy() - exact).max() < 0.05
    runs = registered.runs
    mixtrain.to_float(Traced("cells").network, mixtrain.float16)
    function(x)
    assert registered.runs == runs


@pytest.mark.slow
def test_a_loss_function_s_own_network_retraces_the_step_that_calls_it() -> None:
    judge = Traced("cells")
    judge.network[0].register_forward_hook(lambda cell, inputs, output: output)
    net = nn.Dense(6, 6)

    def loss(outputs: Any, label: Any) -> Any:
        return ops.reduce_mean(ops.square(judge.network(outputs) - label))

    model = mixtrain.Model(net, loss, nn.SGD(net.trainable_params(), 0.0))
    first = model.train(1, DATA, verbose=0)["loss"][0]
    runs = judge.runs
    assert model.train(1, DATA, verbose=0)["loss"][0] == first and judge.runs == runs
    judge.network.register_forward_hook(lambda cell, inputs, output: output * 0.0)
    assert model.train(1, DATA, verbose=0)["loss"][0] == pytest.approx(float(np.mean(Y**2)), rel=1e-5)
    assert judge.runs > runs


def test_a_recorder_retraces_the_steps_that_have_summary_operations(tmp_path: Any) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.runs = 0
            self.fc = nn.Dense(6, 2)
            self.summary = ops.ScalarSummary()

        def construct(self, x: Any) -> Any:
            self.runs += 1
            y = self.fc(x)
            self.summary("mean", ops.reduce_mean(y))
            return y

    net = Net()
    model = mixtrain.Model(net)
    model.predict(X)
    runs = net.runs
    with mixtrain.SummaryRecord(str(tmp_path)):
        model.predict(X)
        recorded = net.runs
        assert recorded > runs
        with mixtrain.SummaryRecord(str(tmp_path)):  # Somebody records in any case.
            model.predict(X)
        assert net.runs == recorded
    model.predict(X)
    assert net.runs > recorded


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_evaluating_and_predicting_an_unchanged_network_neither_walks_over_it_nor_switches_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = Used(kind)
    walked: list[str] = []

    def noting(name: str, function: Any) -> Any:
        return lambda *args: walked.append(name) or function(*args)  # type: ignore[func-returns-value]

    for owner, name in ((nn.Cell, "cells_and_names"), (nn.Cell, "set_train"), (plan_inputs, "tree_of")):
        monkeypatch.setattr(owner, name, noting(name, getattr(owner, name)))
    used.model.eval(DATA)
    # A Keras network gets its mode with each call.
    assert ("cells_and_names" in walked) == (kind == "cells")
    used.model.eval(DATA)
    used.model.predict(X)
    walked.clear()
    for _ in range(2):
        used.model.eval(DATA)
        used.model.predict(X)
    assert walked == []
    used.model.train_network.set_train(True)  # A change that must be seen.
    walked.clear()
    used.model.eval(DATA)
    assert ("set_train" in walked) == (kind == "cells")
    assert kind == "keras" or not used.first_cell.training


def _table_sizes() -> dict[str, int]:
    """Return how much mixtrain's modules and classes hold in tables that last as long as the process."""
    result = {}
    for name, module in list(sys.modules.items()):
        if name == "mixtrain" or name.startswith("mixtrain."):
            for key, value in list(vars(module).items()):
                holders = {key: value, **(dict(vars(value)) if isinstance(value, type) else {})}
                for inner, table in holders.items():
                    if isinstance(table, (dict, list, set)) or type(table).__name__.startswith("Weak"):
                        result[f"{name}.{key}.{inner}"] = len(table)
    return result


@pytest.mark.parametrize("kind", quick_only_some(KINDS, ()) if ON_TENSORFLOW else list(KINDS)[1:])
def test_many_models_in_a_row_leave_nothing_behind(kind: str) -> None:
    def one() -> None:
        used = Used(kind, "O2")
        used.model.predict(X)
        used.function(backend.to_tensor(X))

    one()
    gc.collect()
    before = _table_sizes()
    for _ in range(3):
        one()
    gc.collect()
    assert {name: size for name, size in _table_sizes().items() if size > before.get(name, 0)} == {}
