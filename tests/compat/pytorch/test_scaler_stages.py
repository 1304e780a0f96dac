"""The order of a scaler's calls: what is refused eagerly and while compiling, and what a trace leaves behind."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, backend, nn
from mixtrain.amp import GradScaler
from tests.backends import MODES, compiled, quick_every


class Loop:
    """A weight, its optimizer and a scaler, and short names for the calls."""

    def __init__(self, name: str = "w", scaler: GradScaler | None = None) -> None:
        self.weight = Parameter(np.ones(1, np.float32), name=name)
        self.optimizer, self.scaler = nn.SGD([self.weight], 0.5), scaler or GradScaler(16.0)

    def gradient(self, slope: Any = 1.0) -> list[Any]:
        """Return the gradient of a scaled loss."""
        self.scaler.scale(Tensor(0.0))
        return [keras.ops.reshape(slope * self.scaler.state.loss_scale, (1,))]

    def unscale(self, grads: Any = None) -> list[Any]:
        return self.scaler.unscale_(grads or self.gradient(), self.optimizer)

    def step(self, grads: Any = None) -> Any:
        return self.scaler.step(self.optimizer, grads or self.gradient(), [self.weight])

    def update(self) -> None:
        self.scaler.update()

    @property
    def value(self) -> float:
        return float(self.weight.asnumpy()[0])


WRONG = {
    "unscale_ twice": (lambda loop: (loop.unscale(), loop.unscale()), "got a call after unscale_(). Write"),
    "unscale_ after step": (lambda loop: (loop.step(), loop.unscale()), "got a call after step(). Write"),
    "step twice": (lambda loop: (loop.step(), loop.step()), "got a second call. Write scaler.update()"),
    "update alone": (lambda loop: loop.update(), "got no unscale_() and no step(). Write scaler.step("),
    "update twice": (lambda loop: (loop.step(), loop.update(), loop.update()), "got no unscale_() and no step()."),
    "step before scale": (lambda loop: loop.step([keras.ops.ones(1)]), "got step() before scale(). Write gradients of"),
    "unscale_ before scale": (lambda loop: loop.unscale([keras.ops.ones(1)]), "got unscale_() before scale()."),
}


@quick_every(3)
@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("what", WRONG)
def test_calls_in_a_wrong_order_are_refused_with_what_to_write(what: str, mode: str) -> None:
    loop, (calls, message) = Loop(), WRONG[what]

    def run() -> None:
        calls(loop)

    with pytest.raises(RuntimeError) as caught:
        MODES[mode](run)()
    assert message in str(caught.value)


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_step_with_the_gradients_that_unscale_was_given_is_refused(mode: str) -> None:
    loop = Loop()

    def run() -> None:
        grads = loop.gradient()
        loop.unscale(grads)
        loop.step(grads)

    with pytest.raises(RuntimeError, match=r"still scaled\. Write grads = scaler\.unscale_\(grads, optimizer\)\."):
        MODES[mode](run)()


def test_an_update_makes_the_optimizer_ready_again() -> None:
    loop = Loop()
    for _ in range(2):
        loop.step(loop.unscale())
        loop.update()
    assert loop.value == 0.0


def test_an_unscale_without_a_step_can_be_updated() -> None:
    loop = Loop()
    loop.unscale(loop.gradient(np.inf))
    loop.update()
    assert loop.scaler.get_scale() == 8.0
    loop.unscale()


def test_several_iterations_in_one_trace_and_many_calls_of_it() -> None:
    loop = Loop()

    @compiled
    def run() -> None:
        for _ in range(2):
            loop.step(loop.unscale())
            loop.update()

    run()
    run()
    assert loop.value == -1.0 and loop.scaler.get_growth_tracker() == 4
    loop.step()
    loop.update()
    assert loop.value == -1.5


@pytest.mark.slow
def test_a_trace_that_failed_leaves_no_stage_behind_and_its_graph_can_go() -> None:
    loop = Loop()

    def fails() -> Any:
        graphs.append(weakref.ref(backend.traces()[0]))
        loop.unscale()
        raise KeyError("a slip between unscale_ and step")

    def works() -> Any:
        applied = loop.step(loop.unscale())
        loop.update()
        return applied

    graphs: list[Any] = []
    with pytest.raises(KeyError):
        compiled(fails)()
    assert bool(compiled(works)())
    assert bool(works())
    for _ in range(50):  # In a full run it was once there after one collection, for a reason that was not found.
        gc.collect()
        if graphs[0]() is None:
            break
        time.sleep(0.1)
    assert graphs[0]() is None, [repr(holder)[:200] for holder in gc.get_referrers(graphs[0]())]


def test_unscale_in_a_compiled_function_and_step_outside_are_refused_until_the_scaler_begins_anew() -> None:
    loop = Loop()
    grads = compiled(loop.unscale)()
    with pytest.raises(RuntimeError, match="same compiled function.*SGD on the other side.*Write both in one function"):
        loop.step(grads)
    with pytest.raises(RuntimeError, match="same compiled function"):
        loop.unscale()
    loop.scaler.update(loop.scaler.get_scale())
    loop.step()
    assert loop.value == 0.5


def test_unscale_outside_of_a_compiled_step_is_refused() -> None:
    loop = Loop()
    grads = loop.unscale()
    with pytest.raises(RuntimeError, match="same compiled function"):
        compiled(loop.step)(grads)


@pytest.mark.tensorflow  # JAX has no branches that a tensor decides.
def test_unscale_in_a_function_and_step_in_a_branch_of_it_work() -> None:
    tf = pytest.importorskip("tensorflow")
    loop = Loop()

    @tf.function
    def run(last: Any) -> None:
        grads = loop.unscale()
        if last:
            loop.step(grads)
        loop.update()

    run(tf.constant(False))
    assert loop.value == 1.0
    run(tf.constant(True))
    assert loop.value == 0.5


@pytest.mark.parametrize("kind", ["number", pytest.param("tensor", marks=pytest.mark.tensorflow)])
def test_a_step_and_an_update_in_a_branch_accumulate_over_calls(kind: str) -> None:
    loop, total = Loop(), keras.Variable(np.zeros(1, np.float32), trainable=False)

    @mixtrain.jit
    def run(slope: Any, last: Any) -> None:
        total.assign_add(loop.gradient(slope)[0])
        if last:
            loop.step([backend.snapshot(total)])
            loop.update()
            total.assign([0.0])

    for slope, last in ((1.0, False), (2.0, True), (4.0, False), (np.inf, True)):
        run(Tensor(slope), Tensor(last) if kind == "tensor" else last)
    assert loop.value == -0.5
    assert (loop.scaler.get_scale(), loop.scaler.get_growth_tracker()) == (8.0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("outer", MODES)
def test_steps_in_functions_of_their_own_and_one_update_outside(outer: str) -> None:
    scaler = GradScaler(16.0, growth_interval=3)
    loops = [Loop("w", scaler), Loop("v", scaler)]
    first, second = (
        compiled(lambda slope, loop=loop: loop.step(loop.gradient(slope))) for loop in loops
    )

    def run(one: Any, other: Any) -> None:
        first(one)
        second(other)
        scaler.update()

    run = MODES[outer](run)
    seen = []
    for one, other in ((1.0, 1.0), (np.nan, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0)):
        run(Tensor(one), Tensor(other))
        seen.append(scaler.get_scale())
    assert seen == [16.0, 8.0, 8.0, 8.0, 16.0]
    assert [loop.value for loop in loops] == [-1.0, -1.5]


def test_a_compiled_update_that_no_step_comes_before_leaves_the_scale() -> None:
    loop = Loop()
    update = compiled(loop.update)
    loop.step(loop.gradient(np.inf))
    update()
    assert loop.scaler.get_scale() == 8.0
    update()
    assert (loop.scaler.get_scale(), loop.scaler.get_growth_tracker()) == (8.0, 0)


def test_two_optimizers_have_stages_of_their_own() -> None:
    scaler = GradScaler(16.0)
    one, other = Loop("w", scaler), Loop("v", scaler)
    grads = one.unscale()
    other.step()
    one.step(grads)
    scaler.update()
    assert (one.value, other.value) == (0.5, 0.5)
