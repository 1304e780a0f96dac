"""What is recorded of each step: its learning rate and the norm of its gradients, the same in every feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, amp, nn
from mixtrain.train.records import StepRecords
from mixtrain.train.steps_per_call import StepsPerCall
from tests.train.planted import batches, chain_model

_draw = np.random.default_rng(5)
DATA = [
    (_draw.standard_normal((4, 3)).astype(np.float32), _draw.standard_normal((4, 1)).astype(np.float32))
    for _ in range(6)
]
WEIGHT = _draw.standard_normal((3, 1)).astype(np.float32)
# Loss and gradient of this batch are infinite in float32.
BAD = (DATA[0][0] * np.float32(1e38), DATA[0][1])
HALVED = [2.0 ** -(step + 3) for step in range(9)]
CONSTANT = [0.125] * 9
HOPELESS = pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")
schedules = keras.optimizers.schedules


class Keep(mixtrain.Callback):
    """Keeps the records of each call, and what the optimizer says while it is told of it."""

    def __init__(self, observes: bool = True) -> None:
        super().__init__()
        self.observes_only = observes  # type: ignore[misc]
        self.calls: list[StepRecords] = []
        self.begun: list[tuple[int, float]] = []
        self.ended: list[tuple[int, float]] = []

    def on_train_step_begin(self, run_context: Any) -> None:
        self.begun.append(self._live(run_context.original_args().optimizer))

    def on_train_step_end(self, run_context: Any) -> None:
        arguments = run_context.original_args()
        self.calls.append(arguments.step_results)
        self.ended.append(self._live(arguments.optimizer))

    def _live(self, optimizer: Any) -> tuple[int, float]:
        optimizer = getattr(optimizer, "inner", optimizer)
        if isinstance(optimizer, nn.Optimizer):
            rates = optimizer.get_lr()
            return int(keras.ops.reshape(optimizer.global_step, ())), float(rates[0] if optimizer.is_group else rates)
        return int(optimizer.iterations), float(optimizer.learning_rate)

    @property
    def records(self) -> StepRecords:
        return StepRecords.joined(self.calls)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call of the host feed run four steps where callbacks only observe."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 4)


def dense() -> keras.Model:
    """Return a network of one weight matrix."""
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, use_bias=False)])
    network.set_weights([WEIGHT])
    return network


def of_keras(rate: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda network: keras.optimizers.SGD(rate, **options)


def ours(rate: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda network: nn.SGD(network.trainable_variables, rate, **options)


def in_groups(network: Any) -> Any:
    # The group's own rate trains; the optimizer's is what is recorded.
    return nn.SGD([{"params": network.trainable_variables, "lr": 0.125}], HALVED)


def by_apex(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def initialized(network: Any) -> Any:
        return amp.initialize(network, make(network), opt_level="O0", verbosity=0)[1]

    return initialized


class Halving(nn.LearningRateSchedule):
    """Half the rate after each step."""

    def construct(self, global_step: Any) -> Any:
        return 0.125 * 0.5 ** keras.ops.cast(global_step, "float32")


# How the optimizer is made, the rates that train, and those that are recorded.
OPTIMIZERS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "keras, constant": (of_keras(0.125), CONSTANT, CONSTANT),
    "keras, schedule": (of_keras(schedules.ExponentialDecay(0.125, 1, 0.5)), HALVED, HALVED),
    "keras, function": (of_keras(lambda: 0.125), CONSTANT, CONSTANT),
    "constant": (ours(0.125), CONSTANT, CONSTANT),
    "list": (ours(HALVED), HALVED, HALVED),
    "schedule": (ours(Halving()), HALVED, HALVED),
    "schedule of keras": (ours(schedules.ExponentialDecay(0.125, 1, 0.5)), HALVED, HALVED),
    "groups": (in_groups, CONSTANT, HALVED),
    "apex": (by_apex(ours(HALVED)), HALVED, HALVED),
    "apex over keras": (by_apex(of_keras(schedules.ExponentialDecay(0.125, 1, 0.5))), HALVED, HALVED),
}
# Another way to say what a quicker run says.
SLOW = {"keras, function", "schedule of keras", "apex"}


def expected(data: Any, rates: list[float]) -> tuple[list[int], list[float]]:
    """Return of each step how many were applied before it, and the norm of its gradient, by NumPy."""
    weight, done, counts, norms = WEIGHT.astype(np.float64), 0, [], []
    for x, y in data:
        gradient = 2 * x.T.astype(np.float64) @ (x @ weight - y) / len(x)
        counts.append(done)
        norms.append(float(np.linalg.norm(gradient)))
        if np.abs(x).max() < 1e30:
            weight, done = weight - rates[done] * gradient, done + 1
    return counts, norms


@pytest.mark.slow
@HOPELESS
@pytest.mark.parametrize(
    ("name", "scaled"),
    [
        *(pytest.param(name, True, marks=[pytest.mark.slow] if name in SLOW else []) for name in OPTIMIZERS),
        *((name, False) for name in ("keras, constant", "groups")),
    ],
)
def test_each_step_has_its_rate_and_norm_in_every_feed(name: str, scaled: bool, groups: None) -> None:
    make, rates, recorded = OPTIMIZERS[name]
    data = [DATA[0], BAD, *DATA[1:]] if scaled else DATA
    kept = []
    for feed in ("host", "groups", "sink"):
        network = dense()
        manager = DynamicLossScaleManager(4.0) if scaled else None
        model = Model(network, "mse", make(network), loss_scale_manager=manager)
        kept.append(Keep(observes=feed == "groups"))
        model.train(1, data, kept[-1], dataset_sink_mode=feed == "sink", verbose=0)
    counts, norms = expected(data, rates)
    applied = np.array([x is not BAD[0] for x, _ in data])
    for keep in kept:
        records = keep.records
        assert records.learning_rate.dtype == records.grad_norm.dtype == np.float32
        np.testing.assert_allclose(records.learning_rate, [recorded[count] for count in counts], rtol=1e-6)
        np.testing.assert_allclose(records.grad_norm[applied], np.array(norms)[applied], rtol=1e-4)
        assert np.isfinite(records.grad_norm).tolist() == applied.tolist()
        for column in ("loss", "learning_rate", "grad_norm", "overflow"):
            assert getattr(records, column).tobytes() == getattr(kept[0].records, column).tobytes(), column


@pytest.mark.slow
@HOPELESS
@pytest.mark.parametrize("name", ["keras, schedule", "list", "groups", "apex", "apex over keras"])
def test_an_observer_reads_the_rate_and_the_count_of_its_own_step(name: str, groups: None) -> None:
    make, rates, _ = OPTIMIZERS[name]
    data = [DATA[0], BAD, *DATA[1:], *DATA[:3]]
    keeps = [Keep(observes=True), Keep(observes=False)]
    for keep in keeps:
        network = dense()
        model = Model(network, "mse", make(network), loss_scale_manager=DynamicLossScaleManager(4.0))
        model.train(1, data, keep, verbose=0)
    counts, _ = expected(data, [*rates, *rates])
    together, alone = keeps
    assert together.begun == alone.begun and together.ended == alone.ended
    assert [count for count, _ in alone.begun] == counts and [count for count, _ in alone.ended] == [*counts[1:], 9]


@pytest.mark.slow
def test_the_count_of_batches_is_shown_where_gradients_are_accumulated(groups: None) -> None:
    keeps = [Keep(observes=True), Keep(observes=False)]
    for keep in keeps:
        optimizer = keras.optimizers.SGD(schedules.ExponentialDecay(0.125, 1, 0.5), gradient_accumulation_steps=2)
        Model(dense(), "mse", optimizer).train(1, DATA, keep, verbose=0)
    assert keeps[0].ended == keeps[1].ended
    assert [count for count, _ in keeps[1].ended] == [0, 1, 1, 2, 2, 3]
    assert optimizer.variables[0].path.endswith("iteration")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "raise"])
@pytest.mark.parametrize("last", [1, 2, 4])
def test_a_run_that_an_observer_ends_leaves_the_end_of_its_group(how: str, last: int, groups: None) -> None:
    class Ending(mixtrain.Callback):
        observes_only = True

        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == last:
                if how == "raise":
                    raise KeyboardInterrupt
                run_context.request_stop()

    optimizer = keras.optimizers.SGD(schedules.ExponentialDecay(0.125, 1, 0.5))
    network = dense()
    model = Model(network, "mse", optimizer)
    try:
        model.train(1, DATA, Ending(), verbose=0)
    except KeyboardInterrupt:
        pass
    end = 4  # The fixture's groups have four steps.
    assert int(optimizer.iterations) == end
    other = dense()
    again = Model(other, "mse", keras.optimizers.SGD(schedules.ExponentialDecay(0.125, 1, 0.5)))
    again.train(1, DATA[:end], Keep(observes=False), verbose=0)
    assert network.get_weights()[0].tobytes() == other.get_weights()[0].tobytes()
    rest = model.train(1, DATA[end:], verbose=0)["loss"]
    assert rest == again.train(1, DATA[end:], verbose=0)["loss"]


# ---- the norm ------------------------------------------------------------------------------------------------------
def first_records(network: Any, optimizer: Any, data: Any, loss: Any = "mse", **options: Any) -> StepRecords:
    keep = Keep(observes=False)
    Model(network, loss, optimizer, **options).train(1, data, keep, verbose=0)
    return keep.records


@pytest.mark.slow
@pytest.mark.parametrize("how", ["the optimizer divides", "a loss_scale_factor", "clipped"])
def test_the_norm_is_of_unscaled_gradients_before_clipping(how: str) -> None:
    network, options = dense(), {}
    if how == "the optimizer divides":
        optimizer: Any = nn.SGD(network.trainable_variables, 0.125, loss_scale=8.0)
        options["loss_scale_manager"] = FixedLossScaleManager(8.0, drop_overflow_update=False)
    elif how == "a loss_scale_factor":
        optimizer = keras.optimizers.SGD(0.125, loss_scale_factor=8.0)
    else:
        optimizer = keras.optimizers.SGD(0.125, global_clipnorm=1e-3)
    records = first_records(network, optimizer, DATA[:1], **options)
    np.testing.assert_allclose(records.grad_norm, expected(DATA[:1], CONSTANT)[1], rtol=1e-5)


def test_finite_gradients_whose_squares_are_not_are_applied() -> None:
    network = dense()
    big = [(DATA[0][0] * np.float32(1e25), DATA[0][1])]
    records = first_records(
        network, keras.optimizers.SGD(1e-30), big, nn.L1Loss(), loss_scale_manager=FixedLossScaleManager(1.0)
    )
    assert records.overflow.tolist() == [False] and records.grad_norm.tolist() == [np.inf]


# ---- where something is not known ----------------------------------------------------------------------------------
def test_a_train_cell_with_a_step_of_its_own_has_a_rate_and_no_norm() -> None:
    class Own(nn.TrainOneStepCell):
        def construct(self, *inputs: Any) -> Any:
            return super().construct(*inputs) * 1.0

    network: Any = nn.Dense(3, 1)
    step = Own(nn.WithLossCell(network, nn.MSELoss()), nn.SGD(network.trainable_params(), HALVED))
    keep = Keep(observes=False)
    keep._live = lambda optimizer: (0, 0.0)  # type: ignore[method-assign]
    Model(step).train(1, DATA[:2], keep, verbose=0)
    assert keep.records.learning_rate.tolist() == HALVED[:2] and np.isnan(keep.records.grad_norm).all()


@pytest.mark.skipif(not hasattr(keras.optimizers, "MultiOptimizer"), reason="this Keras has none")
def test_an_optimizer_of_optimizers_has_no_rate() -> None:
    inner = keras.optimizers.SGD(0.125)
    records: list[StepRecords] = []

    class Look(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            records.append(run_context.original_args().step_results)

    optimizer = keras.optimizers.MultiOptimizer(lambda variable: inner)
    Model(dense(), "mse", optimizer).train(1, DATA[:1], Look(), verbose=0)
    assert np.isnan(records[0].learning_rate).all() and np.isfinite(records[0].grad_norm).all()


def test_records_are_read_when_somebody_looks_and_once() -> None:
    class Unread:
        def __array__(self, *options: Any, **more: Any) -> np.ndarray:
            raise AssertionError("read from the device")

    parts = [StepRecords(np.ones(2, np.float32), grad_norm=Unread(), learning_rate=Unread()) for _ in range(2)]
    joined = StepRecords.joined([*parts, *parts[0].each()])
    assert joined.loss.tolist() == [1.0] * 6 and len(joined) == 6 and not joined.scaled
    with pytest.raises(Exception):  # noqa: B017  Of whatever kind the backend's is.
        joined.grad_norm  # noqa: B018
    whole = StepRecords([np.float32(2.0), np.float32(3.0)], learning_rate=[np.float32(0.5), np.float32(0.25)])
    assert [part.learning_rate.tolist() for part in whole.each()] == [[0.5], [0.25]]
    assert np.isnan(whole.grad_norm).all() and whole.grad_norm.shape == (2,)


@pytest.mark.slow
def test_what_a_train_cell_returns_is_as_before() -> None:
    outputs = []

    class Look(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            outputs.append(run_context.original_args().net_outputs)

    model = chain_model(DynamicLossScaleManager(16.0))
    model.train(1, batches("01"), Look(), verbose=0)
    model.train(1, batches("01"), Look(), dataset_sink_mode=True, verbose=0)
    assert [len(triple) for triple in outputs] == [3, 3, 3]
    loss, overflow, scale = model.train_network(*map(mixtrain.Tensor, batches("0")[0]))
    assert not bool(overflow) and float(scale) == 4.0 and np.isfinite(float(loss))
