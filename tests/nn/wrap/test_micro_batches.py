"""`PipelineCell` and `MicroBatchInterleaved`: sums of the outputs for parts of a batch, as in MindSpore on a CPU."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.dataset as ds
from mixtrain import Model, Tensor, nn
from mixtrain.parallel.nn import Pipeline
from tests.backends import quick_every

X, LABELS = np.random.default_rng(0).standard_normal((8, 4), np.float32), np.arange(8, dtype=np.int32) % 3


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        r = np.random.default_rng(1)
        self.first = nn.Dense(4, 6, weight_init=Tensor(r.standard_normal((6, 4), np.float32)), bias_init="zeros")
        self.last = nn.Dense(6, 3, weight_init=Tensor(r.standard_normal((3, 6), np.float32)), bias_init="zeros")

    def construct(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())


def _with_loss(network: nn.Cell) -> nn.Cell:
    return nn.WithLossCell(network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))


PARTS: dict[str, Any] = {
    "pipeline": lambda net: nn.PipelineCell(net, 4), "interleaved": lambda net: nn.MicroBatchInterleaved(net, 4),
    "nested": lambda net: Pipeline(nn.MicroBatchInterleaved(net, 2), 2),
    "stages": lambda net: nn.PipelineCell(net, 4, {"_backbone.first": 0}, {"_backbone.last": 1}),
}


def _trained(wrap: Any, rate: float) -> tuple[list[str], list[Any]]:
    """Train with SGD for two steps; return the names of the weights, and the first loss with the weights."""
    net = _Net()
    loss = wrap(_with_loss(net))
    history = Model(loss, optimizer=nn.SGD(net.trainable_params(), rate)).train(
        2, ds.NumpySlicesDataset((X, LABELS), shuffle=False).batch(8)
    )
    return [p.name for p in loss.trainable_params()], [history["loss"][0], *(p.asnumpy() for p in net.get_parameters())]


@functools.cache
def _of_the_whole_batch() -> tuple[list[str], list[Any]]:
    names, (loss, *weights) = _trained(lambda net: net, 0.04)
    return names, [4 * loss, *weights]


@quick_every(4)
@pytest.mark.parametrize("parts", PARTS)
def test_training_is_by_the_sum_of_the_losses_of_the_parts(parts: str) -> None:
    (names, values), (expected_names, expected) = _trained(PARTS[parts], 0.01), _of_the_whole_batch()
    assert names == expected_names
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


def test_outputs_of_the_parts_are_added() -> None:
    outputs = _Net()(Tensor(X)).asnumpy()
    expected = outputs[:4] + outputs[4:]
    pipeline = nn.PipelineCell(_Net(), 2)
    for cell in (pipeline, nn.MicroBatchInterleaved(_Net()), mixtrain.jit(pipeline)):
        np.testing.assert_allclose(cell(Tensor(X)).asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: nn.PipelineCell(abs, 2), TypeError, "network must be a Cell"),  # type: ignore[arg-type]
    (lambda: nn.PipelineCell(_Net(), 0), ValueError, "micro_size must be at least 1"),
    (lambda: nn.MicroBatchInterleaved(_Net(), 2.0), TypeError, "interleave_num must be an int"),  # type: ignore[arg-type]
    (lambda: nn.PipelineCell(_Net(), 3)(Tensor(X)), ValueError, "first axis must be divisible by 3; got 8"),
    (lambda: nn.PipelineCell(_Net(), 2)(3), TypeError, "each input must be a tensor; got int 3"),
])
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_network_must_return_a_tensor() -> None:
    class Pair(nn.Cell):
        def construct(self, x: Tensor) -> Any:
            return x, x

    with pytest.raises(TypeError, match="PipelineCell: network must return a tensor; got tuple"):
        nn.PipelineCell(Pair(), 2)(Tensor(X))
