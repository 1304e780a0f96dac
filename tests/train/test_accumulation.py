"""`Model(..., accumulate_steps=n)` updates by the gradient of n batches, as one batch of all their rows would."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, nn
from tests.backends import ON_TENSORFLOW, quick_only_some
from tests.distribution.networks import batches, mlp, train, values_of

# Each of several Models is compiled by XLA there.
slow_on_jax = pytest.mark.slow if not ON_TENSORFLOW else pytest.mark.filterwarnings("error")
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.01),
    "clipped": lambda: keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=0.1, use_ema=True),
}


def joined(data: list[Any], *counts: int) -> list[Any]:
    """Return batches joined, so many at a time."""
    rest = iter(data)
    groups = [[next(rest) for _ in range(count)] for count in counts]
    return [tuple(np.concatenate(column) for column in zip(*group, strict=True)) for group in groups]


@pytest.mark.parametrize(("devices", "sink", "name"), quick_only_some([
    (None, False, "adam"), (None, True, "clipped"), (2, False, "adam"), (2, True, "clipped"),
], (1,) if ON_TENSORFLOW else (0,)))
def test_updates_are_those_of_the_large_batch_and_the_remainder_is_applied(
    devices: int | None, sink: bool, name: str
) -> None:
    small = batches(4, 4, 4, 4, 2, 4, 4, 4)
    one = train(devices, small, sink=sink, accumulate_steps=3, optimizer=OPTIMIZERS[name]())
    large = train(None, joined(small, 3, 3, 2), optimizer=OPTIMIZERS[name]())
    distances = [np.abs(a - b).max() for a, b in zip(one.weights, large.weights, strict=True)]
    assert max(distances) < 1e-6
    assert int(one.model.train_network.driver.iterations) == 3


@pytest.mark.slow
@slow_on_jax
@pytest.mark.parametrize("sink", [False, True] if ON_TENSORFLOW else [False])
def test_an_overflow_rejects_its_window_alone(sink: bool) -> None:
    data = batches(*[4] * 9)
    data[4][0][1, 2] = np.inf
    options: dict[str, Any] = {"accumulate_steps": 3, "loss_scale_manager": FixedLossScaleManager(2**8)}
    faulty = train(None, data, sink=sink, **options)
    control = train(None, data[:3] + data[6:], sink=sink, **options)
    assert sum(faulty.history["skipped_steps"]) == 1
    assert all(np.array_equal(a, b) for a, b in zip(faulty.weights, control.weights, strict=True))
    assert int(faulty.model.train_network.driver.iterations) == 2


@pytest.mark.slow
@slow_on_jax
def test_the_search_for_the_first_scale_rejects_no_window() -> None:
    run = train(None, batches(*[4] * 4), accumulate_steps=4, amp_level="O2")
    assert int(run.model.train_network.driver.iterations) == 1


class Stop(mixtrain.Callback):
    """Ends a run after some steps."""

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 6:
            run_context.request_stop()


@pytest.mark.slow
@slow_on_jax
def test_a_run_goes_on_in_the_middle_of_a_window(tmp_path: Any) -> None:
    def run(*callbacks: Any, resume: Any = None) -> list[Any]:
        mixtrain.set_seed(0)
        network = mlp()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model = Model(network, loss, keras.optimizers.Adam(0.01), accumulate_steps=4)
        model.train(1, batches(*[4] * 8), list(callbacks), verbose=0, resume=resume)
        return values_of(network)

    config = mixtrain.CheckpointConfig(save_checkpoint_steps=6)
    run(mixtrain.ModelCheckpoint("run", str(tmp_path), config), Stop())
    assert all(np.array_equal(a, b) for a, b in zip(run(), run(resume=tmp_path), strict=True))


@pytest.mark.slow
@slow_on_jax
def test_a_cell_with_its_own_optimizer_accumulates() -> None:
    results = []
    for data, steps in ((batches(4, 4), 2), (joined(batches(4, 4), 2), 1)):
        mixtrain.set_seed(0)
        net = nn.SequentialCell(nn.Dense(6, 4), nn.Tanh(), nn.Dense(4, 3))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.01)
        Model(net, loss, optimizer, accumulate_steps=steps, loss_scale_manager=DynamicLossScaleManager(8)).train(
            1, data, verbose=0)
        results.append([weight.asnumpy() for weight in net.trainable_params()])
    assert max(np.abs(a - b).max() for a, b in zip(*results, strict=True)) < 1e-6


@pytest.mark.parametrize(("options", "message"), [
    ({"accumulate_steps": 0}, "accumulate_steps must be at least 1"),
    ({"accumulate_steps": 2, "on_overflow": "retry"}, 'needs on_overflow="skip"'),
    ({"accumulate_steps": 2, "optimizer": "own"}, "needs an optimizer without gradient_accumulation_steps; got 2"),
])
def test_what_does_not_go_together_is_refused(options: dict[str, Any], message: str) -> None:
    if options.get("optimizer") == "own":
        options["optimizer"] = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    with pytest.raises(ValueError, match=message):
        train(None, batches(4), **options)


@pytest.mark.slow
@slow_on_jax
def test_keras_accumulation_on_two_devices_is_that_of_one() -> None:
    data = batches(*[4] * 6)
    one, two = (
        train(count, data, optimizer=keras.optimizers.Adam(0.01, gradient_accumulation_steps=3)) for count in (None, 2)
    )
    assert max(np.abs(a - b).max() for a, b in zip(one.weights, two.weights, strict=True)) < 1e-6
