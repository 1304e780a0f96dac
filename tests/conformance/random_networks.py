"""Random small networks in names that MindSpore and mixtrain both have: made, trained for five steps, summed up.

A number decides everything: layers, padding, strides, groups, the loss, the optimizer with its groups, decay and
schedule, the data and the first weights. Left out are BCEWithLogitsLoss, whose gradients in MindSpore 2.10 came out
scaled by other factors in a process that had run other networks before, and Nesterov's Momentum, which came out as
plain Momentum there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

STEPS: Final = 5
COUNT: Final = 306


class Choices:
    """What a number decides."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng([20, number])

    def one_of(self, *values: Any) -> Any:
        """Return one of the values."""
        return values[int(self.rng.integers(len(values)))]

    def floats(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """Return normal numbers."""
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)


def _activation(choices: Choices, nn: Any) -> Any:
    name = choices.one_of(
        "ReLU", "Tanh", "Sigmoid", "GELU", "ELU", "LeakyReLU", "ReLU6", "HSwish", "SiLU", "LogSigmoid"
    )
    return getattr(nn, name)()


def _convolution(choices: Choices, nn: Any, channels: int, size: int) -> tuple[list[Any], int]:
    """Return a convolution with what follows it, and its channels."""
    outputs = choices.one_of(4, 6, 8)
    kernel = choices.one_of(1, 2, 3) if size > 3 else 1
    mode = choices.one_of("same", "valid", "pad")
    settings = {
        "pad_mode": mode, "stride": choices.one_of(1, 1, 2), "padding": choices.one_of(0, 1) if mode == "pad" else 0,
        "dilation": choices.one_of(1, 2) if kernel > 1 and size > 6 else 1,
        "group": choices.one_of(1, 2) if channels % 2 == 0 else 1,
    }
    if settings["dilation"] > 1:
        settings["stride"] = 1
    norm = choices.one_of("none", "batch", "group", "none")
    layers = [nn.Conv2d(channels, outputs, kernel, has_bias=norm == "none", **settings)]
    if norm == "batch":
        layers.append(nn.BatchNorm2d(outputs, momentum=choices.one_of(0.9, 0.7)))
    if norm == "group":
        layers.append(nn.GroupNorm(2, outputs))
    return [*layers, _activation(choices, nn)], outputs


def _images(choices: Choices, nn: Any) -> tuple[list[Any], np.ndarray, int]:
    """Return layers from images to features, the images, and how many features."""
    channels, size = choices.one_of(2, 3, 4), choices.one_of(8, 9, 12)
    images = choices.floats(4, channels, size, size)
    layers, shape = [], size
    for _ in range(choices.one_of(1, 2, 3)):
        made, channels = _convolution(choices, nn, channels, shape)
        layers += made
        shape = max(shape // 2 - 1, 1)
        if shape > 3 and choices.one_of(True, False):
            kind, mode = choices.one_of("MaxPool2d", "AvgPool2d"), choices.one_of("same", "valid")
            layers.append(getattr(nn, kind)(2, choices.one_of(1, 2), mode))
            shape = max(shape // 2 - 1, 1)
    return [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()], images, channels


def _rows(choices: Choices, nn: Any) -> tuple[list[Any], np.ndarray, int]:
    features = choices.one_of(5, 8, 12)
    layers, width = [], features
    for _ in range(choices.one_of(1, 2, 3)):
        wider = choices.one_of(6, 8, 10)
        norm = choices.one_of(None, None, "BatchNorm1d", "LayerNorm")
        layers.append(nn.Dense(width, wider, has_bias=norm is None))
        if norm:
            layers.append(nn.LayerNorm((wider,)) if norm == "LayerNorm" else nn.BatchNorm1d(wider))
        layers.append(_activation(choices, nn))
        width = wider
    return layers, choices.floats(6, features), width


def _loss(choices: Choices, nn: Any, outputs: int, rows: int) -> tuple[Any, np.ndarray]:
    kind = choices.one_of("sparse", "dense", "cross", "MSELoss", "L1Loss", "SmoothL1Loss", "MSELoss", "Huber")
    reduction = choices.one_of("mean", "sum")
    labels = choices.rng.integers(0, outputs, rows).astype(np.int32)
    if kind == "sparse":
        return nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction=reduction), labels
    if kind == "dense":
        return nn.SoftmaxCrossEntropyWithLogits(reduction=reduction), np.eye(outputs, dtype=np.float32)[labels]
    if kind == "cross":
        return nn.CrossEntropyLoss(label_smoothing=choices.one_of(0.0, 0.1), reduction=reduction), labels
    if kind == "Huber":
        return nn.HuberLoss(reduction=reduction, delta=0.7), choices.floats(rows, outputs)
    return getattr(nn, kind)(reduction=reduction), choices.floats(rows, outputs)


def _optimizer(choices: Choices, nn: Any, parameters: list[Any]) -> Any:
    rate: Any = choices.one_of(0.01, 0.003)
    schedule = choices.one_of("none", "none", "list", "cosine", "exponential")
    if schedule == "list":
        rate = [0.01, 0.01, 0.005, 0.005, 0.001]
    if schedule == "cosine":
        rate = nn.CosineDecayLR(0.001, 0.01, 5)
    if schedule == "exponential":
        rate = nn.ExponentialDecayLR(0.01, 0.9, 2)
    decay = choices.one_of(0.0, 0.01)
    given: Any = parameters
    if choices.one_of(True, False) and len(parameters) > 1:
        half = len(parameters) // 2
        first: dict[str, Any] = {"params": parameters[:half], "weight_decay": choices.one_of(0.0, 0.02)}
        if schedule == "none" and choices.one_of(True, False):
            first["lr"] = 0.005
        given = [first, {"params": parameters[half:]}]
    kind = choices.one_of("SGD", "Momentum", "Momentum", "Adam", "AdamWeightDecay", "RMSProp", "Adagrad", "Adam")
    if kind == "SGD":
        return nn.SGD(given, rate, momentum=choices.one_of(0.0, 0.9), weight_decay=decay)
    if kind == "Momentum":
        return nn.Momentum(given, rate, 0.9, weight_decay=decay)
    if kind == "RMSProp":
        # With a larger epsilon MindSpore's vectorized kernel leaves the formula: it is not under the root there.
        return nn.RMSProp(given, rate, momentum=0.5, weight_decay=decay)
    if kind == "Adagrad":
        return nn.Adagrad(given, learning_rate=rate, weight_decay=decay)
    # Adam's step is a sign where gradients are of the size of eps, so that rounding decided it.
    return getattr(nn, kind)(given, rate, eps=1e-3, weight_decay=decay)


def run(number: int, ms: Any, nn: Any) -> dict[str, np.ndarray]:
    """Make a network, train it for `STEPS` steps, and return what it computed.

    Args:
        number: What decides everything.
        ms: MindSpore or mixtrain.
        nn: Its `nn`.

    Returns:
        "output"; "losses" of each step; "gradients" of the first step and "weights" after the last, each parameter's
        as its norm and its product with a fixed vector.
    """
    choices = Choices(number)
    layers, data, width = (_images if choices.one_of(True, True, False) else _rows)(choices, nn)
    outputs = choices.one_of(2, 3, 5)
    network = nn.SequentialCell(*layers, nn.Dense(width, outputs))
    loss_fn, labels = _loss(choices, nn, outputs, len(data))
    parameters = list(network.trainable_params())
    for parameter in parameters:
        shape = tuple(parameter.shape)
        scale = 1 / np.sqrt(max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.2
        around = 1.0 if parameter.name.endswith("gamma") else 0.0
        parameter.set_data(ms.Tensor(around + choices.floats(*shape, scale=scale)))
    optimizer = _optimizer(choices, nn, parameters)
    network.set_train()
    x, y = ms.Tensor(data), ms.Tensor(labels)

    def forward(x: Any, y: Any) -> Any:
        logits = network(x)
        return loss_fn(logits, y), logits

    step = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    losses, gradients, output = [], None, None
    for _ in range(STEPS):
        (loss, logits), grads = step(x, y)
        if gradients is None:
            gradients, output = [grad.asnumpy() for grad in grads], logits.asnumpy()
        losses.append(float(loss.asnumpy()))
        optimizer(grads)
    return {
        "output": np.asarray(output).reshape(-1)[:12], "losses": np.array(losses, np.float32),
        "gradients": np.array([summed(item) for item in gradients or ()], np.float32),
        "weights": np.array([summed(item.asnumpy()) for item in optimizer.parameters], np.float32),
    }


def summed(array: np.ndarray) -> tuple[float, float]:
    """Return an array's norm and its product with a fixed vector."""
    flat = array.astype(np.float64).reshape(-1)
    return float(np.linalg.norm(flat)), float(flat @ np.cos(np.arange(flat.size)))
