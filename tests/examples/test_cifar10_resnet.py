"""The CIFAR-10 example on generated rows in the official format: both frontends, resume, and its own words."""

from __future__ import annotations

import argparse
import pathlib
import re
import runpy
import shutil
import sys
from typing import Any

import keras
import numpy as np
import pytest

from tests.backends import quick_every

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SMALL = ("--depth", "8", "--batch-size", "32", "--learning-rate", "0.05", "--epochs", "2")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> float:
    """Run the script as a user does; return its test accuracy."""
    script = str(EXAMPLES / "cifar10_resnet.py")
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    monkeypatch.setattr(sys, "path", list(sys.path))
    return float(runpy.run_path(script)["main"]())


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder of two files for training and one for the test: a label's byte, then a picture's planes."""
    folder = tmp_path_factory.mktemp("cifar-10-batches-bin")
    synthetic = runpy.run_path(str(EXAMPLES / "cifar10_data.py"))["synthetic"]
    for seed, (name, rows) in enumerate({"data_batch_1": 96, "data_batch_2": 64, "test_batch": 40}.items()):
        images, labels = synthetic(rows, seed)
        planes = images.transpose(0, 3, 1, 2).reshape(rows, -1)
        np.concatenate([labels[:, None].astype(np.uint8), planes], axis=1).tofile(folder / f"{name}.bin")
    return folder


def epoch_lines(printed: str) -> list[str]:
    """Return what each epoch came to, without its milliseconds."""
    lines = [line for line in printed.splitlines() if line.startswith("epoch ")]
    return [f"{line.split(' steps')[0]}: {line.split('a step, ')[1]}" for line in lines]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Return what the script defines."""
    before = list(sys.path)
    try:
        return runpy.run_path(str(EXAMPLES / "cifar10_resnet.py"))
    finally:
        sys.path[:] = before


@pytest.mark.slow
def test_both_frontends_are_resnet_20_of_the_same_size(script: dict[str, Any]) -> None:
    cell, model = script["ResNet"](), script["keras_resnet"]()
    shapes = [
        sorted(tuple(sorted(weight.shape)) for weight in weights)
        for weights in (cell.trainable_params(), model.trainable_weights)
    ]
    assert shapes[0] == shapes[1]
    assert sum(int(np.prod(shape)) for shape in shapes[0]) == 272_474
    layers = [layer for layer in model.layers if isinstance(layer, (keras.layers.Conv2D, keras.layers.Dense))]
    assert len(layers) == 22, "20, and the convolutions of two shortcuts"


@pytest.mark.slow
def test_both_frontends_follow_the_same_cosine(script: dict[str, Any]) -> None:
    rates = []
    for frontend in ("cell", "keras"):
        options = argparse.Namespace(
            frontend=frontend, depth=8, learning_rate=0.1, amp_level="O0", dtype="bfloat16"
        )
        schedule = script["make_model"](options, 8).train_network.optimizer
        schedule = schedule.learning_rate if frontend == "cell" else schedule._learning_rate
        rates.append([float(schedule(keras.ops.convert_to_tensor(step, "int32"))) for step in range(9)])
    expected = 0.05 * (1 + np.cos(np.pi * np.arange(9) / 8))
    np.testing.assert_allclose(rates, [expected, expected], atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("frontend", ["cell", "keras"])
def test_a_resumed_run_equals_the_uninterrupted_one(
    frontend: str, data_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    common = (*SMALL, "--frontend", frontend, "--amp-level", "O0", "--data-dir", str(data_dir))
    accuracy = run(monkeypatch, *common, "--checkpoint-dir", str(tmp_path / "whole"))
    whole = capsys.readouterr().out
    assert f"data: CIFAR-10 from {data_dir}: 160 rows to train on, 40 to test" in whole
    assert "precision plan: O0" in whole and "SYNTHETIC" not in whole
    assert [line.split(":")[0] for line in epoch_lines(whole)] == ["epoch 1/2", "epoch 2/2"]
    assert all("5, loss " in line.replace("5: ", "5, ") and "val_accuracy" in line for line in epoch_lines(whole))
    assert sorted(file.name for file in (tmp_path / "whole").iterdir()) == ["resnet-1_5.ckpt", "resnet-2_5.ckpt"]

    broken_off = tmp_path / "broken_off"
    broken_off.mkdir()
    shutil.copy(tmp_path / "whole" / "resnet-1_5.ckpt", broken_off)
    again = run(monkeypatch, *common, "--checkpoint-dir", str(broken_off), "--resume")
    resumed = capsys.readouterr().out
    assert f"resumed from {broken_off / 'resnet-1_5.ckpt'}: 1 epochs done" in resumed
    assert epoch_lines(resumed) == epoch_lines(whole)[1:]
    assert again == accuracy


@pytest.mark.slow
@pytest.mark.parametrize(("frontend", "extra"), [("cell", ("--sink",)), ("keras", ())])
def test_offline_the_pictures_are_synthetic_and_say_so(
    frontend: str, extra: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "no_cache"))
    picture = tmp_path / "run.png"
    options = (*SMALL, "--epochs", "1", "--limit", "16", "--batch-size", "8", "--frontend", frontend)
    run(monkeypatch, *options, "--plot", str(picture), *extra)
    printed = capsys.readouterr().out
    assert "data: SYNTHETIC pictures, NOT CIFAR-10" in printed and "16 rows to train on, 16 to test" in printed
    assert printed.splitlines()[-1].startswith("SYNTHETIC pictures, NOT CIFAR-10; test accuracy ")
    assert "precision plan: O2, half is bfloat16" in printed and "Loss scale:" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture], "nothing was downloaded"


@pytest.mark.slow
def test_rows_of_the_files_become_batches_of_either_layout(data_dir: pathlib.Path) -> None:
    module = runpy.run_path(str(EXAMPLES / "cifar10_data.py"))
    pictures = module["find_pictures"](str(data_dir), download=False, limit=70)
    for channels_first, shape in ((True, (3, 32, 32)), (False, (32, 32, 3))):
        train, test = module["make_batches"](pictures, 32, channels_first=channels_first)
        made = [list(part.create_tuple_iterator(num_epochs=1, output_numpy=True)) for part in (train, test)]
        train_rows, batches = made
        assert [image.shape for image, _ in train_rows] == 2 * [(32, *shape)]
        assert [(image.shape, str(image.dtype), str(label.dtype)) for image, label in batches] == [
            ((32, *shape), "float32", "int32"), ((8, *shape), "float32", "int32")
        ]
        first = module["synthetic"](40, 2)[0][0] / 255.0
        expected = (first - module["MEAN"]) / module["DEVIATION"]
        result = batches[0][0][0].transpose(1, 2, 0) if channels_first else batches[0][0][0]
        np.testing.assert_allclose(result, expected, atol=1e-5)


@quick_every(2)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("--resume",), "--resume without a file needs --checkpoint-dir"), (("--depth", "9"), "6n \\+ 2; got 9")],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, *arguments, "--limit", "4")
    assert re.search(says, f"{stopped.value} {capsys.readouterr().err}")
