"""A write to the result of an operator changes its input exactly where it does in MindSpore 2.10.

Recorded by writing ``y[..., 0] = 99`` and looking at x, on a CPU. Under `jit` and in graph mode nothing is shared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops
from tests.backends import quick_every

SHARED: dict[str, Callable[[Any], Any]] = {
    "x[...]": lambda x: x[...],
    "x[0]": lambda x: x[0],
    "x[None]": lambda x: x[None],
    "x[:, :]": lambda x: x[:, :],
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x.view": lambda x: x.view(3, 2),
    "x.reshape": lambda x: x.reshape(3, 2),
    "x.T": lambda x: x.T,
    "x.mT": lambda x: x.mT,
    "x.t": lambda x: x.t(),
    "x.transpose": lambda x: x.transpose(1, 0),
    "x.permute": lambda x: x.permute(1, 0),
    "x.swapaxes": lambda x: x.swapaxes(0, 1),
    "x.flatten": lambda x: x.flatten(),
    "x.squeeze": lambda x: x.squeeze(),
    "x.broadcast_to": lambda x: x.broadcast_to((2, 2, 3)),
    "x.expand_as": lambda x: x.expand_as(x),
    "x.astype of its dtype": lambda x: x.astype(mixtrain.float32),
    "x.contiguous": lambda x: x.contiguous(),
    "x.diagonal": lambda x: x.diagonal(),
    "x.narrow": lambda x: x.narrow(0, 0, 1),
    "x.split": lambda x: x.split(1)[0],
    "x.chunk": lambda x: x.chunk(2)[1],
    "x.select": lambda x: x.select(0, 0),
    "x.data": lambda x: x.data,
    "Tensor(x)": Tensor,
    "stop_gradient": ops.stop_gradient,
    "broadcast_to": lambda x: ops.broadcast_to(x, (2, 3)),
    "BroadcastTo": lambda x: ops.BroadcastTo((2, 2, 3))(x),
    "reshape": lambda x: ops.reshape(x, (3, 2)),
    "reshape by name": lambda x: ops.reshape(shape=(3, 2), input=x),
    "Reshape": lambda x: ops.Reshape()(x, (2, 3)),
    "transpose": lambda x: ops.transpose(x, (1, 0)),
    "Transpose": lambda x: ops.Transpose()(x, (1, 0)),
    "squeeze": ops.squeeze,
    "Squeeze": lambda x: ops.Squeeze()(x),
    "expand_dims": lambda x: ops.expand_dims(x, 0),
    "ExpandDims": lambda x: ops.ExpandDims()(x, 0),
    "ravel": ops.ravel,
    "split": lambda x: ops.split(x, 1)[1],
    "Split": lambda x: ops.Split(0, 2)(x)[0],
    "unbind": lambda x: ops.unbind(x)[1],
    "Unstack": lambda x: ops.Unstack()(x)[0],
    "tensor_split": lambda x: ops.tensor_split(x, 2)[0],
    "slice": lambda x: ops.slice(x, (0, 0), (2, 3)),
    "StridedSlice": lambda x: ops.StridedSlice()(x, (0, 0), (2, 3), (1, 1)),
    "dropout without training": lambda x: ops.dropout(x, 0.5, False),
    "two after another": lambda x: ops.reshape(x.T, (6,)),
}
APART: dict[str, Callable[[Any], Any]] = {
    "x.copy": lambda x: x.copy(),
    "x.abs": lambda x: x.abs(),
    "x.tile": lambda x: x.tile((1, 1)),
    "copy.copy": copy.copy,
    "Identity": lambda x: ops.Identity()(x),
    "deepcopy": ops.deepcopy,
    "flatten": ops.flatten,
    "Flatten": lambda x: ops.Flatten()(x),
    "nn.Flatten": lambda x: nn.Flatten()(x),
    "tile": lambda x: ops.tile(x, (1, 1)),
    "repeat_interleave": lambda x: ops.repeat_interleave(x, 1, 0),
    "concat": lambda x: ops.concat((x,)),
    "pad": lambda x: ops.pad(x, (0, 0)),
    "relu": ops.relu,
    "flip": lambda x: ops.flip(x, (0,)),
    "clamp": lambda x: ops.clamp(x, -9.0, 9.0),
    "Gather": lambda x: ops.Gather()(x, Tensor([0, 1]), 0),
}
EVERY = SHARED | APART
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def graph_mode() -> None:
    """Set graph mode, as a script does."""
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE)


class Written(nn.Cell):
    """Writes to the result of an operator, and returns its input and the result."""

    def __init__(self, operation: Callable[[Any], Any]) -> None:
        super().__init__()
        self.operation = operation

    def construct(self, x: Any) -> tuple[Any, Any]:
        """Return the input and the result, after the write."""
        y = self.operation(x)
        y[..., 0] = 99
        return x + 0, y + 0


def changed(run: Callable[[Any], Any]) -> tuple[bool, bool]:
    """Return whether the input was changed, as the function sees it and as its caller does."""
    x = Tensor(X)
    inside, result = run(x)
    assert (result.asnumpy()[..., 0] == 99).all()
    return bool((inside.asnumpy() != X).any()), bool((x.asnumpy() != X).any())


@pytest.mark.parametrize("name", EVERY)
def test_a_write_to_a_view_changes_its_base_outside_of_compiled_functions(name: str) -> None:
    shared = name in SHARED
    assert changed(Written(EVERY[name])) == (shared, shared)
    assert changed(Written(EVERY[name]).construct) == (shared, shared)


@quick_every(6)
@pytest.mark.parametrize("name", EVERY)
def test_a_write_changes_nothing_else_in_a_function_that_jit_compiles(name: str) -> None:
    assert changed(mixtrain.jit(lambda x: Written(EVERY[name]).construct(x))) == (False, False)


@pytest.mark.usefixtures("graph_mode")
@pytest.mark.parametrize("name", EVERY)
def test_a_write_changes_nothing_else_in_a_network_in_graph_mode(name: str) -> None:
    assert changed(Written(EVERY[name])) == (False, False)


@pytest.mark.usefixtures("graph_mode")
def test_what_a_network_in_graph_mode_writes_to_its_input_the_caller_does_not_see() -> None:
    assert changed(Written(lambda x: x))[1] is False


class Buffer(nn.Cell):
    """Adds its input to a Tensor that it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.kept, self.weight = Tensor(np.zeros((2, 3), np.float32)), nn.Dense(3, 3)

    def construct(self, x: Any) -> Any:
        """Return the sum of what is kept, after the write."""
        kept = self.kept
        for row in range(2):
            kept[row] = kept[row] + x[row]
        return (self.weight(x) * 0 + kept).sum(-1)


@pytest.mark.usefixtures("graph_mode")
def test_a_kept_tensor_that_a_compiled_call_writes_to_begins_each_call_as_it_was() -> None:
    ones = np.ones((2, 3), np.float32)
    for net in (Buffer(), mixtrain.jit(Buffer())):
        assert [net(Tensor(ones)).asnumpy().tolist() for _ in range(2)] == [[3, 3]] * 2
    net = Buffer()
    model = mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.weight.trainable_params(), 0.1))
    assert model.train(2, [(ones, np.zeros(2, np.float32))] * 2, verbose=0)["loss"] == [9, 9]
    assert model.predict(Tensor(ones)).asnumpy().tolist() == [3, 3]
    assert not net.kept.asnumpy().any()


def test_a_kept_tensor_keeps_what_is_written_where_no_graph_mode_was_set() -> None:
    net, ones = Buffer(), Tensor(np.ones((2, 3), np.float32))
    assert [net(ones).asnumpy().tolist() for _ in range(2)] == [[3, 3], [6, 6]]


@pytest.mark.parametrize(("offset", "shape"), [(4, (4, 0)), (-2, (4, 1)), (-3, (4, 0)), (9, (4, 0))])
def test_a_diagonal_beyond_the_corners_has_no_elements(offset: int, shape: tuple[int, int]) -> None:
    x = Tensor(np.arange(36.0).reshape(3, 3, 4))
    assert ops.diagonal(x, offset).asnumpy().tolist() == np.diagonal(x.asnumpy(), offset).tolist()
    assert tuple(ops.diagonal(x, offset).shape) == shape
