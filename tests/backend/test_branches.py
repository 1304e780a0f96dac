"""A tensor may decide a branch of a compiled step; where it may not, the error says where and what to write."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn, ops
from tests.backends import ON_TENSORFLOW, quick_every

on_jax = pytest.mark.skipif(ON_TENSORFLOW, reason="about the JAX backend")


class Clamped(nn.Cell):
    """Doubles its weight's product where it is small; the branch is the tensor's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = mixtrain.Parameter(np.float32(1.0), name="weight")

    def construct(self, x: Any) -> Any:
        y = x * self.weight
        if ops.ReduceSum()(y) < 4.0:
            y = 2.0 * y
        return y


def flat(x: Any) -> Any:
    """Branch on a tensor outside of any construct."""
    return x if x.sum() > 0 else -x


class Outside(Clamped):
    def construct(self, x: Any) -> Any:
        return flat(x * self.weight)


@quick_every(2, 1)
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_a_tensor_decides_a_branch_in_construct(sink: bool) -> None:
    net = Clamped()
    model = Model(net, nn.L1Loss(reduction="sum"), nn.SGD(net.trainable_params(), 0.0))
    rows = [(np.full((1, 1), value, np.float32), np.zeros((1, 1), np.float32)) for value in (1.0, 3.0, 5.0, 7.0)]
    losses: list[float] = []

    class Keep(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            losses.extend(run_context.original_args().step_results.loss.tolist())

    model.train(1, rows, callbacks=Keep(), dataset_sink_mode=sink, verbose=0)
    assert losses == [2.0, 6.0, 5.0, 7.0]
    assert model.predict(np.float32([[1.0]])).asnumpy().tolist() == [[2.0]]


def test_a_tensor_decides_a_branch_in_a_function_that_construct_calls() -> None:
    net = Outside()
    model = Model(net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.1))
    data = [(np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))]
    model.train(1, data, verbose=0)
    assert float(net.weight.asnumpy()) == pytest.approx(0.9)
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    model.train(1, data, verbose=0)
    assert float(net.weight.asnumpy()) == pytest.approx(0.8)


@pytest.mark.slow
def test_networks_are_freed_where_a_tensor_decided_a_branch() -> None:
    def left(net: nn.Cell) -> weakref.ref[nn.Cell]:
        model = Model(net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.1), amp_level="O2")
        model.train(1, [(np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))], verbose=0)
        return weakref.ref(net)

    # The second has no branch, but what the step calls has been rewritten by now.
    networks = [left(make()) for make in (Clamped, lambda: nn.Dense(1, 1), Outside)]
    gc.collect()
    assert [network() for network in networks] == [None] * 3


def signed(x: Any) -> Any:
    """Return something else for three kinds of tensors; called by others."""
    if x.sum() > 0:
        return 3 * x if x.max() > 5 else 2 * x
    return -x


@on_jax
def test_on_jax_branches_may_be_nested_and_stand_in_what_is_called() -> None:
    weight = mixtrain.Parameter(np.zeros(2, np.float32), name="weight")

    @mixtrain.jit
    def run(x: Any) -> Any:
        y = signed(x)
        if y.sum() > 10 and not y.max() > 30:
            weight.assign(y)
        return y

    results = [(run(mixtrain.Tensor(x)).asnumpy().tolist(), weight.asnumpy().tolist()) for x in (
        [1.0, 2.0], [-1.0, -2.0], [9.0, 1.0], [30.0, 1.0])]
    assert results == [([2, 4], [0, 0]), ([1, 2], [0, 0]), ([27, 3], [27, 3]), ([90, 3], [27, 3])]


@on_jax
def test_on_jax_a_gradient_is_that_of_the_branch_that_is_taken() -> None:
    gradient = mixtrain.jit(mixtrain.grad(lambda x: signed(x).sum()))
    results = [gradient(mixtrain.Tensor(x)).asnumpy().tolist() for x in ([1.0, 2.0], [-1.0, -2.0], [9.0, 1.0])]
    assert results == [[2, 2], [-1, -1], [3, 3]]


@on_jax
def test_on_jax_python_numbers_are_those_of_the_branch_that_is_taken() -> None:
    @mixtrain.jit
    def run(x: Any) -> Any:
        return (x, 1, "text") if x.sum() > 0 else (x, 2, "text")

    assert [int(run(mixtrain.Tensor([value]))[1]) for value in (1.0, -1.0)] == [1, 2]
    assert run(mixtrain.Tensor([1.0]))[2] == "text"


@on_jax
def test_on_jax_what_is_printed_is_what_the_branches_taken_print(capsys: Any) -> None:
    @mixtrain.jit
    def run(x: Any) -> Any:
        ops.Print()("begin", x)
        if x.sum() > 0:
            ops.Print()("above", x)
            if x.sum() > 4:
                ops.Print()("far")
        else:
            ops.Print()("below", x)
        return x

    words = []
    for value in (1.0, -1.0, 5.0):
        run(mixtrain.Tensor(value)).asnumpy()
        words.append([line for line in capsys.readouterr().out.splitlines() if "Tensor" not in line])
    assert [line for line in words if line] == [["begin", "above"], ["begin", "below"], ["begin", "above", "far"]]


@on_jax
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x.sum() > 0 else x.astype("float16"), r"same shapes and dtypes; got .*float32.*float16"),
        (lambda x: x if x.sum() > 0 else (x, x), "same shapes and dtypes"),
    ],
)
def test_on_jax_code_that_cannot_be_traced_along_all_paths_is_refused(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        mixtrain.jit(function)(mixtrain.Tensor([1.0]))


@on_jax
def test_on_jax_a_loop_that_a_tensor_ends_runs_uncompiled_under_jit() -> None:
    with pytest.warns(UserWarning, match="jit: _counted_down lets a tensor decide .* so it runs uncompiled"):
        assert float(mixtrain.jit(_counted_down)(mixtrain.Tensor([2.5]))[0]) == -0.5


@on_jax
def test_on_jax_a_branch_inside_a_loop_of_jax_s_is_refused() -> None:
    import jax

    @mixtrain.jit
    def run(x: Any) -> Any:
        return jax.lax.scan(lambda total, value: (total + value, 0 * value if total > 2 else value), 0 * x[0], x)[1]

    with pytest.warns(UserWarning, match="runs uncompiled"), pytest.raises(jax.errors.TracerBoolConversionError):
        run(mixtrain.Tensor([1.0, 2.0, 3.0]))


def _counted_down(x: Any) -> Any:
    while x.sum() > 0:
        x = x - 1
    return x


@on_jax
def test_on_jax_an_array_of_jax_s_own_still_decides_nothing_while_traced() -> None:
    import jax

    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert mixtrain.jit(lambda x: 1 if x.sum().backend_tensor() > 0 else 2)(mixtrain.Tensor([1.0])) == 1
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(signed)(np.ones(2, np.float32))
