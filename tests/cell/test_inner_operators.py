"""Subclasses of scripts compute with the operators that MindSpore's layers have, and get the layers' own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, nn, ops

RNG = np.random.RandomState(0)
IMAGES = RNG.randn(2, 4, 9, 9).astype(np.float32)
SEQUENCES = RNG.randn(2, 4, 11).astype(np.float32)


class OwnDense(nn.Dense):
    def construct(self, x: Tensor) -> Tensor:
        shape = self.shape_op(x)
        y = self.bias_add(self.matmul(self.reshape(x, (-1, shape[-1])), self.weight), self.bias)
        return self.reshape(y, (*shape[:-1], self.out_channels))


class OwnConv2d(nn.Conv2d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2d(x, self.weight)
        return self.bias_add(y, self.bias) if self.has_bias else y


class OwnConv1d(nn.Conv1d):
    def construct(self, x: Tensor) -> Tensor:
        return self.squeeze(self.conv2d(self.expand_dims(x, 2), self.weight))


class OwnEmbedding(nn.Embedding):
    def construct(self, ids: Tensor) -> Tensor:
        return self.gather(self.embedding_table, ids, 0)


CASES: list[tuple[type[nn.Cell], type[nn.Cell], dict[str, Any], np.ndarray]] = [
    (OwnDense, nn.Dense, {"in_channels": 11, "out_channels": 3}, SEQUENCES),
    (OwnConv2d, nn.Conv2d, {"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2, "has_bias": True},
     IMAGES),
    (OwnConv2d, nn.Conv2d, {"in_channels": 4, "out_channels": 6, "kernel_size": (3, 5), "pad_mode": "pad",
                            "padding": (1, 2, 0, 1), "dilation": 2, "group": 2}, IMAGES),
    (OwnConv1d, nn.Conv1d, {"in_channels": 4, "out_channels": 6, "kernel_size": 3, "stride": 2}, SEQUENCES),
    (OwnConv1d, nn.Conv1d, {"in_channels": 4, "out_channels": 6, "kernel_size": 3, "pad_mode": "pad", "padding": 2,
                            "dilation": 2}, SEQUENCES),
    (OwnEmbedding, nn.Embedding, {"vocab_size": 5, "embedding_size": 3}, np.array([[1, 4], [0, 2]], np.int32)),
]


@pytest.mark.parametrize(("own", "layer", "settings", "rows"), CASES)
def test_a_subclass_computes_with_the_operators_of_its_layer(
    own: type[nn.Cell], layer: type[nn.Cell], settings: dict[str, Any], rows: np.ndarray
) -> None:
    first, second = own(**settings), layer(**settings)
    for mine, theirs in zip(first.get_parameters(), second.get_parameters(), strict=True):
        values = np.random.RandomState(1).randn(*theirs.shape).astype(np.float32)
        mine.set_data(Tensor(values))
        theirs.set_data(Tensor(values))
    expected = second(Tensor(rows)).asnumpy()
    np.testing.assert_allclose(first(Tensor(rows)).asnumpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_subclass_may_set_another_operator_of_that_name() -> None:
    layer = nn.Conv2d(4, 2, 3)
    layer.conv2d = ops.Conv2D(2, 3, pad_mode="valid")
    assert layer.conv2d(Tensor(IMAGES), layer.weight).shape == (2, 2, 7, 7)
    dense = nn.Dense(2, 2)
    dense.matmul = nn.ReLU()
    assert isinstance(dense.matmul, nn.ReLU)


def test_operators_are_sharded_without_effect() -> None:
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True)
    loss.softmax_cross_entropy.shard(((1, 1), (1, 1)))
    nn.Dense(2, 2).matmul.shard(((1, 1), (1, 1)))
    nn.BatchNorm2d(4).bn_train.shard(((1, 1, 1, 1),))
    pooled = nn.MaxPool2d(3, 2, pad_mode="same").max_pool(Tensor(IMAGES))
    np.testing.assert_array_equal(pooled.asnumpy(), nn.MaxPool2d(3, 2, pad_mode="same")(Tensor(IMAGES)).asnumpy())


def test_statistics_are_those_of_the_layer() -> None:
    layer = nn.BatchNorm2d(4)
    arguments = (Tensor(IMAGES), layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    expected = layer.set_train()(Tensor(IMAGES)).asnumpy()
    np.testing.assert_allclose(layer.bn_train(*arguments)[0].asnumpy(), expected, atol=1e-5)


def test_a_train_cell_of_a_script_finds_the_operators_of_its_base() -> None:
    network = nn.Dense(2, 1)
    cell = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(network, nn.MSELoss()), nn.SGD(network.trainable_params(), 0.1), Tensor(8.0)
    )
    flag = cell.reduce_sum(Tensor([0.0, 1.0]))
    assert bool(cell.less_equal(cell.base, flag)) and float(cell.allreduce(flag)) == 1.0


def test_a_name_that_no_layer_has_is_an_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="'Dense' has no attribute 'conv2d'"):
        _ = nn.Dense(2, 2).conv2d
    assert not hasattr(nn.Conv2d(1, 1, 3), "shape")


def test_dtypes_are_found_as_they_print() -> None:
    assert Tensor(IMAGES).astype("Int32").dtype == mixtrain.int32
    assert Parameter(Tensor(IMAGES)).astype("BFloat16").dtype == mixtrain.bfloat16


def test_the_scale_of_a_train_cell_is_a_parameter_and_decay_of_an_optimizer_a_tensor() -> None:
    network = nn.Dense(2, 1)
    with_loss = nn.WithLossCell(network, nn.MSELoss())
    cell = nn.TrainOneStepWithLossScaleCell(with_loss, nn.SGD(network.trainable_params(), 0.1), Tensor(8.0))
    cell.scale_sense.set_data(Tensor(16.0))
    _, overflow, scale = cell.set_train()(Tensor(np.ones((1, 2), np.float32)), Tensor(np.ones((1, 1), np.float32)))
    assert (float(cell.scale_sense.asnumpy()), float(scale), bool(overflow)) == (16.0, 16.0, False)

    class Decaying(nn.Optimizer):
        def construct(self, gradients: Any) -> bool:
            self.decay = float(self.get_weight_decay().asnumpy())
            return True

    optimizer = Decaying(0.1, network.trainable_params(), weight_decay=0.25)
    optimizer(tuple(Tensor(np.ones(each.shape, np.float32)) for each in network.trainable_params()))
    assert optimizer.decay == 0.25
