"""GradScaler beside PyTorch's: the same scale, weights and momentum after every iteration of random sequences."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Parameter, Tensor, backend, nn
from mixtrain.amp import GradScaler
from mixtrain.compat.pytorch.changeable_scale import checked_growth
from mixtrain.loss_scale.rule import SMALLEST_NORMAL, LossScaleState
from tests.backends import MODES, gradient_of, on_jax_only_some

REFERENCE = dict(np.load(pathlib.Path(__file__).parents[2] / "data" / "grad_scaler_reference.npz"))
CASES = range(len(REFERENCE["settings"]))


class Pair:
    """Two parameters with an optimizer each, mixtrain's and Keras's, two losses, one scaler; as in the recipe."""

    def __init__(self, micro: int, norm: float) -> None:
        self.micro, self.norm = micro, norm
        self.weights = [
            Parameter(np.zeros(3, np.float32), name="w"),
            keras.Variable(np.zeros(3, np.float32), name="v"),
        ]
        self.optimizers = [nn.Momentum(self.weights[:1], 0.05, 0.9), keras.optimizers.Adam(0.03, epsilon=1e-8)]
        self.optimizers[1].build(self.weights[1:])
        self.scaler = GradScaler()

    def start(self, case: int) -> None:
        """Put everything back to the start of a case."""
        init_scale, growth, backoff, interval, *_ = REFERENCE["settings"][case].tolist()
        state = {"scale": init_scale, "growth_factor": growth, "backoff_factor": backoff, "_growth_tracker": 0}
        self.scaler.load_state_dict({**state, "growth_interval": int(interval)})
        for weight, value in zip(self.weights, REFERENCE["start"], strict=True):
            weight.assign(value)
        for variable in (self.optimizers[0].global_step, *self.optimizers[0].moments, *self.optimizers[1].variables):
            if variable is not self.optimizers[1].learning_rate:
                variable.assign(np.zeros(tuple(variable.shape), variable.dtype))

    def iteration(self, targets: Any) -> list[Any]:
        """Run one iteration on targets (micro-batches, 2, 3); return what the recipe keeps."""
        for place, (weight, optimizer) in enumerate(zip(self.weights, self.optimizers, strict=True)):
            total = keras.ops.zeros(3)
            for batch in range(self.micro):
                total += gradient_of(lambda: self.scaled_loss(weight, targets[batch, place]), weight)[0]
            grads = [total]
            if self.norm:
                grads = self.scaler.unscale_(grads, optimizer)
                norm = keras.ops.norm(grads[0])
                grads = [grads[0] * keras.ops.minimum(self.norm / (norm + 1e-6), 1.0)]
            self.scaler.step(optimizer, grads, [weight])
        self.scaler.update()
        momentum, moment = self.optimizers[0].moments[0], self.optimizers[1]._momentums[0]
        state = (self.scaler.state.loss_scale, self.scaler.state.good_steps)
        values = (*state, keras.ops.stack([weight.value for weight in self.weights]), momentum, moment)
        return [backend.to_tensor(value) for value in values]

    def scaled_loss(self, weight: Any, target: Any) -> Any:
        return self.scaler.scale(0.5 * keras.ops.sum((weight.value - target) ** 2) / self.micro)


@functools.cache
def compiled(micro: int, norm: float, mode: str) -> tuple[Pair, Callable[..., Any]]:
    """Return a pair and its compiled iteration, traced once for all cases that can share it."""
    pair = Pair(micro, norm)
    return pair, MODES[mode](pair.iteration)


def check(case: int, pair: Pair, iteration: Callable[..., Any], steps: int) -> None:
    """Compare a run with the recorded one."""
    pair.start(case)
    rows = [
        [backend.to_numpy(value) for value in iteration(Tensor(row))] for row in REFERENCE["targets"][case][:steps]
    ]
    names = ("scale", "tracker", "weight", "momentum", "moment")
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        expected = REFERENCE[name][case][:steps]
        if name in ("scale", "tracker"):
            np.testing.assert_array_equal(np.stack(column), expected, err_msg=name)
        else:
            np.testing.assert_allclose(np.stack(column), expected, rtol=1e-5, atol=1e-5, err_msg=name)


def settings_of(case: int) -> tuple[int, float]:
    *_, micro, norm = REFERENCE["settings"][case].tolist()
    return int(micro), norm


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_compiled_loop_equals_pytorch_after_every_iteration(case: int) -> None:
    check(case, *compiled(*settings_of(case), "compiled"), steps=26)


@pytest.mark.tensorflow
def test_a_loop_was_traced_once() -> None:
    pair, iteration = compiled(*settings_of(0), "compiled")
    check(0, pair, iteration, steps=3)
    assert backend.trace_count(iteration) == 1


@pytest.mark.slow
@pytest.mark.tensorflow  # JAX has XLA alone.
def test_a_loop_compiled_with_xla_equals_pytorch() -> None:
    check(3, *compiled(*settings_of(3), "xla"), steps=26)


@pytest.mark.slow
@pytest.mark.parametrize("case", on_jax_only_some([1, 2], some=[1]))
def test_an_eager_loop_equals_pytorch(case: int) -> None:
    pair = Pair(*settings_of(case))
    check(case, pair, pair.iteration, steps=14)


def test_the_recorded_sequences_hold_what_they_are_to_show() -> None:
    settings, scale = REFERENCE["settings"], REFERENCE["scale"]
    assert settings[:, 1].min() >= 2 and settings[:, 1].max() == 16
    assert settings[:, 2].min() == 0.25 and settings[:, 2].max() == 0.5
    assert sorted(set(settings[:, 3])) == list(range(1, 11))
    moved = np.diff(scale, axis=1)
    assert (moved > 0).any(axis=1).sum() >= 15 and (moved < 0).any(axis=1).all()
    bad = ~np.isfinite(REFERENCE["targets"][:, :, :1]).all(axis=(2, 4))
    assert (bad[..., 0] & ~bad[..., 1]).any() and (bad[..., 1] & ~bad[..., 0]).any()


def scales(bad: bool, count: int, growth: float = 2.0, interval: int = 2000) -> np.ndarray:
    """Return the scale after each of `count` iterations that all overflow, or none does."""
    state = LossScaleState(2.0**16, checked_growth("test", growth, 0.5, interval))
    seen = []
    for _ in range(count):
        state.advance(not bad)
        seen.append(backend.to_numpy(state.loss_scale))
    return np.float32(seen)


def test_the_scale_that_only_falls_equals_pytorchs_down_to_the_floor_where_pytorchs_goes_on_to_zero() -> None:
    theirs, ours = REFERENCE["bad"], scales(True, 200)
    assert np.argmax(theirs == 0) == 165
    above = theirs >= SMALLEST_NORMAL
    assert above.sum() == 142
    np.testing.assert_array_equal(ours[above], theirs[above])
    assert set(ours[~above]) == {np.float32(SMALLEST_NORMAL)} and SMALLEST_NORMAL == 2.0**-126


@pytest.mark.parametrize(("row", "growth"), [(0, 2.0), (1, 3.0)])
def test_a_growth_that_would_not_be_finite_is_left_out_as_in_pytorch(row: int, growth: float) -> None:
    theirs = REFERENCE["grown"][row]
    assert np.isfinite(theirs).all() and theirs[-1] == theirs[-10]
    np.testing.assert_array_equal(scales(False, len(theirs), growth, interval=1), theirs)
