"""The command line: plans, formats and checkpoints, as text and as JSON; errors go to stderr with status 1."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn
from mixtrain.__main__ import main
from mixtrain.dtype import float_format
from mixtrain.precision.planner import plan_precision

NETWORKS = '''
import keras
from mixtrain import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(2, 3)
        self.norm = nn.BatchNorm1d(3)

    def construct(self, x):
        return self.norm(self.fc(x))


made = Net()
number = 3


def in_keras():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="fc")])
'''


@pytest.fixture
def networks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of networks, by its name."""
    name = f"networks_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(NETWORKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


@pytest.mark.parametrize("name", ["Net", "made"])
def test_a_plan_is_the_one_that_a_program_would_print(
    networks: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(capsys, "plan", f"{networks}:{name}").splitlines()
    module: Any = sys.modules[networks]
    assert "\n".join(lines) == str(plan_precision(module.Net(), "O2"))


def test_a_plan_as_json_has_a_row_for_each_layer(networks: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--amp-level", "O3", "--cast-model-type", "bfloat16", "--json")
    data = json.loads(run(capsys, "plan", f"{networks}:in_keras", *options))
    assert (data["level"], data["half"]) == ("O3", "bfloat16")
    assert [(row["path"], row["compute_dtype"], row["parameter_dtype"]) for row in data["rows"]][1:] == [
        ("fc", "bfloat16", "float32")
    ]


def test_formats_have_the_numbers_of_float_format(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(run(capsys, "formats", "--json"))
    assert list(data) == ["float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn"]
    for name, row in data.items():
        assert row == {key: getattr(float_format(name), key) for key in row}
    lines = run(capsys, "formats").splitlines()
    assert lines[3].split()[:5] == ["float16", "16", "5", "10", "65504"]


@pytest.mark.slow
def test_a_checkpoint_is_listed_with_where_its_run_was(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = nn.Dense(2, 3)
    model = Model(network, "mse", nn.SGD(network.trainable_params(), 0.1), amp_level="O2")
    saving = mixtrain.ModelCheckpoint("net", tmp_path)
    model.train(2, [(np.ones((4, 2), np.float32), np.ones((4, 3), np.float32))] * 3, callbacks=[saving], verbose=0)
    capsys.readouterr()
    file = str(max(tmp_path.glob("*.ckpt")))
    data = json.loads(run(capsys, "inspect", file, "--json"))
    assert data["run"] == {"epoch": 2, "step": 6, "batch_num": 3, "level": "O2", "half": "float16"}
    assert data["values"]["weight"] == {"dtype": "float32", "shape": [3, 2], "size": 6}
    lines = run(capsys, "inspect", file).splitlines()
    assert lines[0].startswith(f"{file}: {len(data['values'])} values, ")
    assert {"epoch: 2", "step: 6", "level: O2"} <= set(lines)
    assert ["weight", "float32", "(3,", "2)"] in [line.split() for line in lines]


def test_errors_say_what_to_write(
    networks: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "the network must be given as module:name" in failed(capsys, "plan", networks)
    assert "cannot find 'no_such_module:net'" in failed(capsys, "plan", "no_such_module:net")
    assert f"cannot find '{networks}:other'" in failed(capsys, "plan", f"{networks}:other")
    assert "must be a Cell or a Keras layer" in failed(capsys, "plan", f"{networks}:number")
    (tmp_path / "plain.ckpt").write_text("not a checkpoint")
    assert "expected a checkpoint that mixtrain wrote" in failed(capsys, "inspect", str(tmp_path / "plain.ckpt"))
    assert "missing.ckpt" in failed(capsys, "inspect", str(tmp_path / "missing.ckpt"))
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2


def test_what_a_file_says_moves_no_cursor(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "net.ckpt")
    mixtrain.save_checkpoint({"a\x1b[2Jb\r": np.zeros(2, np.float32)}, file)
    assert r"a\x1b[2Jb\r  float32  (2,)" in run(capsys, "inspect", file)


@pytest.mark.parametrize("content", [
    b"{", b"\xff", b"[" * 100_000, b'{"network": 1, "plan": 2, "steps": 3, "overflows": 4, "ranges": 5, "advice": 6, '
    b'"device": 7}',
])
def test_a_damaged_report_is_named(content: bytes, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_bytes(content)
    assert "run.json' to be a run report; got one that cannot be read" in failed(
        capsys, "report", str(tmp_path / "run.json")
    )
    assert not (tmp_path / "run.html").exists()


@pytest.mark.slow
def test_the_module_runs_as_a_program(networks: str, tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "mixtrain", "plan", f"{networks}:Net", "--json"]
    root = pathlib.Path(mixtrain.__file__).parents[1]
    environment = {"PYTHONPATH": str(root), "PATH": "", "KERAS_BACKEND": keras.backend.backend()}
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert [row["path"] for row in json.loads(process.stdout)["rows"]] == ["", "fc", "norm"]
