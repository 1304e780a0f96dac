"""Every callback of the package keeps the contract: hooks, own state, truthful `observes_only`, every kind of run."""

from __future__ import annotations

import gc
import importlib
import inspect
import pathlib
import pkgutil
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mixtrain import Model, backend, nn, train
from mixtrain.train import callback
from mixtrain.train.callback import Callback, CallbackList
from mixtrain.train.callback.callback import HOOKS
from mixtrain.train.callback.keras_adapter import KerasCallbackAdapter
from mixtrain.train.run_context import CallbackArguments, RunContext
from tests.backends import on_jax_only_some

Make = Callable[[pathlib.Path], Callback]


def _networks() -> Any:
    """Return the networks of a Model, for what looks at them."""
    net = nn.Dense(2, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.125), amp_level="O2")
    return model._networks


# How each callback is made; a class that is not here fails the first test.
MAKE: dict[str, Make] = {
    "BackupAndRestore": lambda folder: callback.BackupAndRestore(folder / "backup"),
    "Callback": lambda folder: Callback(),
    "EvaluationProgress": lambda folder: train.progress.EvaluationProgress(bar=False),
    "Deviations": lambda folder: train.deviations.Deviations(_networks()),
    "EarlyStopping": lambda folder: callback.EarlyStopping("loss"),
    "History": lambda folder: callback.History(),
    "LambdaCallback": lambda folder: callback.LambdaCallback(on_train_step_end=lambda context: None),
    "LastRun": lambda folder: train.report_data.LastRun(),
    "LearningRateScheduler": lambda folder: callback.LearningRateScheduler(lambda rate, step: rate / 2),
    "LossMonitor": lambda folder: callback.LossMonitor(),
    "LostUpdates": lambda folder: train.lost_updates.LostUpdates(_networks()),
    "LossScaleMonitor": lambda folder: callback.LossScaleMonitor(),
    "OverflowMonitor": lambda folder: callback.OverflowMonitor(),
    "MetricsLogger": lambda folder: callback.MetricsLogger(lambda values, step: None),
    "ModelCheckpoint": lambda folder: callback.ModelCheckpoint("net", folder),
    "OnRequestExit": lambda folder: callback.OnRequestExit(directory=folder / "exit"),
    "RangeMonitor": lambda folder: callback.RangeMonitor(1, summary_dir=folder / "ranges"),
    "ReduceLROnPlateau": lambda folder: callback.ReduceLROnPlateau("loss", patience=0),
    "SummaryCollector": lambda folder: callback.SummaryCollector(folder / "summary", collect_freq=1),
    "TimeMonitor": lambda folder: callback.TimeMonitor(),
    "ProgressMonitor": lambda folder: train.progress.ProgressMonitor(3, bar=False),
    "Watch": lambda folder: train.watch.Watch(_networks()),
}
DATA = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25], [1.0, 1.0]], np.float32)
BATCHES = [(DATA, DATA[:, :1]), (-DATA, DATA[:, :1])]


def _classes() -> dict[str, type[Callback]]:
    """Return every callback class that the package defines, by name."""
    for module in pkgutil.walk_packages(train.__path__, "mixtrain.train."):
        importlib.import_module(module.name)
    classes, left = {"Callback": Callback}, [Callback]
    while left:
        for kind in left.pop().__subclasses__():
            if kind.__module__.startswith("mixtrain."):
                classes[kind.__name__] = kind
                left.append(kind)
    del classes[KerasCallbackAdapter.__name__]  # made by the list alone, around a callback of Keras's
    return classes


CALLBACKS = pytest.mark.parametrize("name", sorted(MAKE))
RUNS = on_jax_only_some([(mode, sink) for mode in ("train", "fit", "eval") for sink in (False, True)], [2, 5])


def _run(callback: Any, folder: pathlib.Path, mode: str, sink: bool) -> tuple[Any, list[bytes]]:
    """Run a tiny Model; return the history (or metrics) and every weight, its optimizer's included."""
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.125, 0.5), metrics={"mae"})
    callbacks = [] if callback is None else [callback]
    if mode == "train":
        result: Any = model.train(3, BATCHES, callbacks, dataset_sink_mode=sink, verbose=0)
    elif mode == "fit":
        result = model.fit(3, BATCHES, BATCHES[:1], callbacks=callbacks, dataset_sink_mode=sink, verbose=0)
    else:
        result = model.eval(BATCHES, callbacks, dataset_sink_mode=sink)
    variables = [*net.get_parameters(), *model.train_network.driver.state_variables()]
    return dict(result), [backend.to_numpy(variable).tobytes() for variable in variables]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Any]:
    """What a run without callbacks comes to, for each kind of run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return {run: _run(None, folder, *run) for run in {*RUNS, ("train", False)}}


def test_every_callback_of_the_package_is_held_to_the_contract() -> None:
    assert set(_classes()) == set(MAKE)
    public = set(MAKE) - {"Deviations", "EvaluationProgress", "LastRun", "LostUpdates", "ProgressMonitor", "Watch"}
    assert public <= set(callback.__all__)
    assert all(getattr(train, name) is getattr(callback, name) for name in public)


@CALLBACKS
def test_hooks_take_a_run_context_and_nothing_else(name: str, tmp_path: pathlib.Path) -> None:
    callback = MAKE[name](tmp_path)
    for hook in {*HOOKS, *HOOKS.values()}:
        parameters = list(inspect.signature(getattr(callback, hook)).parameters.values())
        assert [parameter.kind for parameter in parameters] == [inspect.Parameter.POSITIONAL_OR_KEYWORD], hook


@CALLBACKS
def test_two_of_a_kind_share_no_state(name: str, tmp_path: pathlib.Path) -> None:
    first, second = MAKE[name](tmp_path), MAKE[name](tmp_path)
    mutable = (list, dict, set)
    shared = [
        key for key, value in vars(first).items() if isinstance(value, mutable) and value is vars(second).get(key)
    ]
    assert shared == []
    kinds = [kind for kind in type(first).__mro__ if kind.__module__.startswith("mixtrain.")]
    mutable_values = [key for kind in kinds for key, value in vars(kind).items() if isinstance(value, mutable)]
    assert [key for key in mutable_values if not key.startswith("__")] == []


@pytest.mark.slow
@CALLBACKS
@pytest.mark.parametrize(("mode", "sink"), RUNS)
def test_it_works_in_every_kind_of_run_and_an_observer_changes_nothing(
    name: str, mode: str, sink: bool, tmp_path: pathlib.Path, undisturbed: dict[tuple[str, bool], Any]
) -> None:
    callback = MAKE[name](tmp_path)
    history, weights = _run(callback, tmp_path, mode, sink)
    if callback.observes_only:
        assert (history, weights) == undisturbed[mode, sink]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["EarlyStopping", "LearningRateScheduler", "ReduceLROnPlateau"])
def test_those_that_control_a_run_say_so(name: str, tmp_path: pathlib.Path, undisturbed: dict[Any, Any]) -> None:
    callback = MAKE[name](tmp_path)
    assert not callback.observes_only
    assert _run(callback, tmp_path, "train", False) != undisturbed["train", False]


@CALLBACKS
def test_its_docstring_names_every_argument(name: str) -> None:
    kind = _classes()[name]
    text = kind.__doc__ or ""
    assert text.strip(), name
    parameters = [parameter for parameter in inspect.signature(kind).parameters if parameter not in ("args", "kwargs")]
    assert [parameter for parameter in parameters if f"{parameter}" not in text] == []
    hooks = [vars(kind)[hook] for hook in {*HOOKS, *HOOKS.values()} if hook in vars(kind)]
    assert [hook.__name__ for hook in hooks if not hook.__doc__] == []


@pytest.mark.slow
@CALLBACKS
@pytest.mark.parametrize("sink", on_jax_only_some([False, True], [1]))
def test_it_serves_a_second_run_as_it_served_the_first(name: str, sink: bool, tmp_path: pathlib.Path) -> None:
    callback = MAKE[name](tmp_path)
    first = _run(callback, tmp_path, "train", sink)
    assert _run(callback, tmp_path, "train", sink) == first


@pytest.mark.slow
def test_none_keeps_its_network_alive(tmp_path: pathlib.Path) -> None:
    callbacks = {name: MAKE[name](_made(tmp_path / name)) for name in MAKE}
    networks = {name: _trained_with(callback) for name, callback in callbacks.items()}
    gc.collect()  # Once for all of them: it goes through all of the backend's objects.
    assert [name for name, network in networks.items() if network() is not None] == []


def _made(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    return folder


def _trained_with(callback: Any) -> weakref.ref[Any]:
    """Train a network with a callback; return a reference that does not keep the network alive."""
    net = nn.Dense(2, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.125), metrics={"mae"})
    model.fit(1, BATCHES, BATCHES[:1], callbacks=[callback], verbose=0)
    return weakref.ref(net)


@CALLBACKS
def test_an_error_inside_names_the_callback(name: str, tmp_path: pathlib.Path) -> None:
    callback = MAKE[name](tmp_path)

    def fail(run_context: RunContext) -> None:
        raise ZeroDivisionError

    callback.on_train_step_end = fail  # type: ignore[method-assign]
    arguments = CallbackArguments(mode="train", cur_epoch_num=1, cur_step_num=1)
    with pytest.raises(ZeroDivisionError) as caught, CallbackList(callback, arguments) as listed:
        listed.on_train_step_end(RunContext(arguments))
    assert caught.value.__notes__ == [f"Raised by the callback {name} in on_train_step_end."]
