"""`load_checkpoint`: reads the parameters of a file by name, also in a thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any, Final

from mixtrain import backend, checks
from mixtrain.serialization.checkpoint import Checkpoint, RunState
from mixtrain.serialization.files import finish_writing
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.parts import read_whole
from mixtrain.serialization.save import FORMATS, check_encryption, check_options
from mixtrain.serialization.store import read_tensors
from mixtrain.serialization.values import restored
from mixtrain.typing import Network

_WHERE: Final = "load_checkpoint"
Prefixes = str | list[str] | tuple[str, ...]


def load_checkpoint(
    ckpt_file_name: str | os.PathLike[str], net: Network | None = None, strict_load: bool = False,
    filter_prefix: Prefixes | None = None, dec_key: bytes | None = None, dec_mode: str = "AES-GCM",
    specify_prefix: Prefixes | None = None, choice_func: Callable[[str], bool] | None = None, **kwargs: Any,
) -> Checkpoint:
    """Read a file that `save_checkpoint` or `ModelCheckpoint` wrote, or a safetensors file of any program.

    Args:
        ckpt_file_name: The file; its name ends with ``ckpt``, or ``safetensors`` in that format.
        net: A network into which the parameters are loaded, as by `load_param_into_net`; None for none.
        strict_load: As in `load_param_into_net`.
        filter_prefix: One or several prefixes of names to leave out.
        dec_key, dec_mode: None, and accepted for MindSpore scripts: files are not encrypted.
        specify_prefix: One or several prefixes; other names are left out.
        choice_func: Takes a name and returns whether it is read; without effect if a prefix is given.
        **kwargs: ``crc_check`` (a SHA-256 of ours is always compared), ``format`` ("ckpt" or "safetensors"),
            ``remove_redundancy`` (False alone).

    Returns: A dict from name to Parameter, or str for a string; `run_state` holds what else a resumed run needs.

    Raises: CheckpointError if the file is not a checkpoint of mixtrain or is damaged, or it is a directory, a device or
        a pipe. TypeError if an argument has the wrong type. ValueError if the file is missing, its name does not end
        with the format, or no parameter is selected.

    Example: ``load_checkpoint("lenet.ckpt", network, filter_prefix="head")``.
    """
    check_encryption(_WHERE, dec_key, dec_mode, "dec_key")
    file_format = check_options(_WHERE, kwargs, FORMATS)
    included, excluded = _prefixes("specify_prefix", specify_prefix), _prefixes("filter_prefix", filter_prefix)
    path = _checked_name(ckpt_file_name, file_format)

    def is_selected(name: str) -> bool:
        if included is None and excluded is None:
            return choice_func is None or bool(choice_func(name))
        if included is not None and not name.startswith(included):
            return False
        return excluded is None or not name.startswith(excluded)

    read = read_checkpoint if file_format == "ckpt" else _read_safetensors
    checkpoint = with_parameters(read(path, is_selected))
    if not checkpoint:
        raise ValueError(
            f"{_WHERE}: expected a parameter that the arguments let through; got none of {path!r}. "
            "Write another filter_prefix, specify_prefix or choice_func."
        )
    if net is not None:
        load_param_into_net(net, checkpoint, strict_load)
    return checkpoint


def load_checkpoint_async(
    ckpt_file_name: str | os.PathLike[str], net: Network | None = None, strict_load: bool = False,
    filter_prefix: Prefixes | None = None, dec_key: bytes | None = None, dec_mode: str = "AES-GCM",
    specify_prefix: Prefixes | None = None, choice_func: Callable[[str], bool] | None = None,
) -> Future[Checkpoint]:
    """Do `load_checkpoint` in a thread; the format is that of the file's name.

    Args:
        ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func: As there.

    Returns: A future, whose `result` waits for the checkpoint and returns it.

    Example: ``load_checkpoint_async("lenet.ckpt").result()``.
    """
    file_format = "safetensors" if str(ckpt_file_name).endswith(".safetensors") else "ckpt"
    name = _checked_name(ckpt_file_name, file_format)
    thread = ThreadPoolExecutor(1, "mixtrain-load-checkpoint")
    future = thread.submit(
        load_checkpoint, name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func,
        format=file_format,
    )
    thread.shutdown(wait=False)
    return future


def read_checkpoint(path: str, is_selected: Callable[[str], bool] = lambda name: True) -> Checkpoint:
    """Read a checkpoint with any file name, after the files that are being written; its values are arrays."""
    finish_writing()
    return _restored(path, read_whole(path, is_selected))


def _read_safetensors(path: str, is_selected: Callable[[str], bool]) -> Checkpoint:
    finish_writing()
    return _restored(path, read_tensors(path, is_selected))


def _restored(path: str, read: tuple[dict[str, Any], RunState]) -> Checkpoint:
    return Checkpoint({name: restored(value) for name, value in read[0].items()}, run_state=read[1], file=path)


def with_parameters(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint with Parameters in place of its tensors, as MindSpore's scripts expect."""
    # MindSpore's class is loaded when a script reads a file, not by runs that resume.
    parameter = import_module("mixtrain.common.parameter").Parameter
    values = {
        name: value if isinstance(value, str) else parameter(backend.to_tensor(value), name)
        for name, value in checkpoint.items()
    }
    return Checkpoint(values, run_state=checkpoint.run_state, file=checkpoint.file)


def _prefixes(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    prefixes = (value,) if isinstance(value, str) else value
    if not isinstance(prefixes, (list, tuple)) or not all(isinstance(prefix, str) for prefix in prefixes):
        raise checks.fail_type(_WHERE, f"{name} must be a str or a list of them", value, f'{name}="conv"')
    if not prefixes or "" in prefixes:
        raise checks.fail_value(_WHERE, f"{name} must not be empty", value, f'{name}="conv"')
    return tuple(prefixes)


def _checked_name(file_name: Any, file_format: str) -> str:
    if not isinstance(file_name, (str, os.PathLike)):
        raise checks.fail_type(_WHERE, "ckpt_file_name must be a str", file_name, 'ckpt_file_name="lenet.ckpt"')
    name = os.fspath(file_name)
    if not name.endswith(file_format):
        other = next((kind for kind in FORMATS if kind != file_format and name.endswith(f".{kind}")), None)
        advice = f'ckpt_file_name="{name}.{file_format}"' if other is None else f'format="{other}"'
        raise checks.fail_value(_WHERE, f"ckpt_file_name must end with {file_format}", name, advice)
    return name
