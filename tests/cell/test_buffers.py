"""Buffers: Tensors that belong to a Cell's state and are not trained."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain as ms
from mixtrain import nn


class Net(nn.Cell):
    """Adds a parameter and a buffer."""

    def __init__(self, inner: nn.Cell | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.register_buffer("mean", ms.Tensor([4.0, 5.0]))
        self.register_buffer("scratch", ms.Tensor([0.0]), persistent=False)
        self.weight = ms.Parameter(ms.Tensor([1.0, 2.0]))

    def construct(self, x: Any) -> Any:
        return (x if self.inner is None else self.inner(x)) + self.mean + self.weight


def test_buffers_are_listed_read_and_no_parameters() -> None:
    net = Net(Net())
    assert [name for name, _ in net.named_buffers()] == ["mean", "scratch", "inner.mean", "inner.scratch"]
    assert len(list(net.buffers(recurse=False))) == 2
    assert net.get_buffer("inner.mean") is net.inner.mean
    assert [parameter.name for parameter in net.trainable_params()] == ["weight", "inner.weight"]
    assert net(ms.Tensor([1.0, 1.0])).asnumpy().tolist() == [11.0, 15.0]
    net.register_buffer("mean", ms.Tensor([0.0, 0.0]))
    assert net(ms.Tensor([1.0, 1.0])).asnumpy().tolist() == [7.0, 10.0]


def test_state_dict_has_persistent_buffers_and_loads_them() -> None:
    net, other = Net(Net()), Net(Net())
    assert list(net.state_dict()) == ["weight", "mean", "inner.weight", "inner.mean"]
    net.inner.mean = ms.Tensor([8.0, 9.0])
    other.load_state_dict(net.state_dict())
    assert other.inner.mean.asnumpy().tolist() == [8.0, 9.0]


def test_hooks_are_called_before_state_dict_until_they_are_removed() -> None:
    net, seen = Net(), []
    handle = net.register_state_dict_pre_hook(lambda cell, prefix, keep_vars: seen.append((cell, prefix, keep_vars)))
    net.state_dict(prefix="net.")
    handle.remove()
    net.state_dict()
    assert seen == [(net, "net.", False)]


def test_what_is_no_buffer_is_refused() -> None:
    net = Net()
    with pytest.raises(TypeError, match="tensor"):
        net.register_buffer("other", [1.0])
    with pytest.raises(KeyError):
        net.register_buffer("weight", ms.Tensor(1.0))
    with pytest.raises(AttributeError, match="not the path of a buffer"):
        net.get_buffer("weight")
