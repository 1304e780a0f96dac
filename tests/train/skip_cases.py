"""Random networks with state and randomness, trained on batches of which some overflow, and without those batches."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

import keras
import numpy as np

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, backend, nn, ops
from mixtrain.seed import seed_state, stream_states

layers = keras.layers
ROWS, STEPS, WIDTH = 4, 3, 4
FEEDS: Final = ("host", "groups", "sink")
# What a batch that overflows is made of.
FAULTS: Final = ("inf", "nan", "one inf", "inf label")
# What `Plants` makes of a number of some size.
PLANTED: Final = {"forward": 2e4, "gradient": 300.0}


# ---- layers with state of their own -------------------------------------------------------------------------------
class OwnNoise(layers.Layer):
    """Adds noise from a generator of its own, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.noise = keras.random.SeedGenerator(17)
        self.calls = self.add_weight(shape=(), dtype="int32", initializer="zeros", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        if not training:
            return x
        self.calls.assign_add(1)
        return x + 0.1 * keras.random.normal(keras.ops.shape(x), seed=self.noise)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class Hidden(layers.Layer):
    """Keeps a variable and a generator where no tracker of Keras's finds them."""

    class Holder:
        """An object of the user's."""

    def __init__(self) -> None:
        super().__init__()
        held: Any = self.Holder()
        held.seen = keras.Variable(0.0, trainable=False)
        held.noise = keras.random.SeedGenerator(23)
        self._held = held

    def call(self, x: Any, training: bool = False) -> Any:
        if not training:
            return x
        self._held.seen.assign(self._held.seen + 1.0)
        keep = keras.random.uniform(keras.ops.shape(x), seed=self._held.noise) < 0.8
        return keras.ops.where(keep, x, 0.0)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class Counting(nn.Cell):
    """Counts its calls in a Parameter, as MindSpore code does."""

    def __init__(self) -> None:
        super().__init__()
        self.count = mixtrain.Parameter(np.float32(0), requires_grad=False)

    def construct(self, x: Any) -> Any:
        ops.assign_add(self.count, mixtrain.Tensor(1.0))
        return x


class Drawing(nn.Cell):
    """Draws from streams that an operation has to itself."""

    def construct(self, x: Any) -> Any:
        return ops.dropout(x, 0.3, training=self.training) + 0.01 * ops.standard_normal(x.shape)


class Plants(layers.Layer):
    """Is not finite for rows with numbers of some size, in its forward pass, or in its gradient alone."""

    def call(self, x: Any) -> Any:
        ops = keras.ops
        size = ops.max(ops.abs(x), axis=-1, keepdims=True)
        # The slope of a root at 0, of what does not count.
        kept = ops.cast(ops.logical_or(size < 50, size > 1000), x.dtype)
        x = x + ops.sqrt(ops.square(x) * kept + (1e-3 * kept)) * 0.5
        return ops.where(size > 1000, ops.full_like(x, np.inf), x)


# On vectors (N, WIDTH); each by name, so that a failure names it.
KERAS_LAYERS: Final[dict[str, Callable[[], Any]]] = {
    "BatchNormalization": layers.BatchNormalization,
    "Dropout": lambda: layers.Dropout(0.4),
    "AlphaDropout": lambda: layers.AlphaDropout(0.2),
    "GaussianNoise": lambda: layers.GaussianNoise(0.1),
    "GaussianDropout": lambda: layers.GaussianDropout(0.2),
    "SpectralNormalization": lambda: layers.SpectralNormalization(layers.Dense(WIDTH)),
    "OwnNoise": OwnNoise,
    "Hidden": Hidden,
    "LayerNormalization": layers.LayerNormalization,
}
SERIES_LAYERS: Final[dict[str, Callable[[], Any]]] = {
    "LSTM with dropout": lambda: layers.LSTM(WIDTH, dropout=0.3),
    "GRU with recurrent dropout": lambda: layers.GRU(WIDTH, recurrent_dropout=0.3),
    "stateful SimpleRNN": lambda: layers.SimpleRNN(WIDTH, stateful=True),
    "stateful LSTM": lambda: layers.LSTM(WIDTH, stateful=True, dropout=0.2),
    "SpatialDropout1D": lambda: keras.Sequential([layers.SpatialDropout1D(0.4), layers.Flatten(), layers.Dense(WIDTH)]),
    "attention with dropout": lambda: Attention(),
}
IMAGE_LAYERS: Final[dict[str, Callable[[], Any]]] = {
    "RandomFlip": lambda: layers.RandomFlip(seed=5),
    "RandomTranslation": lambda: layers.RandomTranslation(0.3, 0.3),
    "RandomRotation": lambda: layers.RandomRotation(0.2, seed=2),
    "SpatialDropout2D": lambda: layers.SpatialDropout2D(0.4),
}
CELL_LAYERS: Final[dict[str, Callable[[], Any]]] = {
    "nn.Dropout": lambda: nn.Dropout(p=0.4),
    "nn.BatchNorm1d": lambda: nn.BatchNorm1d(WIDTH),
    "nn.RReLU": lambda: nn.RReLU(),
    "Counting": Counting,
    "Drawing": Drawing,
}


class Attention(layers.Layer):
    """Attention of a series to itself, summed."""

    def __init__(self) -> None:
        super().__init__()
        self.attend = layers.MultiHeadAttention(2, 2, dropout=0.3)

    def build(self, shape: Any) -> None:
        self.attend.build(shape, shape)

    def call(self, x: Any, training: bool = False) -> Any:
        return keras.ops.mean(self.attend(x, x, training=training), axis=1)

    def compute_output_shape(self, shape: Any) -> Any:
        return (shape[0], shape[2])


class Row(nn.Cell):
    """Cells and Keras layers in a row."""

    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.first = nn.Dense(WIDTH, WIDTH)
        self.parts = nn.CellList([part if isinstance(part, nn.Cell) else as_cell(part) for part in parts])
        self.last = nn.Dense(WIDTH, 2)

    def construct(self, x: Any) -> Any:
        x = self.first(x)
        for part in self.parts:
            x = part(x)
        return self.last(x)


class AsCell(nn.Cell):
    """A Keras layer as a part of a Cell."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        layer.build((None, WIDTH))
        self.layer = layer

    def construct(self, x: Any) -> Any:
        return self.layer(x)


def as_cell(layer: Any) -> nn.Cell:
    return AsCell(layer)


# ---- a case -------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Case:
    """All of one pair of runs.

    Attributes:
        seed: What it was drawn from.
        kind: "keras", "series", "images" or "cell".
        parts: Names of layers.
        optimizer: Name of the optimizer.
        window: The window of a dynamic loss scale; 0 for a fixed one.
        level: The Model's `amp_level`.
        feed: One of `FEEDS`.
        faults: By the number of the batch that overflows, what it is made of.
        eager: Whether it runs in PYNATIVE_MODE.
    """

    seed: int
    kind: str
    parts: tuple[str, ...]
    optimizer: str
    window: int
    level: str
    feed: str
    faults: dict[int, str]
    eager: bool

    def __str__(self) -> str:
        how = "eager" if self.eager else self.feed
        return (
            f"{self.seed}: {self.kind} {', '.join(self.parts)}; {self.optimizer}, window {self.window}, {self.level}, "
            f"{how}, {self.faults}"
        )


OPTIMIZERS: Final[dict[str, Callable[[Any], Any]]] = {
    "nn.Momentum": lambda params: nn.Momentum(params, [0.01, 0.02, 0.03, 0.04], 0.9, weight_decay=1e-3),
    "nn.Adam": lambda params: nn.Adam(params, 0.01),
    "keras Adam": lambda params: keras.optimizers.Adam(0.01, amsgrad=True),
    "keras SGD": lambda params: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.01, 1, 0.9), 0.9),
}


def drawn_case(seed: int) -> Case:
    """Return the case of a seed."""
    draw = np.random.default_rng(seed)

    def pick(values: Any) -> Any:
        values = list(values)
        return values[int(draw.integers(len(values)))]

    kind = pick(("keras", "keras", "series", "images", "cell", "cell"))
    first = {"keras": KERAS_LAYERS, "series": SERIES_LAYERS, "images": IMAGE_LAYERS, "cell": CELL_LAYERS}[kind]
    rest = [*KERAS_LAYERS] if kind != "cell" else [*CELL_LAYERS, *KERAS_LAYERS]
    parts = (pick(first), *(pick(rest) for _ in range(int(draw.integers(0, 3)))))
    # Noise may drop a single number before any layer has spread it.
    faults = FAULTS if kind in ("keras", "cell") else [fault for fault in FAULTS if fault != "one inf"]
    places = draw.choice(7, size=int(draw.integers(1, 4)), replace=False)
    return Case(
        seed, kind, parts, pick(OPTIMIZERS), int(pick((0, 1, 2, 100))), pick(("O0", "O0", "O0", "O1")), pick(FEEDS),
        {int(place): pick(faults) for place in sorted(places)}, bool(draw.random() < 0.08),
    )


ALL_LAYERS: Final = {"Plants": Plants} | KERAS_LAYERS | SERIES_LAYERS | IMAGE_LAYERS | CELL_LAYERS


def network_of(case: Case) -> Any:
    """Return the network of a case."""
    parts = [ALL_LAYERS[name]() for name in case.parts]
    if case.kind == "cell":
        return Row(parts)
    if case.kind == "series":
        entry = layers.Input(batch_shape=(ROWS, STEPS, WIDTH))
        return keras.Sequential([entry, *parts, layers.Dense(2)])
    if case.kind == "images":
        before = [parts[0], layers.Conv2D(WIDTH, 3), layers.GlobalAveragePooling2D()]
        return keras.Sequential([keras.Input((6, 6, 2)), *before, *parts[1:], layers.Dense(2)])
    return keras.Sequential([keras.Input((WIDTH,)), layers.Dense(WIDTH), *parts, layers.Dense(2)])


def batches_of(case: Case, rows: slice = slice(None), count: int = ROWS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the batches of a case, faults among them, in some of their rows."""
    draw = np.random.default_rng(case.seed + 1)
    shape = {"series": (STEPS, WIDTH), "images": (6, 6, 2)}.get(case.kind, (WIDTH,))
    results = []
    for number in range(7):
        x = draw.standard_normal((count, *shape)).astype(np.float32)
        y = draw.standard_normal((count, 2)).astype(np.float32)
        fault = case.faults.get(number)
        if fault == "inf label" or fault and case.kind in ("series", "images"):
            y[rows][0, 1] = np.inf  # Dropout may leave out all of an input.
        if fault == "one inf":
            x[rows].reshape(-1)[3] = np.inf
        elif fault in PLANTED:
            x[rows].reshape(-1)[3] = PLANTED[fault]
        elif fault in ("inf", "nan"):
            x[rows] = np.float32(fault)
        results.append((x, y))
    return results


@dataclasses.dataclass
class End:
    """Where a run ended.

    Attributes:
        variables: The values of all variables that were made for it, but those of loss scaling, in order.
        streams: Where the streams of operations stand.
        losses: The losses of its epochs, and the metrics.
        skipped: How many steps were skipped.
        predicted: What the Model predicts.
    """

    variables: list[tuple[str, bytes]]
    streams: dict[Any, Any]
    losses: list[float]
    skipped: int
    predicted: bytes

    def difference(self, other: End) -> list[str]:
        """Return the names of what differs, bit for bit."""
        assert len(self.variables) == len(other.variables) > 0
        pairs = zip(self.variables, other.variables, strict=True)
        differences = [name for (name, value), (_, theirs) in pairs if value != theirs]
        both = self.streams.keys() & other.streams.keys()
        differences += [f"stream {key}" for key in both if self.streams[key] != other.streams[key]]
        differences += ["losses"] if self.losses != other.losses else []
        return differences + (["predictions"] if self.predicted != other.predicted else [])


class Listener(mixtrain.Callback):
    """Hears of every step, so that each is a call."""

    def on_train_step_begin(self, run_context: Any) -> None:
        self.seen = run_context.original_args().cur_step_num


@contextlib.contextmanager
def variables_made() -> Iterator[list[Any]]:
    """Note every Keras variable that is made inside: whatever made it, and whoever holds it."""
    made: list[Any] = []
    own = keras.Variable.__init__

    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        own(self, *args, **kwargs)
        made.append(self)

    keras.Variable.__init__ = noting
    try:
        yield made
    finally:
        keras.Variable.__init__ = own


def run(case: Case, *, faults: bool, replica: int | None = None, devices: int = 2) -> End:
    """Train a case for two epochs, with the batches that overflow or without them.

    Args:
        case: The case.
        faults: Whether the batches that overflow are among them.
        replica: The one of several devices whose rows overflow; None for one device.
        devices: How many there are then.
    """
    count = max(ROWS, devices)
    rows = slice(None) if replica is None else slice(replica * count // devices, (replica + 1) * count // devices)
    spread = contextlib.nullcontext() if replica is None else mixtrain.distribution.data_parallel(devices)
    mixtrain.set_seed(case.seed)
    keras.utils.clear_session(free_memory=False)
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE if case.eager else mixtrain.GRAPH_MODE)
    with variables_made() as made:
        network = network_of(case)
        params = network.trainable_params() if isinstance(network, nn.Cell) else network.trainable_variables
        manager = DynamicLossScaleManager(2**8, 2, case.window) if case.window else FixedLossScaleManager(2**8)
        with spread:
            model = Model(
                network, nn.MSELoss() if case.kind == "cell" else "mse", OPTIMIZERS[case.optimizer](params),
                amp_level=case.level, loss_scale_manager=manager, cast_model_type="bfloat16", metrics={"mae"},
            )
        drawn = enumerate(batches_of(case, rows, count))
        data = [batch for number, batch in drawn if faults or number not in case.faults]
        listen = [Listener()] if case.feed == "host" else []
        history = model.train(2, data, listen, dataset_sink_mode=case.feed == "sink", verbose=0)
        x = np.random.default_rng(0).standard_normal(batches_of(case)[0][0].shape).astype(np.float32)
    step = model.train_network
    others = {id(step.scale_sense), id(step.state.counts), id(step.state.loss_scale), *map(id, stream_states())}
    variables = [(value.path, backend.to_numpy(value).tobytes()) for value in made if id(value) not in others]
    streams = {(name, seed): place for name, seed, place in seed_state()["drawing"]}
    predicted = backend.to_numpy(model.predict(x)).tobytes()
    values = [number for name in ("loss", "mae") for number in history.history.get(name, ())]
    return End(variables, streams, values, sum(history["skipped_steps"]), predicted)
