"""Wrong calls over the public API: a call with a place for a value, and values that do not belong there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

import mixtrain as ms
from mixtrain import amp, dataset as ds, nn, ops

X, Y = np.ones((4, 6), np.float32), np.ones((4, 1), np.float32)
DATA = [(X, Y)] * 2
ROWS = ds.NumpySlicesDataset((X, Y), shuffle=False)


def net() -> Any:
    return nn.Dense(6, 1)


def params() -> Any:
    return net().trainable_params()


def model(**options: Any) -> Any:
    network = net()
    return ms.Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.05), **options)


NAMES: Final = {
    "ms": ms, "nn": nn, "ops": ops, "ds": ds, "amp": amp, "np": np, "net": net, "params": params, "model": model,
    "X": X, "Y": Y, "DATA": DATA, "ROWS": ROWS,
}
# Values by what they are not.
NO_COUNT = ("0", "-1", "1.5", "'a'", "None", "True")
NO_INDEX = ("-1", "1.5", "'a'", "None")
NO_FLAG = ("1", "'yes'", "None")
NO_NUMBER = ("'a'", "None", "[1]")
NO_RATE = ("-0.1", "'a'", "None")
NO_CHANCE = ("-0.1", "1.1", "'a'")
NO_SCALE = ("0", "-1.0", "'a'", "float('inf')", "float('nan')")

CALLS: Final[list[tuple[str, tuple[str, ...]]]] = [
    # ---- loss scaling
    ("ms.FixedLossScaleManager({})", NO_SCALE),
    ("ms.FixedLossScaleManager(8, {})", NO_FLAG),
    ("ms.DynamicLossScaleManager({})", NO_SCALE),
    ("ms.DynamicLossScaleManager(8, {})", ("1", "0", "'a'", "float('inf')")),
    ("ms.DynamicLossScaleManager(8, 2, {})", NO_COUNT),
    ("nn.DynamicLossScaleUpdateCell({}, 2, 10)", ("0", "'a'")),
    ("nn.DynamicLossScaleUpdateCell(8, 2, {})", ("0", "1.5", "'a'")),
    ("nn.FixedLossScaleUpdateCell({})", ("0", "'a'")),
    ("amp.DynamicLossScaler({}, 2, 10)", ("0", "'a'")),
    ("amp.DynamicLossScaler(8, {}, 10)", ("1", "'a'")),
    ("amp.DynamicLossScaler(8, 2, {})", ("0", "'a'")),
    ("amp.StaticLossScaler({})", ("0", "'a'")),
    # ---- Model
    ("ms.Model({})", ("None", "5", "'net'", "np.ones(3)", "len")),
    ("ms.Model(net(), {}, 'sgd')", ("5", "'nope'", "nn.MSELoss", "np.ones(3)")),
    ("ms.Model(net(), nn.MSELoss(), {})", ("5", "'nope'", "nn.SGD", "np.ones(3)")),
    ("model(metrics={})", ("5", "{{'nope'}}", "{{'a': 3}}")),
    ("model(amp_level={})", ("'O9'", "2", "None")),
    ("model(loss_scale_manager={})", ("5", "'dynamic'", "ms.FixedLossScaleManager")),
    ("model(keep_batchnorm_fp32={})", ("1", "'yes'")),
    ("model(cast_model_type={})", ("'float64'", "'half'", "5", "ms.int32")),
    ("model(bad_step_max={})", NO_COUNT),
    ("model(boost_level={})", ("'O1'", "None", "1")),
    ("model(eval_indexes={})", ("[0, 1]", "'abc'", "5")),
    ("model().train({}, DATA)", NO_COUNT),
    ("model().train(2, DATA, initial_epoch={})", ("-1", "2", "1.5", "'a'")),
    ("model().train(1, {})", ("None", "5", "[]", "len", "iter(DATA)")),
    ("model().train(1, [{}], verbose=0)", ("(X,)", "(X, Y, Y)", "(X, Y[:3])", "(X[:, :5], Y)")),
    ("model().train(1, DATA, {})", ("5", "'callback'", "[None]", "ms.LossMonitor")),
    ("model().train(1, DATA, dataset_sink_mode={})", NO_FLAG),
    ("model().train(1, DATA, dataset_sink_mode=True, sink_size={})", ("0", "-2", "1.5", "'a'")),
    ("model().train(1, DATA, verbose={})", ("3", "'loud'", "None")),
    ("model().train(1, DATA, verbose=0, resume={})", ("5", "True", "DATA")),
    ("model().fit(1, DATA, {})", ("5", "[]")),
    ("model().fit(1, DATA, DATA, valid_frequency={})", ("0", "'a'", "1.5")),
    ("model().eval({})", ("None", "5", "[]")),
    ("model().eval(DATA, dataset_sink_mode={})", NO_FLAG),
    ("model().predict({})", ("'a'", "None", "X[:, :5]")),
    ("model().build({})", ("None", "5", "[]")),
    ("model().save({})", ("5", "'net.txt'")),
    # ---- precision
    ("amp.auto_mixed_precision({})", ("None", "5")),
    ("amp.auto_mixed_precision(net(), {})", ("'O9'", "5")),
    ("amp.auto_mixed_precision(net(), 'O2', {})", ("ms.float64", "'nope'")),
    ("amp.build_train_network(net(), nn.SGD(params(), 0.1), level={})", ("'O9'", "5")),
    ("amp.custom_mixed_precision(net(), white_list={})", ("5", "[5]")),
    ("net().to_float({})", ("ms.float64", "'nope'", "5", "None")),
    ("ms.set_context(mode={})", ("2", "'graph'", "None")),
    ("ms.set_context({}=1)", ("nope",)),
    ("ms.set_seed({})", ("-1", "1.5", "'a'", "None")),
    # ---- layers
    ("nn.Dense({}, 2)", NO_COUNT),
    ("nn.Dense(2, {})", NO_COUNT),
    ("nn.Dense(2, 2, has_bias={})", NO_FLAG),
    ("nn.Dense(2, 2, weight_init={})", ("'nope'", "np.ones((3, 3))")),
    ("nn.Dense(2, 2, activation={})", ("'nope'", "5")),
    ("nn.Conv2d({}, 3, 3)", ("0", "-1", "'a'")),
    ("nn.Conv2d(1, 3, {})", ("0", "'a'", "(1, 2, 3)")),
    ("nn.Conv2d(1, 3, 3, pad_mode={})", ("'nope'", "5")),
    ("nn.Conv2d(1, 3, 3, stride={})", ("0", "'a'")),
    ("nn.Conv2d(3, 3, 3, group={})", ("0", "2", "'a'")),
    ("nn.BatchNorm2d({})", ("0", "-1", "'a'")),
    ("nn.BatchNorm2d(3, eps={})", ("-1", "'a'")),
    ("nn.BatchNorm2d(3, momentum={})", ("-0.1", "1.1", "'a'")),
    ("nn.LayerNorm({})", ("5", "'a'")),
    ("nn.GroupNorm(2, {})", ("3", "0", "'a'")),
    ("nn.Dropout(p={})", NO_CHANCE),
    ("nn.Embedding({}, 2)", ("0", "-1", "'a'")),
    ("nn.LSTM({}, 2)", ("0", "'a'")),
    ("nn.MaxPool2d({})", ("0", "'a'")),
    ("nn.MaxPool2d(2, pad_mode={})", ("'nope'",)),
    ("nn.SequentialCell({})", ("5", "[5]")),
    ("nn.CellList({})", ("[5]", "5")),
    ("nn.LeakyReLU({})", ("'a'",)),
    ("net()({})", ("ms.Tensor(X[:, :5])", "5", "'a'")),
    ("net().load_state_dict({})", ("5", "[1]")),
    # ---- losses
    ("nn.MSELoss({})", ("'nope'", "5")),
    ("nn.CrossEntropyLoss(reduction={})", ("'nope'", "5")),
    ("nn.CrossEntropyLoss(label_smoothing={})", ("-0.1", "1.1", "'a'")),
    ("nn.SoftmaxCrossEntropyWithLogits({})", ("1", "'yes'")),
    ("nn.BCELoss(reduction={})", ("'nope'",)),
    ("nn.SmoothL1Loss({})", ("0", "-1.0", "'a'")),
    # ---- optimizers and schedules
    ("nn.SGD({}, 0.1)", ("None", "5", "[]", "[5]")),
    ("nn.SGD(params(), {})", NO_RATE),
    ("nn.SGD(params(), 0.1, momentum={})", ("-1.0", "'a'")),
    ("nn.SGD(params(), 0.1, weight_decay={})", ("-1.0", "'a'")),
    ("nn.Momentum(params(), {}, 0.9)", NO_RATE),
    ("nn.Momentum(params(), 0.1, {})", ("-1.0", "'a'", "None")),
    ("nn.Momentum(params(), 0.1, 0.9, loss_scale={})", ("0", "'a'")),
    ("nn.Adam(params(), {})", NO_RATE),
    ("nn.Adam(params(), beta1={})", ("1.0", "-0.1", "'a'")),
    ("nn.Adam(params(), beta2={})", ("1.0", "-0.1", "'a'")),
    ("nn.Adam(params(), eps={})", ("0.0", "-1.0", "'a'")),
    ("nn.RMSProp(params(), decay={})", ("'a'",)),
    ("nn.Lamb(params(), {})", ("'a'", "-1.0")),
    ("nn.ExponentialDecayLR({}, 0.9, 4)", ("0", "'a'")),
    ("nn.ExponentialDecayLR(0.1, 0.9, {})", ("0", "1.5", "'a'")),
    ("nn.CosineDecayLR(0.0, 0.1, {})", ("0", "'a'")),
    ("nn.piecewise_constant_lr([2, 5], {})", ("[0.1]", "5", "['a', 'b']")),
    # ---- data
    ("ds.NumpySlicesDataset({})", ("None", "5")),
    ("ds.NumpySlicesDataset((X, Y[:3]){})", ("",)),
    ("ds.GeneratorDataset({}, ['x'])", ("None", "5")),
    ("ROWS.batch({})", NO_COUNT[:5]),
    ("ROWS.batch(2, drop_remainder={})", NO_FLAG),
    ("ROWS.shuffle({})", ("0", "1", "'a'", "None")),
    ("ROWS.repeat({})", ("0", "-2", "'a'")),
    ("ROWS.take({})", ("0", "-2", "'a'")),
    ("ROWS.skip({})", ("-1", "'a'")),
    ("ROWS.map({})", ("5", "'a'")),
    ("ROWS.project({})", ("5", "['nope']")),
    ("ROWS.rename({}, ['a'])", ("['nope']", "5")),
    ("ROWS.split({})", ("[0.5, 0.6]", "5", "'a'")),
    # ---- tensors and operations
    ("ms.Tensor({})", ("object()", "len")),
    ("ms.Tensor(X, {})", ("'nope'", "5")),
    ("ms.Tensor(X).reshape({})", ("(5, 5)", "'a'")),
    ("ms.Parameter({})", ("None", "'a'", "object()")),
    ("ops.reduce_mean(ms.Tensor(X), {})", ("5", "'a'")),
    ("ops.concat({})", ("5", "[]")),
    ("ops.softmax(ms.Tensor(X), {})", ("5", "'a'")),
    ("ops.one_hot(ms.Tensor([1, 2]), {})", ("-1", "'a'", "1.5")),
    ("ms.ops.clip_by_value(ms.Tensor(X), {}, 1)", ("'a'",)),
    ("ms.grad({})", ("5", "None")),
    ("ms.value_and_grad({})", ("5", "None")),
    # ---- checkpoints and callbacks
    ("ms.save_checkpoint({}, 'a.ckpt')", ("None", "5", "'net'", "[5]")),
    ("ms.save_checkpoint(net(), {})", ("None", "5")),
    ("ms.load_checkpoint({})", ("None", "5", "'missing.ckpt'", "'a.txt'")),
    ("ms.load_latest_checkpoint({})", ("None", "5")),
    ("ms.load_param_into_net({}, {{}})", ("None", "5")),
    ("ms.load_param_into_net(net(), {})", ("None", "5")),
    ("ms.CheckpointConfig({})", ("-1", "'a'", "1.5")),
    ("ms.CheckpointConfig(keep_checkpoint_max={})", ("-1", "'a'")),
    ("ms.ModelCheckpoint({})", ("5", "'a/b'")),
    ("ms.ModelCheckpoint('a', {})", ("5", "''")),
    ("ms.ModelCheckpoint(config={})", ("5",)),
    ("ms.LossMonitor({})", ("-1", "'a'")),
    ("ms.TimeMonitor({})", ("0", "'a'")),
    ("ms.EarlyStopping(patience={})", ("-1", "'a'")),
    ("ms.EarlyStopping(mode={})", ("'nope'", "5")),
    ("nn.Accuracy({})", ("'nope'", "5")),
    ("nn.TopKCategoricalAccuracy({})", ("0", "'a'", "1.5")),
]


def calls(rows: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """Yield each wrong call as an expression in `NAMES`."""
    for template, values in rows:
        yield from (template.format(value.replace("{{", "{").replace("}}", "}")) for value in values)
