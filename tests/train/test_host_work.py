"""What the host does between two compiled steps on JAX: it copies the batch once, launches one program and goes on."""

from __future__ import annotations

import collections
import contextlib
import functools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model
from mixtrain.backend.info import DeviceInfo
from tests.backends import ON_TENSORFLOW

pytestmark = pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow launches each operation of a graph itself")


def make_model(patch: pytest.MonkeyPatch) -> Model:
    """Return a model that trains as on a GPU, where launches are awaited by nobody."""
    for file in ("control", "elements", "gradient", "steps"):
        info = DeviceInfo("GPU", "a GPU", fast_bfloat16=True)
        patch.setattr(f"mixtrain.backend.jax.{file}.describe_device", lambda info=info: info)
    layers = keras.layers
    network = keras.Sequential([
        keras.Input((8,)),
        layers.Dense(16, activation="relu"),
        layers.BatchNormalization(),
        layers.Dropout(0.1),
        layers.Dense(3),
    ])
    return Model(
        network, keras.losses.CategoricalCrossentropy(from_logits=True),
        keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 10, 0.9)),
        amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10),
    )


def make_rows(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((count, 4, 8), np.float32)
    return list(zip(x, np.eye(3, dtype=np.float32)[draw.integers(0, 3, (count, 4))], strict=True))


class Guarded(Sequence[Any]):
    """Batches that forbid all copies but those by `jax.device_put`, from the third one to the last."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __iter__(self) -> Iterator[Any]:
        import jax

        with contextlib.ExitStack() as stack:
            for index, row in enumerate(self._rows):
                if index == 2:
                    stack.enter_context(jax.transfer_guard("disallow"))
                yield row


def host_work(run: Callable[[], Any], patch: pytest.MonkeyPatch, directory: pathlib.Path) -> collections.Counter[str]:
    """Return how often the host launched each compiled function, by name, called `device_put` and read an array."""
    import jax

    counts: collections.Counter[str] = collections.Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*args, **options)

        return call

    @jax.jit
    def probe(value: Any) -> Any:
        return value

    array = type(jax.numpy.zeros(1))
    with patch.context() as context, jax.profiler.trace(str(directory)):
        context.setattr(jax, "device_put", counting("puts", jax.device_put))
        # What `np.asarray`, `float` and `bool` of an array read, which waits for it.
        context.setattr(array, "_value", property(counting("reads", array._value.fget)))
        run()
        probe(1)
    (file,) = directory.rglob("*.xplane.pb")
    planes = jax.profiler.ProfileData.from_file(str(file)).planes
    names = [event.name for plane in planes for line in plane.lines for event in line.events]
    launches = collections.Counter(name for name in names if name.startswith("PjitFunction("))
    times = launches.pop("PjitFunction(probe)")  # JAX notes each launch as often.
    return counts + collections.Counter({name: count // times for name, count in launches.items()})


@pytest.mark.parametrize(("feed", "puts"), [("host", 1), ("device", 0)])
def test_a_step_is_one_launch_and_one_copy_of_its_batch(
    feed: str, puts: int, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    import jax

    model, work = make_model(monkeypatch), []
    for count in (4, 8, 16):  # The first run compiles.
        rows = make_rows(count)
        data = Guarded(rows if feed == "host" else jax.device_put(rows))
        run = functools.partial(model.train, 1, data, verbose=0)
        work.append(host_work(run, monkeypatch, tmp_path / str(count)))
    assert work[2] - work[1] == +collections.Counter({"PjitFunction(run)": 8, "puts": 8 * puts})


def test_sink_feed_is_one_launch_and_one_copy_for_all_its_batches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    model, data, work = make_model(monkeypatch), make_rows(8), []
    for epochs in (1, 2, 4):
        run = functools.partial(model.train, epochs, data, verbose=0, dataset_sink_mode=True)
        work.append(host_work(run, monkeypatch, tmp_path / str(epochs)))
    more = work[2] - work[1]
    assert {name for name in more if name.startswith("Pjit")} == {"PjitFunction(run)"}
    assert more["PjitFunction(run)"] == 2 and more["puts"] <= 2
