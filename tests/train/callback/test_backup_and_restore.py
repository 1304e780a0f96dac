"""`BackupAndRestore`: a run that was interrupted goes on, bit for bit, from the epoch after its file."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, nn
from mixtrain.train.callback import BackupAndRestore, Callback
from mixtrain.train.run_context import RunContext
from tests.backends import quick_every

_draw = np.random.default_rng(5)
BATCHES = [
    (_draw.standard_normal((4, 2)).astype(np.float32), _draw.standard_normal((4, 1)).astype(np.float32))
    for _ in range(3)
]


def _model(kind: str, level: Any = "O0") -> Model:
    """Return a Model; at O2, in float16, its first step is skipped, and another whenever three were good."""
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    own = nn.Momentum(net.trainable_params(), [0.1 * 0.9**step for step in range(20)], 0.5)
    optimizer: Any = own if kind == "mixtrain" else keras.optimizers.Adam(0.05)
    manager = DynamicLossScaleManager(init_loss_scale=2.0**26, scale_factor=2.0**20, scale_window=3)
    return Model(net, nn.MSELoss(), optimizer, amp_level=level, loss_scale_manager=manager)


class BreakOff(Callback):
    """Ends a run with an error as its third epoch begins."""

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        if run_context.original_args().cur_epoch_num == 3:
            raise KeyboardInterrupt


@quick_every(6)
@pytest.mark.parametrize(
    ("kind", "level", "sink", "sink_size"),
    [
        ("mixtrain", "O2", False, -1), ("mixtrain", "O0", True, -1), ("mixtrain", "O0", True, 2),
        ("keras", "O0", False, -1), ("keras", "O2", True, -1), ("keras", "O0", True, 2),
    ],
)
def test_a_run_that_broke_off_goes_on_as_if_it_had_not(
    kind: str, level: str, sink: bool, sink_size: int, tmp_path: pathlib.Path
) -> None:
    options: dict[str, Any] = {"dataset_sink_mode": sink, "sink_size": sink_size, "verbose": 0}
    whole = _model(kind, level).train(5, BATCHES, **options)
    assert whole["skipped_steps"] == ([1, 1, 1, 0, 1] if level == "O2" else [0, 0, 0, 0, 0])
    with pytest.raises(KeyboardInterrupt):
        _model(kind, level).train(5, BATCHES, [BackupAndRestore(tmp_path), BreakOff()], **options)
    assert [file.name for file in tmp_path.iterdir()] == ["backup.ckpt"]
    rest = _model(kind, level).train(5, BATCHES, BackupAndRestore(tmp_path), **options)
    assert rest.epoch == [3, 4, 5]
    assert dict(rest) == {name: values[2:] for name, values in whole.items()}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_file_is_kept_where_that_is_wanted_and_written_as_often_as_asked(tmp_path: pathlib.Path) -> None:
    model = _model("mixtrain")
    with pytest.raises(KeyboardInterrupt):
        model.train(5, BATCHES, [BackupAndRestore(tmp_path, save_freq=4), BreakOff()], verbose=0)
    assert list(tmp_path.iterdir()) == []
    kept = BackupAndRestore(tmp_path, 2, delete_checkpoint=False)
    model.train(3, BATCHES, kept, verbose=0)
    assert pathlib.Path(kept.backup_file).exists()
    assert _model("mixtrain").train(3, BATCHES, kept, verbose=0).epoch == [3]
    assert _model("mixtrain").train(2, BATCHES, kept, verbose=0).epoch == []


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"backup_dir": None}, TypeError, "backup_dir must be a str"),
        ({"backup_dir": ""}, ValueError, "must not be empty"),
        ({"save_freq": "step"}, ValueError, "save_freq must be one of epoch"),
        ({"save_freq": 0}, ValueError, "save_freq must be at least 1"),
        ({"save_freq": 1.5}, TypeError, "save_freq must be an int"),
        ({"delete_checkpoint": 1}, TypeError, "delete_checkpoint must be True or False"),
    ],
)
def test_wrong_arguments_are_refused(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(error, match=message):
        BackupAndRestore(**{"backup_dir": tmp_path, **options})
