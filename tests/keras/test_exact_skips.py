"""Skips under `mixtrain.keras.prepare`: a run with batches that overflow ends where the run without them ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np
import pytest

from mixtrain import FixedLossScaleManager, backend
from mixtrain.keras import prepare
from tests.backends import on_jax_only_some
from tests.train import skip_cases
from tests.train.skip_cases import ROWS, STEPS, WIDTH

layers = keras.layers
SEED: Final = 5


class Noise(layers.Layer):
    """Draws from a generator of its own, in the dtype of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.random.SeedGenerator(17)

    def call(self, x: Any, training: bool = False) -> Any:
        return x + 0.1 * keras.random.normal(keras.ops.shape(x), seed=self.generator, dtype=x.dtype) if training else x


class Nested(layers.Layer):
    """A layer inside a layer that draws from a generator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = [Noise(), layers.Dense(WIDTH)]

    def call(self, x: Any, training: bool = False) -> Any:
        return self.inner[1](self.inner[0](x, training=training))

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class InContainers(layers.Layer):
    """Keeps a count and a generator in a list in a dict of an object's, where Keras does not look."""

    class Holder:
        """An object of the user's."""

    def __init__(self) -> None:
        super().__init__()
        self.holder = self.Holder()
        parts = [keras.Variable(0.0, trainable=False), keras.random.SeedGenerator(29)]
        self.holder.parts = {"all": [parts]}  # type: ignore[attr-defined]

    def call(self, x: Any, training: bool = False) -> Any:
        (count, noise), = self.holder.parts["all"]  # type: ignore[attr-defined]
        count.assign(count + 1.0)
        return x * (1.0 + 0.01 * count) + 0.1 * keras.random.normal(keras.ops.shape(x), seed=noise, dtype=x.dtype)


GLOBAL: dict[str, keras.Variable] = {}


class WithGlobal(layers.Layer):
    """Counts its calls in a variable of the module, found by a name that it makes."""

    def call(self, x: Any) -> Any:
        count = GLOBAL["".join(("cou", "nt"))]
        count.assign(count + 1.0)
        return x * keras.ops.cast(1.0 + 0.01 * count, x.dtype)


class InSlots(layers.Layer):
    """Keeps a count and a generator where no search of attributes finds them."""

    class Holder:
        """An object of the user's without a `__dict__`."""

        __slots__ = ("count", "noise")

    def __init__(self) -> None:
        super().__init__()
        self.holder = self.Holder()
        self.holder.noise = keras.random.SeedGenerator(31)
        self.holder.count = keras.Variable(0.0, trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        count, noise = self.holder.count, self.holder.noise
        count.assign(count + 1.0)
        return x * (1.0 + 0.01 * count) + 0.1 * keras.random.normal(keras.ops.shape(x), seed=noise, dtype=x.dtype)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network, and how it trains.

    Attributes:
        layer: Makes the layer in its middle.
        level: The precision level.
        half: The half dtype.
        shape: The shape of one of its inputs.
        optimizer: Makes the optimizer.
    """

    layer: Callable[[], Any]
    level: str = "O2"
    half: str = "float16"
    shape: tuple[int, ...] = (WIDTH,)
    optimizer: Callable[[], Any] = lambda: keras.optimizers.Adam(0.01, amsgrad=True)


def _nadam() -> Any:
    return keras.optimizers.Nadam(0.01, use_ema=True, ema_overwrite_frequency=2)


SERIES, PICTURE = (STEPS, WIDTH), (6, 6, 2)
NETWORKS: Final[dict[str, Network]] = {
    "spectral normalization": Network(lambda: layers.SpectralNormalization(layers.Dense(WIDTH)), "O1"),
    "nested generator": Network(Nested, "O3", "bfloat16"),
    "hidden in an attribute": Network(skip_cases.Hidden),
    "hidden in containers": Network(InContainers, "O0"),
    "hidden in slots": Network(InSlots, "O0"),
    "global variable": Network(WithGlobal, "O1", optimizer=_nadam),
    "stateful LSTM": Network(lambda: layers.LSTM(WIDTH, stateful=True, dropout=0.2), "O0", shape=SERIES),
    "layer normalization of one unit": Network(
        lambda: keras.Sequential([layers.Dense(1), layers.LayerNormalization()]), "O3"
    ),
    "batch normalization": Network(layers.BatchNormalization, optimizer=_nadam),
    "dropout": Network(lambda: layers.Dropout(0.4), "O3"),
    "Gaussian noise": Network(lambda: layers.GaussianNoise(0.1), "O1", "bfloat16"),
    "GRU with recurrent dropout": Network(lambda: layers.GRU(WIDTH, recurrent_dropout=0.3), "O1", shape=SERIES),
    "attention": Network(skip_cases.Attention, shape=SERIES),
    "augmented pictures": Network(
        lambda: keras.Sequential([
            layers.RandomFlip(seed=5), layers.Conv2D(WIDTH, 3), layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(),
        ]),
        shape=PICTURE, optimizer=lambda: keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    ),
}
RUNS: Final[dict[str, dict[str, Any]]] = {
    "compiled": {"jit_compile": True}, "plain": {"jit_compile": False},
    "several": {"jit_compile": False, "steps_per_execution": 3}, "eager": {"run_eagerly": True},
    "by batch": {"jit_compile": False},
}


def batches(network: Network, *, planted: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return six batches; with `planted`, an infinite one before the third and one of infinite labels at the end."""
    draw = np.random.default_rng(SEED)
    result = [
        (draw.standard_normal((ROWS, *network.shape)).astype(np.float32),
         draw.standard_normal((ROWS, 2)).astype(np.float32)) for _ in range(6)
    ]
    if planted:
        x, y = result[0]
        result.insert(2, (np.full_like(x, np.inf), y))
        result.append((x, np.full_like(y, np.inf)))
    return result


def train(network: Network, how: str, *, planted: bool) -> tuple[int, dict[str, Any]]:
    """Train a network; return the number of skipped steps, and by name all that a skipped step must not change."""
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(SEED)
    with skip_cases.variables_made() as made:
        GLOBAL["count"] = keras.Variable(0.0, trainable=False, name="global_count")
        entry = layers.Input(batch_shape=(ROWS, *network.shape))
        first = [layers.Dense(WIDTH)] if network.shape == (WIDTH,) else []
        model = keras.Sequential([entry, *first, network.layer(), layers.Dense(2)])
        optimizer = prepare(
            model, network.optimizer(), network.level, cast_model_type=network.half,  # type: ignore[arg-type]
            loss_scale_manager=FixedLossScaleManager(64),
        )
        model.compile(optimizer, "mse", metrics=["mae"], **RUNS[how])
        data = batches(network, planted=planted)
        history: Any = []
        if how == "by batch":
            history = [model.train_on_batch(*batch) for batch in data * 2]
            history = [results for results in history if np.isfinite(results).all()]
        else:
            columns = [np.concatenate(column) for column in zip(*data, strict=True)]
            history = model.fit(*columns, batch_size=ROWS, epochs=2, shuffle=False, verbose=0).history
    own = {id(variable) for variable in optimizer.scale_variables}
    if how == "by batch":  # Metrics are those of the last call, which is skipped in one of the runs.
        own |= {id(variable) for variable in model.metrics_variables}
    values = {f"{place} {variable.path}": backend.to_numpy(variable).tobytes()
              for place, variable in enumerate(made) if id(variable) not in own}
    return optimizer.skipped_steps, values | {"history": history, "iterations": int(optimizer.iterations)}


@pytest.mark.slow
@pytest.mark.parametrize("how", on_jax_only_some(RUNS))
@pytest.mark.parametrize("name", NETWORKS)
def test_a_run_with_overflows_ends_where_the_run_without_those_batches_does(name: str, how: str) -> None:
    (none, expected), (skipped, actual) = (train(NETWORKS[name], how, planted=planted) for planted in (False, True))
    assert (none, skipped) == (0, 4)
    assert [key for key in expected if expected[key] != actual[key]] == []
