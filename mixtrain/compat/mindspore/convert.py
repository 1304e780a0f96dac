"""Conversion between checkpoints and safetensors files of other programs, a file or the folders of ranks at a time."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Mapping
from typing import Literal

from mixtrain import checks
from mixtrain.serialization.read import load_checkpoint
from mixtrain.serialization.save import save_checkpoint

_Path = str | os.PathLike[str]


def ckpt_to_safetensors(
    file_path: _Path, save_path: _Path | None = None, name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None, processes_num: int = 1,
) -> None:
    """Write checkpoints as safetensors files, which hold the tensors alone.

    Args:
        file_path: A file ``*.ckpt``, or a folder with a folder ``rank...`` of such files for each process.
        save_path: The folder to write to; None for that of each file.
        name_map: New names of tensors, by their old ones; None keeps all.
        file_name_regex: What must be found in the names of files; None for all.
        processes_num: How many files are converted at once in MindSpore; here one after the other.

    Raises:
        ValueError: If `file_path` is not there or of another format, or `save_path` has the name of a file.

    Example: ``mixtrain.ckpt_to_safetensors("lenet.ckpt", "exported")``.
    """
    _convert("ckpt_to_safetensors", file_path, save_path, name_map, file_name_regex, processes_num, "safetensors")


def safetensors_to_ckpt(
    file_path: _Path, save_path: _Path | None = None, name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None, processes_num: int = 1,
) -> None:
    """Write safetensors files as checkpoints.

    `file_path`, `save_path`, `name_map`, `file_name_regex`, `processes_num` and the errors are those of
    `ckpt_to_safetensors`.

    Example: ``mixtrain.safetensors_to_ckpt("lenet.safetensors", "imported")``.
    """
    _convert("safetensors_to_ckpt", file_path, save_path, name_map, file_name_regex, processes_num, "ckpt")


def _convert(
    where: str, file_path: _Path, save_path: _Path | None, name_map: Mapping[str, str] | None, regex: str | None,
    processes_num: int, to: Literal["ckpt", "safetensors"],
) -> None:
    checks.integer(where, "processes_num", processes_num, at_least=1)
    source, target = pathlib.Path(file_path), None if save_path is None else pathlib.Path(save_path)
    if name_map is not None and not isinstance(name_map, Mapping):
        raise checks.fail_value(where, "name_map must be a dict of names or None", name_map, 'name_map={"old": "new"}')
    if target is not None and target.suffix:
        raise checks.fail_value(where, "save_path must be a folder", save_path, 'save_path="exported"')
    suffix = ".safetensors" if to == "ckpt" else ".ckpt"
    folders = sorted(source.glob("rank*/")) if source.is_dir() else []
    if not folders and not (source.is_file() and source.suffix == suffix):
        raise checks.fail_value(
            where, f"file_path must be a file *{suffix}, or a folder with folders rank_0 and so on", file_path,
            f'file_path="lenet{suffix}"',
        )
    names = name_map or {}
    for file in [source] if source.is_file() else [file for at in folders for file in sorted(at.glob(f"*{suffix}"))]:
        if regex is None or re.search(regex, file.name):
            folder = file.parent if target is None else target / (file.parent.name if folders else "")
            folder.mkdir(parents=True, exist_ok=True)
            tensors = load_checkpoint(str(file), format=suffix[1:])
            save_checkpoint(
                [{"name": names.get(name, name), "data": value} for name, value in tensors.items()],
                str(folder / f"{file.stem}.{to}"), format=to,
            )
