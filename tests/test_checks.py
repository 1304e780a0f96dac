"""Errors show values by type, shape, dtype and length: no message grows with the data that it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, amp, checks, dataset, nn, ops
from tests.backends import quick_every

ROWS = 20_000
ARRAY = np.arange(4.0 * ROWS).reshape(ROWS, 4)
NUMBERS = [float(value) for value in range(ROWS)]
BATCHES = [(np.ones((4, 3), np.float32), np.ones((4, 1), np.float32))] * 2000
TEXT = "layer" * ROWS
NAMES = {f"column_{index}": np.zeros(3) for index in range(ROWS)}
DEEP: Any = [[[[1.0] * 100] * 100] * 100] * 100

SHOWN: dict[str, tuple[Any, str]] = {
    "an int": (3, "3"),
    "nothing": (None, "None"),
    "a short string": ("valid", "'valid'"),
    "a small tuple": ((1, "same", None), "(1, 'same', None)"),
    "a dtype": (mixtrain.float16, "float16"),
    "an array": (ARRAY, f"ndarray of shape ({ROWS}, 4) and dtype float64"),
    "numbers": (NUMBERS, f"list of {ROWS}, the first 0.0"),
    "arrays": ([ARRAY, ARRAY], f"list of 2, the first ndarray of shape ({ROWS}, 4) and dtype float64"),
    "a deep list": (DEEP, "list of 100, the first a list of 100"),
    "a dict": (NAMES, f"dict of {ROWS} with keys 'column_0', 'column_1', 'column_2', ..."),
    "long text": (TEXT, f" ... of {len(TEXT)} characters"),
    "a long int": (10**10_000, "int"),
    "a class": (nn.Dense, "the class Dense"),
    "a function": (keras.ops.relu, "the function relu"),
    "an object": (object(), "object"),
    "a dataset": (dataset.NumpySlicesDataset(ARRAY), f"NumpySlicesDataset of length {ROWS}"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_value_is_shown_as_it_is_where_it_is_plain_and_short(case: str) -> None:
    value, expected = SHOWN[case]
    assert expected in checks.short_repr(value) and len(checks.short_repr(value)) < 150


def test_tensors_and_networks_are_shown_by_what_they_are() -> None:
    tensor, variable = mixtrain.Tensor(ARRAY), keras.Variable(ARRAY)
    assert f"of shape ({ROWS}, 4) and dtype float" in checks.short_repr(tensor)
    assert checks.short_repr(variable) == f"Variable of shape ({ROWS}, 4) and dtype {variable.dtype}"
    deep = nn.SequentialCell([nn.Dense(4, 4) for _ in range(50)])
    assert checks.short_repr(deep) == "SequentialCell of length 50"
    assert "Sequential" in checks.short_repr(keras.Sequential([keras.layers.Dense(2)]))


def test_a_class_whose_own_text_fails_is_shown_by_its_name() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError("no text")

    assert checks.short_repr(Broken()) == "Broken object"


def _model(**options: Any) -> Model:
    net = nn.Dense(3, 1)
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), **options)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "network": (lambda: Model(BATCHES), "network must be .*; got list of 2000"),
    "network, an array": (lambda: Model(ARRAY), rf"got ndarray of shape \({ROWS}, 4\) and dtype float64"),
    "loss_fn": (lambda: Model(nn.Dense(3, 1), ARRAY, "sgd"), "loss_fn must be"),
    "optimizer": (lambda: Model(nn.Dense(3, 1), nn.MSELoss(), BATCHES), "got list of 2000"),
    "metrics": (lambda: _model(metrics=ARRAY), "got ndarray"),
    "amp_level": (lambda: _model(amp_level=ARRAY), "amp_level must be one of O0, O1, O2, O3, auto; got ndarray"),
    "amp_level, a list": (lambda: _model(amp_level=NUMBERS), f"got list of {ROWS}"),
    "amp_level, text": (lambda: _model(amp_level=TEXT), "amp_level must be one of"),
    "keep_batchnorm_fp32": (lambda: _model(keep_batchnorm_fp32=ARRAY), "keep_batchnorm_fp32 must be True or False"),
    "cast_model_type": (lambda: _model(cast_model_type=ARRAY), "dtype"),
    "loss_scale_manager": (lambda: _model(loss_scale_manager=ARRAY), "LossScaleManager or None; got ndarray"),
    "bad_step_max": (lambda: _model(bad_step_max=NUMBERS), "bad_step_max must be an int; got list"),
    "epoch": (lambda: _model().train(BATCHES, 1), "the number of epochs, and data the second; got list of 2000"),
    "dataset": (lambda: _model().train(1, iter(BATCHES), verbose=0), "got list_iterator"),
    "verbose": (lambda: _model().train(1, BATCHES, verbose=BATCHES), "verbose"),
    "sink_size": (lambda: _model().train(1, BATCHES, sink_size=NUMBERS), "sink_size must be an int"),
    "initial_epoch": (lambda: _model().train(1, BATCHES, initial_epoch=ARRAY), "initial_epoch must be an int"),
    "callbacks": (lambda: _model().train(1, BATCHES, callbacks=NUMBERS, verbose=0), "callback"),
    "valid_frequency": (lambda: _model().fit(1, BATCHES, BATCHES, valid_frequency=ARRAY), "valid_frequency must be"),
    "three columns": (lambda: _model().train(1, [(ARRAY, ARRAY, ARRAY)]), "2 columns, data and label; got 3"),
    "loss scale": (lambda: mixtrain.DynamicLossScaleManager(ARRAY), "init_loss_scale must be a number; got ndarray"),
    "loss scale, a list": (lambda: mixtrain.FixedLossScaleManager(NUMBERS), f"got list of {ROWS}"),
    "a label out of range": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(
            mixtrain.Tensor(np.zeros((ROWS, 3), np.float32)), mixtrain.Tensor(np.full(ROWS, 7, np.int32))
        ), "labels must be from 0 to 2; got 7",
    ),
    "kernel_size": (lambda: nn.Conv2d(1, 1, NUMBERS), "kernel_size"),
    "pad_mode": (lambda: nn.Conv2d(1, 1, 3, pad_mode=TEXT), "pad_mode must be one of"),
    "padding": (lambda: nn.Conv2d(1, 1, 3, pad_mode="pad", padding=NUMBERS), "padding must be an int"),
    "to_float": (lambda: nn.Dense(3, 1).to_float(ARRAY), "dtype"),
    "white_list": (
        lambda: amp.custom_mixed_precision(nn.Dense(3, 1), white_list=[f"block{n}" for n in range(ROWS)]), "white_list",
    ),
    "a path": (lambda: amp.plan_precision(nn.Dense(3, 1)).row(TEXT), "no layer has the path"),
    "boost_level": (lambda: amp.build_train_network(nn.Dense(3, 1), "sgd", boost_level=ARRAY), "boost_level must be"),
    "concat": (lambda: ops.concat(ARRAY, axis=NUMBERS), "axis|tuple"),
    "addn": (lambda: ops.addn(ARRAY), "x must be a tuple or list of tensors; got ndarray"),
    "reshape": (lambda: ops.reshape(ARRAY, tuple(range(2, 2000))), "expected a shape of 80000 elements"),
    "operator's input": (lambda: ops.relu(BATCHES), "was needed; got list of 2000"),
    "column_names": (lambda: dataset.NumpySlicesDataset(ARRAY, column_names=NUMBERS), "column_names must be"),
    "columns": (lambda: dataset.NumpySlicesDataset(ARRAY, column_names=list(NAMES)), "column"),
    "project": (lambda: dataset.NumpySlicesDataset(NAMES).project(["nothing"]), "nothing|column"),
    "batch_size": (lambda: dataset.NumpySlicesDataset(ARRAY).batch(ARRAY), "batch_size must be an int; got ndarray"),
    "state_dict": (lambda: nn.Dense(3, 1).load_state_dict(NAMES), f"unexpected: column_0.*{ROWS} in all"),
    "load_param_into_net": (lambda: mixtrain.load_param_into_net(nn.Dense(3, 1), BATCHES), "parameter_dict must be a"),
    "checkpoint's option": (lambda: mixtrain.save_checkpoint(nn.Dense(3, 1), "x.ckpt", other=ARRAY), "other=ndarray"),
}


@quick_every(13)
@pytest.mark.parametrize("case", CALLS)
def test_no_error_prints_the_data_that_it_is_about(case: str) -> None:
    call, expected = CALLS[case]
    with pytest.raises((TypeError, ValueError, KeyError, RuntimeError), match=expected) as caught:
        call()
    assert len(str(caught.value)) < 500, str(caught.value)[:1000]
