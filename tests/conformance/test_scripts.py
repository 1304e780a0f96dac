"""Scripts in the manner of public MindSpore projects run with the import swapped: old spellings and new ones."""

from __future__ import annotations

import gzip
import pathlib
import struct
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
import mixtrain.common.dtype as mstype
import mixtrain.dataset as ds
import mixtrain.dataset.transforms.c_transforms as C
import mixtrain.dataset.vision.c_transforms as CV
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain import Tensor, context
from mixtrain.common.initializer import TruncatedNormal, initializer
from mixtrain.communication.management import get_group_size, get_rank
from mixtrain.context import ParallelMode
from mixtrain.dataset.vision import Inter
from mixtrain.ops import composite, functional as F, operations as P
from mixtrain.train.callback import Callback, CheckpointConfig, LossMonitor, ModelCheckpoint, TimeMonitor
from mixtrain.train.loss_scale_manager import FixedLossScaleManager
from mixtrain.train.model import Model
from mixtrain.train.serialization import load_checkpoint, load_param_into_net
from tests.backends import quick_every


# ---- LeNet on MNIST files, in the first versions' spelling ---------------------------------------------------------
def write_mnist(folder: pathlib.Path, count: int) -> None:
    """Write generated digits in the official format: a bright square whose place is the class."""
    rng = np.random.default_rng(0)
    labels = (np.arange(count) % 10).astype(np.uint8)
    images = rng.integers(0, 40, (count, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 4)
        image[7 * row : 7 * row + 7, 7 * column : 7 * column + 7] = 255
    folder.mkdir()
    for name, header, values in (
        ("images-idx3", struct.pack(">IIII", 2051, count, 28, 28), images),
        ("labels-idx1", struct.pack(">II", 2049, count), labels),
    ):
        (folder / f"train-{name}-ubyte").write_bytes(header + values.tobytes())


def create_dataset(data_path: str, batch_size: int = 32, repeat_size: int = 1, workers: int = 1) -> Any:
    mnist_ds = ds.MnistDataset(data_path)
    resize_op = CV.Resize((32, 32), interpolation=Inter.LINEAR)
    rescale_nml_op = CV.Rescale(1 / 0.3081, -1 * 0.1307 / 0.3081)
    rescale_op = CV.Rescale(1.0 / 255.0, 0.0)
    hwc2chw_op = CV.HWC2CHW()
    type_cast_op = C.TypeCast(mstype.int32)
    mnist_ds = mnist_ds.map(operations=type_cast_op, input_columns="label", num_parallel_workers=workers)
    for operation in (resize_op, rescale_op, rescale_nml_op, hwc2chw_op):
        mnist_ds = mnist_ds.map(operations=operation, input_columns="image", num_parallel_workers=workers)
    mnist_ds = mnist_ds.shuffle(buffer_size=10000)
    mnist_ds = mnist_ds.batch(batch_size, drop_remainder=True)
    return mnist_ds.repeat(repeat_size)


def conv(in_channels: int, out_channels: int, kernel_size: int) -> nn.Cell:
    weight = initializer(TruncatedNormal(0.05), (out_channels, in_channels, kernel_size, kernel_size), mstype.float32)
    return nn.Conv2d(
        in_channels, out_channels, kernel_size=kernel_size, stride=1, padding=0, weight_init=weight, has_bias=False,
        pad_mode="valid",
    )


class LeNet5(nn.Cell):
    def __init__(self, num_class: int = 10) -> None:
        super(LeNet5, self).__init__()  # noqa: UP008
        self.conv1 = conv(1, 6, 5)
        self.conv2 = conv(6, 16, 5)
        self.fc1 = nn.Dense(400, 120, TruncatedNormal(0.05), TruncatedNormal(0.05))
        self.fc2 = nn.Dense(120, 84, TruncatedNormal(0.05), TruncatedNormal(0.05))
        self.fc3 = nn.Dense(84, num_class, TruncatedNormal(0.05), TruncatedNormal(0.05))
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.reshape = P.Reshape()

    def construct(self, x: Any) -> Any:
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.reshape(x, (P.Shape()(x)[0], -1))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class StepLossAccInfo(Callback):
    """Keeps loss and accuracy, as course scripts do."""

    def __init__(self, model: Any, eval_dataset: Any, seen: list[Any]) -> None:
        self.model, self.eval_dataset, self.seen = model, eval_dataset, seen

    def step_end(self, run_context: Any) -> None:
        cb_params = run_context.original_args()
        cur_step = (cb_params.cur_epoch_num - 1) * cb_params.batch_num + cb_params.cur_step_num
        if cb_params.cur_step_num % 4 == 0:
            acc = self.model.eval(self.eval_dataset, dataset_sink_mode=False)
            self.seen.append((cur_step, float(cb_params.net_outputs.asnumpy()), acc["Accuracy"]))


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_lenet_learns_files_in_the_mnist_format_and_is_evaluated_from_its_checkpoint(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], sink: bool
) -> None:
    context.set_context(mode=context.GRAPH_MODE, device_target="CPU", save_graphs=False)
    write_mnist(tmp_path / "mnist", 320)
    train = create_dataset(str(tmp_path / "mnist"), 32)
    network = LeNet5(10)
    net_loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    net_opt = nn.Momentum(network.trainable_params(), 0.01, 0.9)
    config_ck = CheckpointConfig(save_checkpoint_steps=train.get_dataset_size(), keep_checkpoint_max=2)
    ckpoint_cb = ModelCheckpoint(prefix="checkpoint_lenet", directory=str(tmp_path / "ckpt"), config=config_ck)
    model = Model(network, net_loss, net_opt, metrics={"Accuracy": nn.Accuracy()})
    seen: list[Any] = []
    info = StepLossAccInfo(model, train, seen)
    callbacks = [TimeMonitor(data_size=10), ckpoint_cb, LossMonitor(5), info]
    model.train(12, train, callbacks=callbacks, dataset_sink_mode=sink)
    printed = capsys.readouterr().out
    assert "epoch: 1 step: 10, loss is " in printed and "per step time: " in printed
    if not sink:  # In sink feed a call, and so a hook, is an epoch of ten steps.
        assert [step for step, _, _ in seen][:2] == [4, 8]
    assert all(np.isfinite(loss) for _, loss, _ in seen) and seen[-1][2] > 0.9
    files = sorted(path.name for path in (tmp_path / "ckpt").glob("*.ckpt"))
    assert files == ["checkpoint_lenet-11_10.ckpt", "checkpoint_lenet-12_10.ckpt"]
    fresh = LeNet5(10)
    param_dict = load_checkpoint(str(tmp_path / "ckpt" / files[-1]))
    load_param_into_net(fresh, param_dict)
    evaluated = Model(fresh, net_loss, net_opt, metrics={"Accuracy": nn.Accuracy(), "loss": nn.Loss()})
    assert evaluated.eval(create_dataset(str(tmp_path / "mnist")), dataset_sink_mode=False)["Accuracy"] > 0.9
    batch = next(train.create_dict_iterator())
    assert np.argmax(evaluated.predict(Tensor(batch["image"])).asnumpy(), axis=1).shape == (32,)


def test_compressed_mnist_files_are_read_too(tmp_path: pathlib.Path) -> None:
    write_mnist(tmp_path / "mnist", 10)
    for path in list((tmp_path / "mnist").iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    data = ds.MnistDataset(str(tmp_path / "mnist"), usage="train", shuffle=False)
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(row["label"]) for row in rows] == list(range(10)) and rows[0]["image"].shape == (28, 28, 1)


# ---- a residual network with groups of parameters, a loss and a schedule of its own --------------------------------
class CrossEntropySmooth(nn.LossBase):
    def __init__(self, sparse: bool = True, reduction: str = "mean", smooth_factor: float = 0.1, num_classes: int = 4):
        super().__init__()
        self.onehot = P.OneHot()
        self.sparse = sparse
        self.on_value = Tensor(1.0 - smooth_factor, mstype.float32)
        self.off_value = Tensor(1.0 * smooth_factor / (num_classes - 1), mstype.float32)
        self.ce = nn.SoftmaxCrossEntropyWithLogits(reduction=reduction)

    def construct(self, logit: Any, label: Any) -> Any:
        if self.sparse:
            label = self.onehot(label, F.shape(logit)[1], self.on_value, self.off_value)
        return self.ce(logit, label)


class Block(nn.Cell):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=1, padding=1, pad_mode="pad", weight_init="XavierUniform")
        self.bn = nn.BatchNorm2d(channels, eps=1e-4, momentum=0.9, gamma_init=1, beta_init=0)
        self.relu = P.ReLU()
        self.add = P.Add()

    def construct(self, x: Any) -> Any:
        return self.relu(self.add(self.bn(self.conv(x)), x))


class Small(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, pad_mode="same")
        self.layers = nn.SequentialCell([Block(8), Block(8)])
        self.mean = P.ReduceMean(keep_dims=True)
        self.flatten = nn.Flatten()
        self.end_point = nn.Dense(8, 4, has_bias=True)

    def construct(self, x: Any) -> Any:
        x = self.layers(self.stem(x))
        return self.end_point(self.flatten(self.mean(x, (2, 3))))


@pytest.mark.slow
def test_a_residual_network_trains_with_groups_smoothing_and_a_fixed_scale() -> None:
    context.set_auto_parallel_context(
        device_num=get_group_size(), parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True
    )
    try:
        rng = np.random.default_rng(1)
        labels = (np.arange(64) % 4).astype(np.int32)
        images = (rng.standard_normal((64, 12, 12, 3)) * 20 + 60 + 40 * labels[:, None, None, None]).clip(0, 255)
        source = list(zip(images.astype(np.uint8), labels, strict=True))
        data = ds.GeneratorDataset(
            source, ["image", "label"], shuffle=True, num_shards=get_group_size(), shard_id=get_rank()
        )
        trans = [
            CV.RandomCrop((12, 12), (2, 2, 2, 2)), CV.RandomHorizontalFlip(prob=0.5), CV.Resize((8, 8)),
            CV.Rescale(1.0 / 255.0, 0.0), CV.Normalize([0.49, 0.48, 0.44], [0.2, 0.2, 0.2]), CV.HWC2CHW(),
        ]
        data = data.map(operations=trans, input_columns="image", num_parallel_workers=2)
        data = data.map(operations=C.TypeCast(mstype.int32), input_columns="label").batch(16, drop_remainder=True)
        net = Small()
        for _, cell in net.cells_and_names():
            if isinstance(cell, nn.Conv2d):
                cell.weight.set_data(initializer("HeNormal", cell.weight.shape, cell.weight.dtype))
        decayed, no_decayed = [], []
        for param in net.trainable_params():
            plain = "beta" in param.name or "gamma" in param.name or "bias" in param.name
            (no_decayed if plain else decayed).append(param)
        group_params = [
            {"params": decayed, "weight_decay": 1e-4}, {"params": no_decayed}, {"order_params": net.trainable_params()}
        ]
        rates = nn.cosine_decay_lr(0.0, 0.1, 6 * 4, 4, 6)
        opt = nn.Momentum(group_params, Tensor(rates), 0.9, loss_scale=1024)
        manager = FixedLossScaleManager(1024, drop_overflow_update=False)
        model = Model(
            net, loss_fn=CrossEntropySmooth(), optimizer=opt, loss_scale_manager=manager, amp_level="O2",
            keep_batchnorm_fp32=False, cast_model_type=ms.bfloat16, metrics={"top_1_accuracy"},
        )
        history = model.train(6, data, dataset_sink_mode=True, sink_size=data.get_dataset_size(), verbose=0)
        assert history["loss"][-1] < history["loss"][0]
        assert model.eval(data)["top_1_accuracy"] >= 0.5
    finally:
        ms.reset_auto_parallel_context()


# ---- a train step with clipping, as the language models of the official zoo write it -------------------------------
clip_grad = composite.MultitypeFuncGraph("clip_grad")
grad_scale = composite.MultitypeFuncGraph("grad_scale")
reciprocal = P.Reciprocal()


@clip_grad.register("Number", "Number", "Tensor")
def _clip_grad(clip_type: int, clip_value: float, grad: Any) -> Any:
    if clip_type not in (0, 1):
        return grad
    dt = F.dtype(grad)
    if clip_type == 0:
        return composite.clip_by_value(
            grad, F.cast(F.tuple_to_array((-clip_value,)), dt), F.cast(F.tuple_to_array((clip_value,)), dt)
        )
    return nn.ClipByNorm()(grad, F.cast(F.tuple_to_array((clip_value,)), dt))


@grad_scale.register("Tensor", "Tensor")
def _tensor_grad_scale(scale: Any, grad: Any) -> Any:
    return grad * reciprocal(scale)


class TrainOneStepWithClip(nn.TrainOneStepWithLossScaleCell):
    def __init__(self, network: Any, optimizer: Any, scale_update_cell: Any = None) -> None:
        super().__init__(network, optimizer, scale_update_cell)
        self.cast = P.Cast()
        self.degree = 1
        self.hyper_map = composite.HyperMap()

    def construct(self, x: Any, y: Any) -> Any:
        weights = self.weights
        loss = self.network(x, y)
        scaling_sens = self.scale_sense
        status, scaling_sens = self.start_overflow_check(loss, scaling_sens)
        grads = self.grad(self.network, weights)(x, y, self.cast(scaling_sens, mstype.float32))
        grads = self.grad_reducer(grads)
        grads = self.hyper_map(F.partial(grad_scale, scaling_sens * self.degree), grads)
        grads = self.hyper_map(F.partial(clip_grad, 1, 1.0), grads)
        cond = self.get_overflow_status(status, grads)
        overflow = self.process_loss_scale(cond)
        if not overflow:
            self.optimizer(grads)
        return loss, cond, scaling_sens


@quick_every(2)
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_a_train_step_that_clips_skips_overflows_and_moves_the_scale(mode: str) -> None:
    context.set_context(mode=context.GRAPH_MODE if mode == "graph" else context.PYNATIVE_MODE)
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    update = nn.DynamicLossScaleUpdateCell(loss_scale_value=2**12, scale_factor=2, scale_window=2)
    step = TrainOneStepWithClip(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5), update)
    good, bad = Tensor([[3.0, 4.0]], mstype.float32), Tensor([[1e18, 4.0]], mstype.float32)
    zero = Tensor([[0.0]], mstype.float32)
    model = Model(step)
    trace = []

    class Trace(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            _, overflow, scale = run_context.original_args().net_outputs
            trace.append((bool(overflow), float(scale)))

    model.train(1, [(good, zero), (bad, zero), (good, zero), (good, zero)], callbacks=[Trace()], verbose=0)
    assert [overflow for overflow, _ in trace] == [False, True, False, False]
    np.testing.assert_allclose(net.weight.asnumpy(), [[0.1, -0.2]], atol=1e-5)  # Three steps of norm 0.5 along (3, 4).


# ---- a loop of its own ---------------------------------------------------------------------------------------------
@quick_every(2)
@pytest.mark.parametrize("compiled", [True, False], ids=["jit", "eager"])
def test_a_function_with_value_and_grad_trains_and_skips(compiled: bool) -> None:
    net = nn.SequentialCell(nn.Dense(3, 8, activation="tanh"), nn.Dense(8, 2))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.05)
    scaler = ms.amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=50)

    def forward_fn(data: Any, label: Any) -> Any:
        logits = net(data)
        loss = loss_fn(logits, label)
        return scaler.scale(loss), logits

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    def train_step(data: Any, label: Any) -> Any:
        (loss, _), grads = grad_fn(data, label)
        loss = scaler.unscale(loss)
        is_finite = ms.amp.all_finite(grads)
        if is_finite:
            grads = scaler.unscale(grads)
            loss = ops.depend(loss, optimizer(grads))
        scaler.adjust(is_finite)
        return loss

    step = ms.jit(train_step) if compiled else train_step
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 3)).astype(np.float32)
    y = (x[:, 0] > x[:, 1]).astype(np.int32)
    losses = [float(step(Tensor(x), Tensor(y))) for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]
    before = [parameter.asnumpy().copy() for parameter in net.trainable_params()]
    step(Tensor(np.full_like(x, np.inf)), Tensor(y))
    assert float(scaler.scale_value) == 2**9
    after = [parameter.asnumpy() for parameter in net.trainable_params()]
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
