"""The order in which a plain loss function takes the output and the label."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import pytest

from mixtrain import nn, ops
from mixtrain.step.loss_order import loss_order

LABEL_FIRST: dict[str, Callable[..., Any]] = {
    "keras": lambda y_true, y_pred: 0.0,
    "label and anything": lambda label, x: 0.0,
    "anything and prediction": lambda y, prediction: 0.0,
    "camel case": lambda yTrue, yPred: 0.0,
    "defaults behind": lambda targets, outputs, gamma=2.0: 0.0,
    "numbered": lambda target_1, out1: 0.0,
    "partial by keyword": functools.partial(lambda gamma, y_true, y_pred: 0.0, 2.0),
}
OUTPUT_FIRST: dict[str, Callable[..., Any]] = {
    "mindspore": lambda logits, labels: 0.0,
    "pytorch": lambda input, target: 0.0,
    "prediction and anything": lambda pred, y: 0.0,
    "anything and label": lambda x, gt: 0.0,
    "camel case": lambda yHat, yTrue: 0.0,
    "mixtrain.ops": ops.cross_entropy,
    "a Cell": nn.MSELoss(),
}
SILENT: dict[str, Callable[..., Any]] = {
    "letters": lambda a, b: 0.0,
    "star": lambda *both: 0.0,
    "words of both kinds": lambda pred_or_label, other: 0.0,
    "builtin": max,
}


class Focal:
    """A loss of a user's own that is called, with Keras's names."""

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return keras.ops.mean(y_true - y_pred)

    def method(self, logits: Any, labels: Any) -> Any:
        return keras.ops.mean(logits - labels)


@pytest.mark.parametrize("in_keras", [True, False])
def test_names_decide_whatever_the_network(in_keras: bool) -> None:
    result = {name: loss_order(loss, keras_network=in_keras) for name, loss in LABEL_FIRST.items()}
    assert result == dict.fromkeys(LABEL_FIRST, "label_first")
    result = {name: loss_order(loss, keras_network=in_keras) for name, loss in OUTPUT_FIRST.items()}
    assert result == dict.fromkeys(OUTPUT_FIRST, "output_first")
    assert loss_order(Focal(), keras_network=in_keras) == "label_first"
    assert loss_order(Focal().method, keras_network=in_keras) == "output_first"


@pytest.mark.parametrize("loss", SILENT.values(), ids=SILENT)
def test_names_that_say_nothing_leave_it_to_the_network(loss: Any) -> None:
    assert loss_order(loss, keras_network=True) == "label_first"
    assert loss_order(loss, keras_network=False) == "output_first"


@pytest.mark.parametrize("loss", [lambda label, target: 0.0, lambda y_pred, logits: 0.0])
def test_names_that_contradict_each_other_are_an_error_that_asks_for_names(loss: Any) -> None:
    with pytest.raises(TypeError, match=r"which is the label; both mean the .*def loss\(y_true, y_pred\)"):
        loss_order(loss, keras_network=True)
