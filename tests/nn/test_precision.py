"""Every layer follows its family at every level: what it computes in, what it returns, and finite gradients."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32
from mixtrain.precision.apply import apply_plan
from mixtrain.precision.planner import plan_precision
from tests.backends import ON_TENSORFLOW, on_jax_only_some, quick_every
from tests.nn.by_case import flat

X3, X4, X5, STEPS = (1, 4, 6), (1, 4, 4, 4), (1, 4, 3, 3, 3), (3, 2, 6)

MATMUL: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Conv1d": (lambda: nn.Conv1d(4, 4, 3, has_bias=True), X3),
    "Conv2d": (lambda: nn.Conv2d(4, 4, 3), X4),
    "Conv3d": (lambda: nn.Conv3d(4, 4, 3), X5),
    "Conv1dTranspose": (lambda: nn.Conv1dTranspose(4, 4, 3, 2), X3),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(4, 4, 4, 2, "pad", 1, has_bias=True), X4),
    "Conv3dTranspose": (lambda: nn.Conv3dTranspose(4, 4, 2, 2), X5),
    "LSTM": (lambda: nn.LSTM(6, 3, 2, dropout=0.1, bidirectional=True), STEPS),
    "GRU": (lambda: nn.GRU(6, 3), STEPS),
    "RNN": (lambda: nn.RNN(6, 3), STEPS),
}
NORMALISATION: dict[str, tuple[Any, tuple[int, ...]]] = {
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), X5),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), X4),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), X4),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4), X3),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4), X4),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4), X5),
}
OTHER: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Pad": (lambda: nn.Pad(((0, 0), (0, 0), (1, 1), (2, 2))), X4),
    "PReLU": (lambda: nn.PReLU(4), X4),
    "HSwish": (nn.HSwish, X4),
    "MaxPool1d": (lambda: nn.MaxPool1d(2, 2), X3),
    "AvgPool1d": (lambda: nn.AvgPool1d(2, 2), X3),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), X4),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), X4),
    "Dropout2d": (lambda: nn.Dropout2d(0.3), X4),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), X4),
}
# Level: what a layer of the family computes in and returns, "half" or "float32".
EXPECTED = {
    "matmul": {
        "O0": ("float32", "float32"), "O1": ("half", "float32"), "O2": ("half", "half"), "O3": ("half", "half"),
    },
    "normalization": {
        "O0": ("float32", "float32"), "O1": ("float32", "float32"),
        "O2": ("float32", "half"), "O3": ("float32", "half"),
    },
    "other": {
        "O0": ("float32", "float32"), "O1": ("float32", "float32"), "O2": ("half", "half"), "O3": ("half", "half"),
    },
}
LAYERS = [
    (family, name, make, shape)
    for family, table in (("matmul", MATMUL), ("normalization", NORMALISATION), ("other", OTHER))
    for name, (make, shape) in table.items()
    # On JAX, where XLA compiles each, some of each family.
    if ON_TENSORFLOW or name in ("Conv2d", "Conv1dTranspose", "GRU", "GroupNorm", "InstanceNorm1d", *list(OTHER)[:3])
]


class Holder(nn.Cell):
    """A network of one layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def construct(self, x: Any) -> Any:
        return self.layer(x)


def seen(net: Holder, x: Any) -> tuple[Any, list[str]]:
    """Run a network; return its outputs and the formats that its layer returned."""
    formats: list[str] = []
    handle = net.layer.register_forward_hook(
        lambda cell, inputs, output: formats.extend(str(value.dtype.name) for value in flat(output))
    )
    outputs = net(x)
    handle.remove()
    return outputs, formats


@quick_every(19)
@pytest.mark.parametrize(("family", "name", "make", "shape"), LAYERS, ids=[row[1] for row in LAYERS])
@pytest.mark.parametrize("level", on_jax_only_some(["O0", "O1", "O2", "O3"], [1, 2]))
def test_a_layer_computes_and_returns_what_its_level_says(
    family: str, name: str, make: Any, shape: tuple[int, ...], level: str
) -> None:
    for half in (float16, bfloat16):
        net = Holder(make()).set_train()
        plan = plan_precision(net, level, cast_model_type=half)
        apply_plan(net, plan)
        compute, returned = (half if word == "half" else float32 for word in EXPECTED[family][level])
        assert plan.row("layer").compute_dtype == compute
        outputs, formats = seen(net, Tensor(np.ones(shape, np.float32)))
        assert set(formats) == {returned}
        assert {output.dtype.name for output in flat(outputs)} == {"float32"}
        assert all(parameter.stored_dtype == float32 for parameter in net.get_parameters())


@quick_every(13)
@pytest.mark.parametrize(("family", "name", "make", "shape"), LAYERS, ids=[row[1] for row in LAYERS])
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_gradients_in_half_are_float32_and_finite(
    family: str, name: str, make: Any, shape: tuple[int, ...], half: Any
) -> None:
    net = Holder(make()).set_train()
    apply_plan(net, plan_precision(net, "O2", cast_model_type=half))
    x = Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    _, _, gradients = backend.value_and_gradient(
        lambda x: (sum(keras.ops.mean(keras.ops.square(output)) for output in flat(net(x))), None),
        net.trainable_params(), [x],
    )
    for gradient in gradients:
        assert gradient.dtype == "float32"
        assert np.isfinite(backend.to_numpy(gradient)).all()
        if family != "normalization":
            assert np.abs(backend.to_numpy(gradient)).max() > 0


def test_all_of_a_recurrent_layer_is_planned_through() -> None:
    net = Holder(nn.LSTM(6, 3, 2, dropout=0.1))
    plan = plan_precision(net, "O1")
    assert plan.row("layer").compute_dtype == plan.row("layer.dropout_op").compute_dtype == float16
    assert plan.row("layer").output_dtype == float32


def test_keep_batchnorm_fp32_false_lets_every_normalization_return_half() -> None:
    for make, _ in NORMALISATION.values():
        net = Holder(make())
        assert plan_precision(net, "O2", keep_batchnorm_fp32=False).row("layer").output_dtype == float16


@pytest.mark.parametrize(("level", "returned"), [("O0", float32), ("O1", float32), ("O2", float16)])
def test_rows_of_a_table_are_cast_and_not_the_table(level: str, returned: Any) -> None:
    net = Holder(nn.Embedding(7, 3))
    apply_plan(net, plan_precision(net, level))
    ids = Tensor(np.array([[1, 2, 1]]))
    _, formats = seen(net, ids)
    assert formats == [returned]
    _, _, (gradient,) = backend.value_and_gradient(lambda: (keras.ops.sum(net(ids)), None), net.trainable_params())
    assert backend.to_numpy(keras.ops.convert_to_tensor(gradient)).tolist() == [
        [0] * 3, [2] * 3, [1] * 3, [0] * 3, [0] * 3, [0] * 3, [0] * 3
    ]
    assert backend.is_sparse(gradient) is ON_TENSORFLOW
    # Sparse: only the rows that were read.
    assert not ON_TENSORFLOW or tuple(gradient.values.shape) == (3, 3)


@pytest.mark.slow
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_a_recurrent_step_compiles_with_its_gradient_in_half(half: Any) -> None:
    net = Holder(nn.LSTM(6, 3)).to_float(half)
    x = Tensor(np.ones((4, 2, 6), np.float32))

    def step(x: Any) -> Any:
        _, _, (gradient, *_) = backend.value_and_gradient(
            lambda: (keras.ops.sum(keras.ops.cast(net(x)[0], "float32")), None), net.trainable_params()
        )
        return gradient

    jitted = backend.compile_function(step, choice=JitChoice(True, "test"))(x)
    assert np.abs(backend.to_numpy(jitted) - backend.to_numpy(step(x))).max() < 5e-2
