"""`Parameter.register_hook`: a hook gets the whole gradient, and what it returns takes its place everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Model, Parameter, Tensor, nn, ops
from tests.backends import quick_every

X = Tensor([1.0, 1.0])


def both_uses(w: Parameter) -> Any:
    """Return a function that reads a parameter twice, and its gradient by it."""
    return ops.grad(lambda x: (w * x).sum() + (w * w).sum(), None, [w])


def test_a_hook_sees_the_sum_of_all_uses_and_replaces_it_until_it_is_removed() -> None:
    w, seen = Parameter(Tensor([2.0, 3.0]), name="w"), []
    handle = w.register_hook(lambda gradient: (seen.append(gradient.asnumpy().tolist()), gradient * 2)[1])
    w.register_hook(lambda gradient: None)
    assert both_uses(w)(X)[0].asnumpy().tolist() == [10.0, 14.0] and seen == [[5.0, 7.0]]
    handle.remove()
    assert both_uses(w)(X)[0].asnumpy().tolist() == [5.0, 7.0] and len(seen) == 1
    with pytest.raises(TypeError, match="Parameter.register_hook: hook must be a function; got int 3"):
        w.register_hook(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected a call outside of networks in graph mode; got w in one"):
        ms.jit(lambda x: (w.register_hook(ops.neg), x)[1])(X)
    w.requires_grad = False
    with pytest.raises(RuntimeError, match="expected a Parameter that requires a gradient; got w"):
        w.register_hook(ops.neg)


def test_hooks_of_a_tensor_are_listed_and_see_the_gradient_of_what_it_was_then() -> None:
    seen: list[Any] = []

    def written(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda gradient: seen.append(gradient.asnumpy().tolist()))
        y.mul_(5.0)
        left = len(y.hooks())
        handle = y.register_hook(lambda gradient: gradient * 3)
        y.register_hook(ops.zeros_like).remove()
        seen.append((left, len(y.hooks())))
        assert callable(handle.remove)
        return y + 1.0

    assert ops.grad(written)(Tensor([1.0, 2.0])).asnumpy().tolist() == [30.0, 60.0]
    assert seen == [(0, 1), [15.0, 15.0]]


def test_compiled_functions_follow_a_hook_and_its_removal() -> None:
    w = Parameter(Tensor([2.0, 3.0]), name="w")
    compiled = ms.jit(lambda x: both_uses(w)(x)[0])
    assert compiled(X).asnumpy().tolist() == [5.0, 7.0]
    handle = w.register_hook(lambda gradient: gradient * 2)
    assert compiled(X).asnumpy().tolist() == [10.0, 14.0]
    handle.remove()
    assert compiled(X).asnumpy().tolist() == [5.0, 7.0]


@quick_every(3)
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_a_train_step_updates_by_what_the_hook_returns(sink: bool, mode: int) -> None:
    ms.set_context(mode=mode)
    ms.set_seed(1)
    network = nn.Dense(3, 2)
    before = network.weight.asnumpy().copy(), network.bias.asnumpy().copy()
    handle = network.weight.register_hook(ops.zeros_like)
    model = Model(
        network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.1), amp_level="O2",
        loss_scale_manager=ms.FixedLossScaleManager(64.0),
    )
    data = [(np.ones((4, 3), np.float32), np.ones((4, 2), np.float32))] * 3
    model.train(1, data, dataset_sink_mode=sink, verbose=0)
    assert np.array_equal(network.weight.asnumpy(), before[0]) and not np.array_equal(network.bias.asnumpy(), before[1])
    handle.remove()
    model.train(1, data, dataset_sink_mode=sink, verbose=0)
    assert not np.array_equal(network.weight.asnumpy(), before[0])
