"""The explanation of a skipped step names the line of the user's code that overflowed first, or says nothing."""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, nn
from mixtrain.diagnostics.finding import Finding
from tests.backends import ON_TENSORFLOW, quick_every

layers, ops = keras.layers, keras.ops
ROWS, WIDTH = 4, 4


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults that no scale helps are warned of at the end of the epoch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
        warnings.filterwarnings("ignore", ".*without loss scaling.*")
        yield


# ---- networks: the line at fault ends in "# first" ------------------------------------------------------------------
class Softmax(layers.Layer):
    def call(self, x: Any) -> Any:
        powers = ops.exp(x)  # first
        total = ops.sum(powers, axis=-1, keepdims=True)
        return powers / total


class CellSoftmax(nn.Cell):
    def construct(self, x: Any) -> Any:
        powers = mixtrain.ops.exp(x)  # first
        return powers / powers.sum(axis=-1, keepdims=True)


class Masked(layers.Layer):
    """-inf in a mask is meant, and made after the scores that overflow."""

    def call(self, x: Any) -> Any:
        scores = x * x  # first
        minus_infinity = ops.cast(ops.full((1, WIDTH), -1e9), x.dtype)
        scores = ops.where(ops.arange(WIDTH) % 2 == 0, scores, minus_infinity)
        return ops.softmax(scores) * x


class MaskedBefore(layers.Layer):
    """The mask is made before, and what overflows is computed from a softmax that is finite."""

    def call(self, x: Any) -> Any:
        minus_infinity = ops.cast(ops.full((1, WIDTH), -1e9), x.dtype)
        weights = ops.softmax(ops.where(ops.arange(WIDTH) % 2 == 0, x, minus_infinity))
        return weights * x * 4096.0  # first


class BranchNotTaken(layers.Layer):
    """The branch that `where` does not choose is inf."""

    def call(self, x: Any) -> Any:
        inverse = 1.0 / (x - x)
        kept = ops.where(x > 0, x, inverse)
        return kept * 4096.0  # first


def squared(x: Any) -> Any:
    return x * x  # first


class Helped(layers.Layer):
    """A function of the user's overflows."""

    def call(self, x: Any) -> Any:
        half = x / 2
        return squared(half) / 4096.0 + half


class Nested(layers.Layer):
    """Layers inside of a layer, with state and random numbers, whose outputs fit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.inner = layers.Dense(WIDTH, kernel_initializer="identity")
        self.norm = layers.BatchNormalization()
        self.drop = layers.Dropout(0.5, seed=3)

    def build(self, shape: Any) -> None:
        self.inner.build(shape)
        self.norm.build(shape)

    def call(self, x: Any, training: bool = False) -> Any:
        inner = self.inner(x)
        large = inner * x  # first
        return self.norm(self.drop(large / 4096.0, training=training), training=training)


class Twice(nn.Cell):
    """The second call of a cell overflows."""

    def __init__(self) -> None:
        super().__init__()
        self.square = Square()

    def construct(self, x: Any) -> Any:
        return self.square(self.square(x / 30.0))


class Square(nn.Cell):
    def construct(self, x: Any) -> Any:
        larger = x * x * 16.0  # first
        return larger


class Whole(keras.Model):
    """A network whose own code overflows between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = dense("stem"), dense("head", 1, 2.0**-8)

    def build(self, shape: Any) -> None:
        self.stem.build(shape)
        self.head.build(shape)
        self.built = True

    def call(self, x: Any) -> Any:
        x = self.stem(x)
        x = x * x / 4096.0  # first
        return self.head(x)


class Logarithm(layers.Layer):
    def call(self, x: Any) -> Any:
        y = x * 1.0
        log = ops.log(y)  # first
        return ops.where(y > 0, log, 0.0 * y)


class Root(layers.Layer):
    def call(self, x: Any) -> Any:
        magnitude = ops.abs(x)
        root = ops.sqrt(magnitude)  # first
        return root + magnitude + x


class CellNorm(nn.Cell):
    def construct(self, x: Any) -> Any:
        total = (x * x).sum(axis=-1, keepdims=True)
        return x + mixtrain.ops.sqrt(total)  # first


class Adding(layers.Layer):
    def call(self, x: Any) -> Any:
        self.add_loss(ops.mean(x * x))  # first
        return x


def logarithm(y: Any, p: Any) -> Any:
    error = p * 0.0 + y
    logs = ops.log(error)  # first
    return ops.mean(logs)


def root_loss(y: Any, p: Any) -> Any:
    mean = ops.mean(ops.square(p - y))
    return ops.sqrt(mean)  # first


def dense(name: str, units: int = WIDTH, weight: float | None = None, **options: Any) -> Any:
    start: Any = keras.initializers.Identity() if weight is None else keras.initializers.Constant(weight)
    return layers.Dense(units, use_bias=False, kernel_initializer=start, name=name, **options)


def chain(*middle: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: keras.Sequential(
        [keras.Input((WIDTH,)), dense("stem"), *(make() for make in middle), dense("head", 1, 2.0**-8)]
    )


def cells(*middle: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: nn.SequentialCell(
        nn.Dense(WIDTH, WIDTH, weight_init=0.25, has_bias=False), *(make() for make in middle),
        nn.Dense(WIDTH, 1, weight_init=2.0**-8, has_bias=False),
    )


def functional() -> Any:
    inputs = keras.Input((WIDTH,))
    return keras.Model(inputs, dense("head", 1, 2.0**-14)(layers.ReLU()(dense("stem")(inputs) * 4096.0)))


@dataclasses.dataclass(frozen=True)
class Case:
    """A network, the value that fills its input, and the object whose line is at fault; None for a library's."""

    name: str
    network: Callable[[], Any]
    value: float
    source: Any
    loss: Any = "mae"
    zero: bool = False
    label: float = 0.0
    operation: tuple[str, str] = ("", "")
    level: str = "O2"


CASES = [
    Case("softmax by hand", chain(Softmax), 12.0, Softmax),
    Case("a cell", cells(CellSoftmax), 12.0, CellSoftmax),
    Case("a mask after the scores", chain(Masked), 300.0, Masked),
    Case("a mask before", chain(MaskedBefore), 64.0, MaskedBefore),
    Case("a branch that is not taken", chain(BranchNotTaken), 64.0, BranchNotTaken),
    Case("a function", chain(Helped), 1024.0, squared),
    Case("layers inside", chain(Nested), 512.0, Nested),
    Case("the second call", cells(Twice), 100.0, Square),
    Case("a model of one's own", Whole, 512.0, Whole),
    Case("where over a logarithm", chain(Logarithm), 1.0, Logarithm, zero=True),
    Case("where over a logarithm in float32", chain(Logarithm), 1.0, Logarithm, zero=True, level="O0"),
    Case("root at 0", chain(Root), 1.0, Root, zero=True),
    Case("norm at 0 in a cell", cells(CellNorm), 0.0, CellNorm, label=1.0),
    Case("add_loss", chain(Adding), 512.0, Adding),
    Case("a loss", chain(), 1.0, logarithm, logarithm),
    Case("root of the loss", chain(), 0.0, root_loss, root_loss),
    Case("dense", chain(lambda: dense("wide", weight=2.0**15)), 1.0, None, operation=("MatMul", "dot_general")),
    Case("an operation of a functional model", functional, 64.0, None, operation=("Mul", "mul")),
]


def found(case: Case, *, sink: bool, steps: int = 1) -> list[Finding]:
    """Train on a batch in which a layer overflows; return the findings."""
    keras.utils.set_random_seed(0)
    mixtrain.set_seed(0)
    x = np.full((ROWS, WIDTH), case.value, np.float32)
    if case.zero:
        x[1, 2] = 0.0
    half = None if case.level == "O0" else mixtrain.float16
    model = Model(
        case.network(), case.loss, keras.optimizers.SGD(0.0), amp_level=case.level, cast_model_type=half,
        loss_scale_manager=DynamicLossScaleManager(8.0), explain_overflow=True,
    )
    model.train(1, [(x, np.full((ROWS, 1), case.label, np.float32))] * steps, dataset_sink_mode=sink, verbose=0)
    return [record.finding for record in model.overflows]


def line_of(source: Any) -> str:
    """Return the line of a class or function that ends in "# first"."""
    lines, start = inspect.getsourcelines(source)
    index = next(index for index, line in enumerate(lines) if line.rstrip().endswith("# first"))
    return f"{pathlib.Path(__file__).name}:{start + index} ({lines[index].strip()})"


@quick_every(2 * len(CASES))
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_line_that_overflows_first_is_named(case: Case, sink: bool) -> None:
    finding = found(case, sink=sink)[0]
    expected = f"its {case.operation[not ON_TENSORFLOW]}" if case.source is None else line_of(case.source)
    assert finding.origin == expected, str(finding)
    assert f", first in {'the derivative of ' if finding.kind == 'gradient' else ''}{expected}" in str(finding)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax by hand", "root at 0"])
def test_every_step_names_the_line(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    assert {finding.origin for finding in found(case, sink=True, steps=5)} == {line_of(case.source)}


def test_a_gradient_that_a_smaller_scale_cures_has_no_line() -> None:
    keras.utils.set_random_seed(0)
    model = Model(
        chain()(), "mae", keras.optimizers.SGD(0.0), amp_level="O2", explain_overflow=True,
        loss_scale_manager=DynamicLossScaleManager(2.0**30),
    )
    model.train(1, [(np.ones((ROWS, WIDTH), np.float32), np.zeros((ROWS, 1), np.float32))], verbose=0)
    finding = model.overflows[0].finding
    assert (finding.origin, finding.before, finding.scale is None) == (None, (), False)


@quick_every(2)
@pytest.mark.parametrize(("weight", "origin"), [(1e-5, "the cast of its input"), (np.nan, None)])
def test_what_a_layer_casts_or_its_weights_hold_is_not_the_doing_of_its_operations(
    weight: float, origin: str | None
) -> None:
    inputs = keras.Input((2,))
    large = layers.Rescaling(7e4, dtype="float32")(inputs)
    head = layers.Dense(1, kernel_initializer=keras.initializers.Constant(weight), name="head")(large)
    model = Model(
        keras.Model(inputs, head), "mse", keras.optimizers.SGD(0.0), amp_level="O2", explain_overflow=True,
        loss_scale_manager=DynamicLossScaleManager(1.0),
    )
    model.train(1, [(np.ones((2, 2), np.float32), np.zeros((2, 1), np.float32))], verbose=0)
    (record,) = model.overflows
    assert (record.finding.layer, record.finding.origin) == ("head", origin)


def test_the_product_of_a_dense_layer_on_more_axes_is_named_not_its_reshaping() -> None:
    network = keras.Sequential([
        keras.Input((4, 2)), layers.Dense(2, kernel_initializer=keras.initializers.Constant(5e4), name="large"),
    ])
    model = Model(
        network, "mse", keras.optimizers.SGD(0.0), amp_level="O2", explain_overflow=True,
        loss_scale_manager=DynamicLossScaleManager(1.0),
    )
    model.train(1, [(np.ones((2, 4, 2), np.float32), np.zeros((2, 4, 2), np.float32))], verbose=0)
    assert model.overflows[0].finding.origin == ("its MatMul" if ON_TENSORFLOW else "its dot_general")


@pytest.mark.slow
def test_a_layer_that_decides_by_values_is_explained_too() -> None:
    class Deciding(nn.Cell):
        def construct(self, x: Any) -> Any:
            if x.max() > 10.0:
                x = x * x
            return x / 4096.0

    finding = found(Case("deciding", cells(Deciding), 512.0, None), sink=False)[0]
    assert (finding.kind, finding.layer) == ("forward", "1")
    assert finding.origin is None or "x = x * x" in finding.origin


@quick_every(2, 1)
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_in_both_modes_of_execution(mode: str) -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE if mode == "pynative" else mixtrain.GRAPH_MODE)
    try:
        assert found(CASES[1], sink=False)[0].origin == line_of(CellSoftmax)
    finally:
        mixtrain.set_context(mode=mixtrain.GRAPH_MODE)
