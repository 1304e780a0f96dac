"""Normalizations over groups, instances, volumes and all devices: statistics, names, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float16, float32

X = np.random.default_rng(2).standard_normal((2, 4, 3, 5)).astype(np.float32) * 2 + 1


def test_instances_are_groups_of_one_channel() -> None:
    instance, group = nn.InstanceNorm2d(4), nn.GroupNorm(4, 4)
    assert np.abs(backend.to_numpy(instance(Tensor(X))) - backend.to_numpy(group(Tensor(X)))).max() < 1e-6


@pytest.mark.parametrize(("make", "shape"), [
    (nn.InstanceNorm1d, (2, 3, 7)), (nn.InstanceNorm2d, (2, 3, 4, 5)), (nn.InstanceNorm3d, (2, 3, 2, 3, 4)),
])
def test_each_channel_of_each_sample_is_normalized_by_itself(make: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 3 - 2
    norm = make(3)
    axes = tuple(range(2, len(shape)))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    assert np.abs(backend.to_numpy(norm(Tensor(x))) - (x - mean) / np.sqrt(variance + 1e-5)).max() < 1e-5
    assert norm.moving_mean.asnumpy().tolist() == [0.0] * 3
    norm.set_train()(Tensor(x))
    assert np.abs(norm.moving_mean.asnumpy() - 0.1 * mean.mean(0).ravel()).max() < 1e-6
    unbiased = x.var(axes, ddof=1).mean(0)
    assert np.abs(norm.moving_variance.asnumpy() - (0.9 + 0.1 * unbiased)).max() < 1e-5


def test_names_shapes_and_what_is_learned_are_the_references() -> None:
    def facts(cell: Any) -> list[tuple[str, bool]]:
        return [(p.name, p.requires_grad) for p in cell.get_parameters()]

    assert facts(nn.GroupNorm(2, 4)) == [("gamma", True), ("beta", True)]
    assert facts(nn.GroupNorm(2, 4, affine=False)) == [("gamma", False), ("beta", False)]
    moving = [("mean", False), ("variance", False), ("gamma", True), ("beta", True)]
    assert facts(nn.InstanceNorm2d(4)) == facts(nn.SyncBatchNorm(4)) == moving
    assert [name for name, _ in facts(nn.BatchNorm3d(4))] == [
        "bn2d.moving_mean", "bn2d.moving_variance", "bn2d.gamma", "bn2d.beta"
    ]
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(num_groups=2, num_channels=4)"


def test_on_one_device_sync_is_plain_batch_normalization() -> None:
    synchronized, plain = nn.SyncBatchNorm(4).set_train(), nn.BatchNorm2d(4).set_train()
    assert (backend.to_numpy(synchronized(Tensor(X))) == backend.to_numpy(plain(Tensor(X)))).all()
    assert (synchronized.moving_variance.asnumpy() == plain.moving_variance.asnumpy()).all()
    flat = nn.SyncBatchNorm(4)(Tensor(X[:, :, 0, 0]))
    assert tuple(flat.shape) == (2, 4)
    assert nn.SyncBatchNorm(4, process_groups=[[0]]).process_groups == [[0]]


@pytest.mark.parametrize("make", [lambda: nn.GroupNorm(2, 4), lambda: nn.InstanceNorm2d(4)])
def test_half_is_normalized_in_float32(make: Any) -> None:
    x = Tensor(X * 200, float16)
    y = make()(x)
    assert y.dtype == float16
    expected = make()(Tensor(backend.to_numpy(x).astype(np.float32)))
    assert np.abs(backend.to_numpy(y).astype(np.float32) - backend.to_numpy(expected)).max() < 2e-3


def test_compiled_numbers_are_those_of_eager_calls() -> None:
    norm = nn.SequentialCell(nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.ReLU())
    run = backend.compile_function(norm, choice=JitChoice(False, "test"))
    assert np.abs(backend.to_numpy(run(Tensor(X))) - backend.to_numpy(norm(Tensor(X)))).max() < 1e-5


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.GroupNorm(3, 4), ValueError, "GroupNorm: num_channels must be a multiple of num_groups=3; got 4"),
        (lambda: nn.GroupNorm(2, 4)(Tensor(X[:, :3])), ValueError, "GroupNorm: expected 4 channels on axis 1; got 3"),
        (lambda: nn.GroupNorm(2, 4)(Tensor(X[0, 0, 0])), ValueError, r"GroupNorm: expected 2 or 3 or 4 or 5 axes"),
        (lambda: nn.InstanceNorm1d(4)(Tensor(X)), ValueError, r"InstanceNorm1d: expected 3 axes \(N, C, L\)"),
        (lambda: nn.InstanceNorm2d(4, momentum=2.0), ValueError, "momentum must be at most 1"),
        (lambda: nn.InstanceNorm2d(3)(Tensor(X)), ValueError, "InstanceNorm2d: expected 3 channels on axis 1; got 4"),
        (lambda: nn.BatchNorm3d(4)(Tensor(X)), ValueError, r"BatchNorm3d: expected 5 axes \(N, C, D, H, W\)"),
        (lambda: nn.SyncBatchNorm(4)(Tensor(X[0])), ValueError, "SyncBatchNorm: expected 2 or 4 axes"),
        (lambda: nn.SyncBatchNorm(4, process_groups=[[0, 1]]), ValueError, "must be one group of all ranks"),
        (lambda: nn.GroupNorm(2, 4, eps="1"), TypeError, "GroupNorm: eps must be a number"),
    ],
)
def test_what_does_not_fit_is_one_sentence(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_statistics_stay_float32_where_parameters_are_read_in_half() -> None:
    norm = nn.InstanceNorm2d(4).to_float(float16).set_train()
    norm(Tensor(X))
    assert norm.moving_mean.stored_dtype == float32
    assert np.abs(norm.moving_mean.asnumpy() - 0.1 * X.mean((0, 2, 3))).max() < 1e-3
