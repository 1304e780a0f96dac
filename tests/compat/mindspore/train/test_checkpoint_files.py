"""A run's checkpoint files are listed, and the oldest or those of the last minutes removed."""

from __future__ import annotations

import os
import pathlib

import pytest

from mixtrain.train.callback import _CheckpointManager


def test_files_of_a_run_are_listed_and_removed(tmp_path: pathlib.Path) -> None:
    for seconds, name in enumerate(("run-1_2.ckpt", "run-1_4.ckpt", "run-2_2.ckpt", "run_1-1_2.ckpt", "run-a.ckpt")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 + 100 * seconds,) * 2)
    (tmp_path / "run-1_2.meta").touch()
    manager = _CheckpointManager()
    manager.update_ckpoint_filelist(str(tmp_path), "run")
    assert sorted(manager.ckpoint_filelist) == [str(tmp_path / f"run-{at}.ckpt") for at in ("1_2", "1_4", "2_2")]
    manager.keep_one_ckpoint_per_minutes(2, 1210)
    assert manager.ckpoint_num == 2 and not (tmp_path / "run-2_2.ckpt").exists()
    manager.remove_oldest_ckpoint_file()
    manager.remove_ckpoint_file(f"{tmp_path}/./run-1_4.ckpt")
    assert manager.ckpoint_num == 0 and not list(tmp_path.glob("run-1_*.ckpt"))
    with pytest.raises(ValueError, match="file_name must be listed.*update_ckpoint_filelist"):
        manager.remove_ckpoint_file(str(tmp_path / "run-a.ckpt"))
    assert (tmp_path / "run-a.ckpt").exists()
