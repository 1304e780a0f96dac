"""Random Keras networks by seed, with all that training them takes: data, losses, optimizers, feeds.

Every draw of a seed comes from one generator, so that two calls of `network` make the same network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from tests.train.own_step import OwnStep

layers, ops, losses = keras.layers, keras.ops, keras.losses

# What may be left out of the draws, to tell which of them a disagreement needs.
FEATURES: Final = {"plain functions": True, "explicit dtypes": True}
BATCH: Final = 4
WIDTH, STEPS, WORDS, SIDE, CLASSES, MORE = 6, 5, 9, 6, 3, 3
ACTIVATIONS: Final = ("relu", "tanh", "gelu", "silu", "elu", "sigmoid", None)
Draw = np.random.Generator


def pick(draw: Draw, *choices: Any) -> Any:
    """Return one of some choices."""
    return choices[int(draw.integers(len(choices)))]


# ---- losses ---------------------------------------------------------------------------------------------------
def pinball(y_true: Any, y_pred: Any) -> Any:
    error = y_true - y_pred
    return ops.mean(ops.maximum(0.9 * error, -0.1 * error), axis=-1)


def of_targets(targets: Any, outputs: Any) -> Any:
    return ops.mean(ops.square(ops.relu(targets - outputs)))


def as_mindspore(logits: Any, labels: Any) -> Any:
    return ops.mean(ops.maximum(0.7 * (labels - logits), -0.3 * (labels - logits)))


def unclear(a: Any, b: Any) -> Any:
    return ops.mean(ops.square(a - 0.5 * b), axis=-1)


def weighted_binary(y_true: Any, y_pred: Any) -> Any:
    return -ops.mean(0.8 * y_true * ops.log_sigmoid(y_pred) + 0.2 * (1 - y_true) * ops.log_sigmoid(-y_pred), axis=-1)


@dataclasses.dataclass(frozen=True)
class LossForm:
    """A loss as it is written.

    Attributes:
        ours: Makes what a Model is given.
        theirs: Makes what `compile` is given.
        plain: Whether it is a function of the user's own.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    plain: bool = False


def known(make: Callable[[], Any]) -> LossForm:
    return LossForm(make, make)


def plain(function: Callable[[Any, Any], Any], *, swapped: bool = False) -> LossForm:
    keras_order = (lambda y_true, y_pred: function(y_pred, y_true)) if swapped else function
    return LossForm(lambda: function, lambda: keras_order, plain=True)


# Kind of head: its activation, its size for each row, and its losses.
REGRESSION: Final = [
    known(lambda: "mse"), known(lambda: "mean_absolute_error"), known(lambda: losses.huber),
    known(lambda: losses.MeanSquaredError()), known(lambda: losses.LogCosh(reduction="sum")),
    plain(pinball), plain(of_targets), plain(as_mindspore, swapped=True), plain(unclear),
]
BINARY_LOGITS: Final = [
    known(lambda: losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)), plain(weighted_binary),
    known(lambda: losses.BinaryFocalCrossentropy(from_logits=True)),
]
BINARY: Final = [known(lambda: "binary_crossentropy"), known(lambda: losses.BinaryCrossentropy())]
SPARSE_LOGITS: Final = [known(lambda: losses.SparseCategoricalCrossentropy(from_logits=True))]
SPARSE: Final = [
    known(lambda: "sparse_categorical_crossentropy"), known(lambda: losses.sparse_categorical_crossentropy),
]
ONE_HOT: Final = [known(lambda: "categorical_crossentropy"), known(lambda: losses.CategoricalCrossentropy())]
HEADS: Final[dict[str, tuple[Any, int, list[LossForm]]]] = {
    "regression": (None, 2, REGRESSION), "binary logits": (None, 1, BINARY_LOGITS), "binary": ("sigmoid", 1, BINARY),
    "sparse logits": (None, CLASSES, SPARSE_LOGITS), "sparse": ("softmax", CLASSES, SPARSE),
    "one-hot": ("softmax", CLASSES, ONE_HOT),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """All of one run.

    Attributes:
        seed: What it was drawn from.
        network: Makes the network, built, always with the same structure.
        optimizer: Makes the optimizer.
        loss: The forms of the losses; for several outputs a list, or a dict by name.
        loss_weights: In the same structure, or None.
        x, y, weights: The data; `x` may be a dict, in another order than that of the inputs; `weights` None for none.
        rows: Number of rows.
        own_step: Whether the network has a `train_step` of its own.
        feed: "host", "groups" or "sink".
        half: The half-precision dtype, or None.
        level: Level of our Model; None for Keras's own policy in both.
        uses: The features that were drawn.
    """

    seed: int
    network: Callable[[], keras.Model]
    optimizer: Callable[[], Any]
    loss: Any
    loss_weights: Any
    x: Any
    y: Any
    weights: Any
    rows: int
    own_step: bool
    feed: str
    half: str | None
    level: str | None
    uses: frozenset[str]

    def __str__(self) -> str:
        forms = keras.tree.map_structure(lambda form: str(getattr(form.theirs(), "__name__", form.theirs())), self.loss)
        how = f"{self.feed}, {self.half}, level {self.level}, with {sorted(self.uses)}"
        return f"seed {self.seed}: {self.network().name}, {forms}, {how}"

    def batches(self) -> list[tuple[Any, ...]]:
        """Return the data in batches."""
        columns = (self.x, self.y) if self.weights is None else (self.x, self.y, self.weights)
        starts = range(0, self.rows, BATCH)
        return [keras.tree.map_structure(lambda column: column[at : at + BATCH], columns) for at in starts]


# ---- networks -------------------------------------------------------------------------------------------------
class Drawing:
    """Draws the layers of one network.

    Args:
        draw: Where draws come from.
        half: The half-precision dtype of the run, or None.
    """

    def __init__(self, draw: Draw, half: str | None) -> None:
        self.draw, self.half, self.uses = draw, half, set[str]()

    def dtype(self, chance: float = 0.15) -> Any:
        """Return a layer's explicit dtype, mostly None."""
        explicit = self.draw.random() < chance
        name = pick(self.draw, "float32", "float32", f"mixed_{self.half}" if self.half else "float32")
        if not (explicit and FEATURES["explicit dtypes"]):
            return None
        self.uses.add("explicit dtypes")
        return name

    def activation(self) -> Any:
        return pick(self.draw, *ACTIVATIONS)

    def dense(self) -> keras.Layer:
        decay = pick(self.draw, None, None, None, keras.regularizers.L2(1e-2))
        return layers.Dense(
            int(self.draw.integers(3, 7)), self.activation(), dtype=self.dtype(), kernel_regularizer=decay,
            use_bias=bool(self.draw.random() < 0.8),
        )

    def norm(self) -> keras.Layer:
        kind = pick(self.draw, layers.BatchNormalization, layers.BatchNormalization, layers.LayerNormalization)
        return kind(dtype=self.dtype())  # type: ignore[no-any-return]

    def small(self) -> keras.Layer:
        """Return a layer without weights, or one that normalizes."""
        return pick(  # type: ignore[no-any-return]
            self.draw, self.norm, self.norm, lambda: layers.Dropout(0.0), lambda: layers.Activation("relu"),
            lambda: layers.LeakyReLU(negative_slope=0.1), lambda: layers.GaussianNoise(0.0),
        )()

    def chain(self, kind: str) -> list[keras.Layer]:
        """Return layers that make a vector of a vector, an image, a series or words."""
        draw, dtype = self.draw, self.dtype
        begin: list[keras.Layer] = []
        masked = kind == "words" and bool(draw.random() < 0.4)
        if kind == "words":
            begin, kind = [layers.Embedding(WORDS, 4, mask_zero=masked, dtype=dtype())], "series"
        if kind == "image":
            size, act = int(draw.integers(2, 5)), self.activation()
            convolution = pick(
                draw, lambda: layers.Conv2D(size, 3, activation=act, padding="same", dtype=dtype()),
                lambda: layers.SeparableConv2D(size, 3, activation=act), lambda: layers.DepthwiseConv2D(3),
                lambda: layers.Conv2DTranspose(size, 2, strides=2),
                lambda: layers.Conv2D(size, 2, strides=2, use_bias=False, dilation_rate=1),
            )()
            norm = pick(draw, [], [layers.BatchNormalization()], [layers.GroupNormalization(1)])
            pool = pick(draw, [], [layers.MaxPooling2D()], [layers.AveragePooling2D(2)])
            end = pick(draw, layers.Flatten, layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D)()
            begin += [convolution, *norm, *pool, end]
        elif kind == "series":
            size = int(draw.integers(2, 5))
            between = pick(draw, [], [layers.TimeDistributed(layers.Dense(4))], [layers.Conv1D(4, 2, padding="causal")])
            recurrent = pick(draw, layers.LSTM, layers.GRU, layers.SimpleRNN)
            end = pick(
                draw, lambda: [recurrent(size, dtype=dtype())], lambda: [layers.Bidirectional(recurrent(size))],
                lambda: [recurrent(size, return_sequences=True), layers.GlobalAveragePooling1D()],
                lambda: [layers.GlobalAveragePooling1D()],
                lambda: [layers.GlobalAveragePooling1D() if masked else layers.Flatten()],
            )()
            # Convolutions know nothing of masks, and say so in a warning.
            begin += [*([] if masked else between), *end]
        middle = [self.dense() if draw.random() < 0.6 else self.small() for _ in range(int(draw.integers(1, 4)))]
        return begin + middle

    def merged(self, x: Any) -> Any:
        """Return a vector (N, ...) joined with what a branch makes of it."""
        size = x.shape[-1]
        merge = pick(self.draw, layers.Add, layers.Multiply, layers.Average, layers.Maximum, layers.Concatenate)
        left = layers.Dense(size, self.activation(), dtype=self.dtype())(x)
        return merge()([x, self.norm()(left) if self.draw.random() < 0.4 else left])

    def head(self, kind: str, name: str | None = None) -> keras.Layer:
        activation, size, _ = HEADS[kind]
        # The idiom of Keras's guide to mixed precision: what ends a network computes in float32.
        guide = self.half is not None and activation is not None
        return layers.Dense(size, activation, name=name, dtype="float32" if guide else self.dtype())


class Subclassed(keras.Model):
    """A network whose `call` runs a trunk, then each head.

    Args:
        trunk: Layers in a row.
        heads: Layers by name.
        form: "one", "list" or "dict" of outputs.
        beside: Of a network with a dict of inputs, the layer of the second one; else None.
    """

    def __init__(
        self, trunk: list[keras.Layer], heads: dict[str, keras.Layer], form: str, beside: keras.Layer | None = None
    ) -> None:
        super().__init__()
        self.trunk, self.heads, self.form, self.beside = trunk, heads, form, beside

    def call(self, inputs: Any, training: bool = False) -> Any:
        x = inputs["main"] if self.beside is not None else inputs
        for layer in self.trunk:
            x = layer(x, training=training) if isinstance(layer, layers.BatchNormalization) else layer(x)
        if self.beside is not None:
            x = ops.concatenate([x, ops.cast(self.beside(inputs["more"]), x.dtype)], axis=-1)
        outputs = {name: head(x) for name, head in self.heads.items()}
        return outputs if self.form == "dict" else list(outputs.values()) if self.form == "list" else outputs["one"]


SHAPES: Final = {"vector": (WIDTH,), "image": (SIDE, SIDE, 3), "series": (STEPS, 4), "words": (STEPS,)}


class OwnSubclassed(OwnStep, Subclassed):
    """`Subclassed` with a `train_step` of its own."""


class OwnFunctional(OwnStep, keras.Model):
    """A functional network with a `train_step` of its own."""


class OwnSequential(OwnStep, keras.Sequential):
    """Layers in a row with a `train_step` of its own."""


@dataclasses.dataclass(frozen=True)
class Extras:
    """What a network has besides its layers.

    Attributes:
        own_step: Whether it has a `train_step` of its own.
        named: Whether its inputs are a dict of two.
        frozen: Seed of the draw of layers that are not trained, or None.
    """

    own_step: bool = False
    named: bool = False
    frozen: int | None = None

    def freeze(self, network: keras.Model, trained: int) -> None:
        """Freeze some layers, but not the last `trained` ones."""
        if self.frozen is not None:
            draw = np.random.default_rng(self.frozen)
            for layer in [layer for layer in network.layers if layer.weights][:-trained]:
                layer.trainable = bool(draw.random() < 0.5)


def drawn_network(
    draw: Draw, style: str, kind: str, heads: dict[str, str], form: str, drawing: Drawing, extras: Extras
) -> keras.Model:
    """Return a network, built."""
    trunk, own = drawing.chain(kind), extras.own_step
    beside = layers.Dense(2, "tanh") if extras.named else None
    if style == "sequential":
        row = [keras.Input(SHAPES[kind]), *trunk, drawing.head(heads["one"])]
        made = (OwnSequential if own else keras.Sequential)(row)
    elif style == "subclassed":
        own_or_not = OwnSubclassed if own else Subclassed
        made = own_or_not(trunk, {name: drawing.head(of) for name, of in heads.items()}, form, beside)
        first = np.zeros((1, *SHAPES[kind]), np.int32 if kind == "words" else np.float32)
        made({"main": first, "more": np.zeros((1, MORE), np.float32)} if beside else first)
    else:
        x = entry = keras.Input(SHAPES[kind], name="main" if beside else None)
        if kind == "series" and draw.random() < 0.5:
            attended = layers.MultiHeadAttention(2, 2, dtype=drawing.dtype())(x, x)
            x = layers.LayerNormalization()(layers.Add()([x, attended]))
        for layer in trunk:
            x = layer(x)
        if draw.random() < 0.6:
            x = drawing.merged(x)
        if beside:
            more = keras.Input((MORE,), name="more")
            x, entry = layers.Concatenate()([x, beside(more)]), {"main": entry, "more": more}
        outputs = {name: drawing.head(of, name)(x) for name, of in heads.items()}
        shown = outputs if form == "dict" else list(outputs.values()) if form == "list" else outputs["one"]
        made = (OwnFunctional if own else keras.Model)(entry, shown)
    extras.freeze(made, len(heads))
    made.name = style
    return made


# ---- optimizers -----------------------------------------------------------------------------------------------
def drawn_optimizer(draw: Draw) -> Callable[[], Any]:
    """Return what makes an optimizer; adaptive ones have an epsilon under which rounding cannot grow."""
    of, rate = keras.optimizers, float(10 ** draw.uniform(-2.5, -1))
    schedules = of.schedules
    schedule = pick(
        draw, None, None, lambda: schedules.ExponentialDecay(rate, 2, 0.8), lambda: schedules.CosineDecay(rate, 5),
        lambda: schedules.PiecewiseConstantDecay([2, 4], [rate, rate / 2, rate / 4]),
    )
    clip = pick(draw, {}, {}, {"clipnorm": 0.5}, {"global_clipnorm": 0.7}, {"clipvalue": 0.1})
    decay = pick(draw, {}, {}, {"weight_decay": 0.05})
    more = pick(draw, {}, {}, {}, {"use_ema": True, "ema_momentum": 0.8}, {"gradient_accumulation_steps": 2})
    kind, own = pick(
        draw, (of.SGD, {}), (of.SGD, {"momentum": 0.9}), (of.SGD, {"momentum": 0.8, "nesterov": True}),
        (of.Adam, {"epsilon": 1e-3}), (of.Adam, {"epsilon": 1e-3, "amsgrad": True}), (of.AdamW, {"epsilon": 1e-3}),
        (of.RMSprop, {"epsilon": 1e-3, "momentum": 0.5}), (of.Adagrad, {"epsilon": 1e-3}),
        (of.Nadam, {"epsilon": 1e-3}),
    )
    settings = {**own, **clip, **decay, **more}
    return lambda: kind(schedule() if schedule else rate, **settings)


# ---- a case ---------------------------------------------------------------------------------------------------
def drawn_labels(draw: Draw, kind: str, rows: int) -> np.ndarray:
    if kind == "regression":
        return draw.standard_normal((rows, 2)).astype(np.float32)
    if kind.startswith("binary"):
        return draw.integers(0, 2, (rows, 1)).astype(np.float32)
    numbers = draw.integers(0, CLASSES, rows)
    return np.eye(CLASSES, dtype=np.float32)[numbers] if kind == "one-hot" else numbers.astype(np.int32)


def in_form(form: str, values: dict[str, Any]) -> Any:
    """Return values by output as a dict, a list, or the only one."""
    return dict(values) if form == "dict" else list(values.values()) if form == "list" else values["one"]


def drawn_extras(draw: Draw, style: str) -> Extras:
    """Return what a network has besides its layers; a row of layers has one input."""
    own, named, frozen = draw.random(3) < (0.25, 0.3, 0.3)
    return Extras(bool(own), bool(named) and style != "sequential", int(draw.integers(2**31)) if frozen else None)


def drawn_case(seed: int) -> Case:
    """Return the case of a seed."""
    draw = np.random.default_rng(seed)
    half = pick(draw, None, None, None, None, None, "bfloat16", "bfloat16", "float16")
    level = pick(draw, "O2", "O2", "O1", None) if half else "O0"
    style = pick(draw, "sequential", "functional", "functional", "subclassed")
    # TensorFlow computes float16 recurrent layers on a CPU by XLA, which takes ten seconds to compile.
    rare = half == "float16" and draw.random() < 0.8
    kind = pick(draw, "vector", "image") if rare else pick(draw, *SHAPES)
    form = "one" if style == "sequential" else pick(draw, "one", "one", "list", "dict")
    names = ["one"] if form == "one" else ["left", "right", "third"][: int(draw.integers(2, 4))]
    heads = {name: pick(draw, *HEADS) for name in names}
    forms = {name: pick(draw, *(head for head in HEADS[of][2] if FEATURES["plain functions"] or not head.plain))
             for name, of in heads.items()}
    rows = int(pick(draw, 12, 12, 10))
    x: Any = draw.integers(0, WORDS, (rows, STEPS)) if kind == "words" else draw.standard_normal((rows, *SHAPES[kind]))
    x = x.astype(np.int32 if kind == "words" else np.float32)
    y = in_form(form, {name: drawn_labels(draw, of, rows) for name, of in heads.items()})
    weigh = draw.random() < 0.3 and not any(head.plain for head in forms.values())
    weights = {name: draw.uniform(0.2, 2.0, rows).astype(np.float32) for name in names}
    loss_weights = {name: float(draw.uniform(0.3, 2.0)) for name in names}
    weighted = len(names) > 1 and draw.random() < 0.5
    optimizer, inner, feed = drawn_optimizer(draw), int(draw.integers(2**31)), pick(draw, "host", "groups", "sink")
    extras = drawn_extras(np.random.default_rng([seed, 1]), style)

    def network() -> keras.Model:
        again = np.random.default_rng(inner)
        return drawn_network(again, style, kind, heads, form, Drawing(again, half), extras)

    drawing = Drawing(np.random.default_rng(inner), half)
    drawn_network(drawing.draw, style, kind, heads, form, drawing, extras)
    uses = drawing.uses | ({"plain functions"} if any(head.plain for head in forms.values()) else set())
    uses |= {name for name, value in vars(extras).items() if value}
    return Case(
        seed, network, optimizer, in_form(form, forms), in_form(form, loss_weights) if weighted else None,
        {"more": draw.standard_normal((rows, MORE)).astype(np.float32), "main": x} if extras.named else x, y,
        in_form(form, weights) if weigh else None, rows, extras.own_step, "host" if extras.own_step else feed, half,
        level, frozenset(uses),
    )
