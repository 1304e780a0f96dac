"""What users get wrong is told in one clear sentence, and leaves weights, optimizer and loss scale as they were."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import nn
from tests.backends import quick_every

ROWS = 8


class Net(nn.Cell):
    """A convolution, batch normalization and a dense layer on images of one channel."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, pad_mode="valid")
        self.norm = nn.BatchNorm2d(2)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(2 * 4 * 4, 3)

    def construct(self, x: Any) -> Any:
        return self.fc(self.flatten(self.norm(self.conv(x))))


def images(channels: int = 1) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ROWS, channels, 6, 6)).astype(np.float32)


def labels() -> np.ndarray:
    return np.eye(3, dtype=np.float32)[np.arange(ROWS) % 3]


def model() -> mixtrain.Model:
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    loss = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
    return mixtrain.Model(net, loss, optimizer, {"acc"}, loss_scale_manager=mixtrain.DynamicLossScaleManager(16, 2, 3))


def state(trained: mixtrain.Model) -> list[np.ndarray]:
    cells = [trained.train_network, trained.train_network.optimizer]
    values = [parameter.asnumpy().copy() for cell in cells for parameter in cell.get_parameters()]
    return [*values, trained.train_network.scale_sense.asnumpy()]


BAD_BATCHES: dict[str, tuple[Callable[[], Any], str]] = {
    "wrong channel count": (lambda: [(images(3), labels())], "conv.*1 channel.*3"),
    "wrong rank": (lambda: [(images()[:, 0], labels())], r"\(N, C, H, W\)|4 dimensions|rank 4"),
    "labels of another class count": (lambda: [(images(), labels()[:, :2])], r"labels.*\((8|None), 2\)"),
    "labels of another row count": (lambda: [(images(), labels()[:5])], r"\(5, 3\)|labels_size=\[5,3\]"),
    "three columns": (lambda: [(images(), labels(), labels())], "two columns|2 columns"),
}


@quick_every(7, 1)
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize("case", list(BAD_BATCHES))
def test_a_bad_batch_is_one_sentence_and_training_goes_on_as_if_it_had_not_been(case: str, sink: bool) -> None:
    bad, expected = BAD_BATCHES[case]
    good = [(images(), labels())]
    trained = model()
    trained.train(1, good, verbose=0, dataset_sink_mode=sink)
    before = state(trained)
    with pytest.raises((ValueError, TypeError), match=expected) as caught:
        trained.train(1, bad(), verbose=0, dataset_sink_mode=sink)
    text = str(caught.value)
    assert "\n" not in text.strip() and "; got" in text and "Write" in text, text
    after = state(trained)
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    trained.train(1, good, verbose=0, dataset_sink_mode=sink)
    assert not np.array_equal(state(trained)[0], before[0])


def test_an_unknown_pad_mode_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"Conv2d: pad_mode must be one of .*; got 'full'\. Write pad_mode="):
        nn.Conv2d(1, 2, 3, pad_mode="full")


def test_an_unknown_metric_name_offers_the_nearest() -> None:
    net = Net()
    with pytest.raises((ValueError, KeyError), match=r"acuracy.*Write.*accuracy"):
        mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"acuracy"})


@pytest.mark.parametrize("name", ["MnistDataset", "Cifar10Dataset", "Cifar100Dataset", "ImageFolderDataset"])
def test_a_missing_dataset_folder_is_named(name: str, tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "nowhere"
    with pytest.raises((ValueError, FileNotFoundError), match="nowhere") as caught:
        getattr(mixtrain.dataset, name)(str(missing))
    assert "\n" not in str(caught.value) and "Write" in str(caught.value)
