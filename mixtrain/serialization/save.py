"""`save_checkpoint`: writes the parameters of a network, or others, to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks, process_group
from mixtrain.boundary import is_any_tensor
from mixtrain.dtype import as_dtype
from mixtrain.network.walk import is_layer
from mixtrain.serialization.checkpoint import Checkpoint, RunState
from mixtrain.serialization.files import finish_writing, in_background
from mixtrain.serialization.names import parameters_by_name
from mixtrain.serialization.parts import IN_PARTS_FROM, remove_parts, write_parts
from mixtrain.serialization.run_state import take_run_state
from mixtrain.serialization.store import write_file, write_tensors
from mixtrain.serialization.values import stored

_WHERE: Final = "save_checkpoint"
FORMATS: Final = ("ckpt", "safetensors")
_ENCRYPTION: Final = "no enc_key, and an encrypted disk or archive for the file"


def save_checkpoint(
    save_obj: Any, ckpt_file_name: str | os.PathLike[str], integrated_save: bool = True, async_save: bool | str = False,
    append_dict: dict[str, Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None, **kwargs: Any,
) -> None:
    """Write the parameters of a network to a file.

    For a train cell (``model.train_network``) the file holds all that a resumed run needs. It is a safetensors file
    that holds its own SHA-256, and appears only when it is complete. With ``format="safetensors"`` it holds tensors
    alone, under the parameters' names, for programs that read such files.

    Args:
        save_obj: A Cell (also an optimizer or a train cell) or built Keras model; a dict from name to parameter,
            tensor, array or string; a list of parameters, or of ``{"name": ..., "data": ...}``.
        ckpt_file_name: The file; ``.ckpt`` (or ``.safetensors``) is added if it is missing.
        async_save: Whether a thread writes the file (True, "thread" or "process"), with the values as of the call.
        append_dict: Further values by name: numbers, bools, strings, tensors.
        enc_key, enc_mode, integrated_save: Accepted for MindSpore scripts; `enc_key` must be None.
        choice_func: Takes a name and returns whether its parameter is written; by default all are.
        **kwargs: ``crc_check`` (a SHA-256 is always written), ``format`` ("ckpt" or "safetensors"), ``incremental``
            and ``remove_redundancy`` (False alone).

    Raises: TypeError if an argument has the wrong type. ValueError if `enc_key` is not None, an argument is out of
        range, or there are too many names for one file. FileNotFoundError if the folder is missing. IsADirectoryError
        if `ckpt_file_name` is a folder.

    Example: ``save_checkpoint(model.train_network, "lenet.ckpt", append_dict={"epoch": 4})``.
    """
    checks.boolean(_WHERE, "integrated_save", integrated_save)
    check_encryption(_WHERE, enc_key, enc_mode)
    if check_options(_WHERE, kwargs, FORMATS) == "ckpt":
        write_checkpoint(save_obj, ckpt_file_name, async_save, append_dict, choice_func)
        return
    path = _path_of(ckpt_file_name, "safetensors")
    values = _chosen(save_obj, choice_func) | check_append_dict(_WHERE, append_dict)
    texts = [name for name, value in values.items() if isinstance(value, str)]
    if texts:
        raise checks.fail_type(
            _WHERE, 'the values of format="safetensors" must be tensors and numbers', values[texts[0]],
            f"no {texts[0]}, or format=\"ckpt\"",
        )
    reserved = [name for name in values if name == "__metadata__" or name.startswith("mixtrain:")]
    if reserved or not values:
        raise checks.fail_value(
            _WHERE, 'format="safetensors" needs parameters, of names that the format does not reserve',
            reserved[0] if reserved else "none", 'another name, or format="ckpt"',
        )
    in_thread = check_async_save(_WHERE, async_save)
    content = _stored(values, in_thread)
    finish_writing()
    if process_group.current().rank:
        return
    if in_thread:
        in_background(write_tensors, path, content)
    else:
        write_tensors(path, content)


def write_checkpoint(
    save_obj: Any, file_name: str | os.PathLike[str], async_save: bool | str, append_dict: dict[str, Any] | None,
    choice_func: Callable[[str], bool] | None = None, position: Mapping[str, int] | None = None,
) -> str:
    """Write a checkpoint as `save_checkpoint`, with the position in a run (epoch, step, batch_num); return its path."""
    path = _path_of(file_name)
    check_async_save(_WHERE, async_save)
    entries = _chosen(save_obj, choice_func)
    spanning = {name: value for name, value in entries.items() if backend.spans_processes(value)}
    named: dict[str, str] = {}
    if sum(map(backend.byte_count, spanning.values())) >= IN_PARTS_FROM:
        finish_writing()
        named, files = write_parts(path, spanning, [*entries])
        entries = {name: value for name, value in entries.items() if name not in spanning}
    values = named | _stored(entries, async_save) | _stored(check_append_dict(_WHERE, append_dict), async_save)
    if is_layer(save_obj):
        state = take_run_state(save_obj, position or {})
    else:
        state = save_obj.run_state if isinstance(save_obj, Checkpoint) else RunState()
    finish_writing()
    if process_group.current().rank and spanning:
        return path  # All processes have gathered the values, or written their parts; the first writes the file.
    if named:
        write_file(path, values, state)
        remove_parts(path, files)
    elif async_save:
        in_background(write_file, path, values, state)
    else:
        write_file(path, values, state)
    return path


def _stored(values: Mapping[str, Any], in_thread: bool | str) -> dict[str, Any]:
    """Return what a file stores of values; of a script's arrays, which it may change before a thread writes, copies."""
    return {
        name: stored(value.copy() if in_thread and isinstance(value, np.ndarray) else value)
        for name, value in values.items()
    }


def _chosen(save_obj: Any, choice_func: Callable[[str], bool] | None) -> dict[str, Any]:
    return {name: value for name, value in _entries(save_obj).items() if choice_func is None or choice_func(name)}


def _path_of(file_name: Any, suffix: str = "ckpt") -> str:
    if not isinstance(file_name, (str, os.PathLike)):
        raise checks.fail_type(_WHERE, "ckpt_file_name must be a str", file_name, 'ckpt_file_name="lenet.ckpt"')
    path = os.path.realpath(os.fspath(file_name))
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"{_WHERE}: expected ckpt_file_name to be a file; got the folder {path!r}. "
            f"Write {os.path.join(path, 'lenet.ckpt')!r}."
        )
    return path if path.endswith(suffix) else f"{path}.{suffix}"


def _entries(save_obj: Any) -> Mapping[str, Any]:
    if isinstance(save_obj, dict):
        return {_checked_name(name): _checked_value(name, value) for name, value in save_obj.items()}
    if isinstance(save_obj, list):
        return dict(map(_list_entry, save_obj))
    return parameters_by_name(f"{_WHERE}: save_obj", save_obj)


def _list_entry(item: Any) -> tuple[str, Any]:
    if isinstance(item, keras.Variable):
        return item.name, item
    if not isinstance(item, dict) or "name" not in item or "data" not in item:
        raise checks.fail_type(
            _WHERE, "each item of a list must be a Parameter or a dict with name and data", item,
            '[{"name": "weight", "data": tensor}]',
        )
    return _checked_name(item["name"]), _checked_value(item["name"], item["data"])


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise checks.fail_type(_WHERE, "a parameter's name must be a str", name, '{"weight": tensor}')
    return name


def _checked_value(name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        as_dtype(value.dtype)
    elif not (isinstance(value, str) or is_any_tensor(value)):
        raise checks.fail_type(
            f"{_WHERE}: {name}", "its value must be a Parameter, tensor, array or str", value, "a Parameter"
        )
    return value


def check_append_dict(where: str, append_dict: Any) -> dict[str, Any]:
    """Return the values to append, a dict from str to number, bool, string or tensor; None means none."""
    checks.instance(where, "append_dict", {} if append_dict is None else append_dict, dict, 'append_dict={"epoch": 3}')
    for name, value in (append_dict or {}).items():
        if not isinstance(name, str) or not (isinstance(value, (int, float, str)) or is_any_tensor(value)):
            raise checks.fail_type(
                where, f"append_dict[{checks.short_repr(name)}] must be a str's number, bool, str or tensor", value,
                '{"epoch": 3}',
            )
    return dict(append_dict or {})


def check_async_save(where: str, async_save: Any) -> bool | str:
    """Check `async_save`: a bool, "thread" or "process"."""
    if isinstance(async_save, str):
        return str(checks.one_of(where, "async_save", async_save, ("thread", "process")))
    return checks.boolean(where, "async_save", async_save)


def check_encryption(where: str, key: Any, mode: Any, name: str = "enc_key") -> None:
    """Check that there is no key, because files are not encrypted."""
    checks.instance(where, "the mode of encryption", mode, str, '"AES-GCM"')
    if key is not None:
        raise checks.fail_value(where, f"{name} must be None, because files are not encrypted", key, _ENCRYPTION)


def check_options(where: str, options: Mapping[str, Any], formats: Sequence[str] = ("ckpt",)) -> str:
    """Check MindSpore's options, which have no effect here but for the format; return that."""
    for name, value in options.items():
        if name == "format":
            checks.one_of(where, name, value, formats)
        elif name == "crc_check":
            checks.boolean(where, name, value)
        elif name not in ("incremental", "remove_redundancy"):
            got = f"{name}={checks.short_repr(value)}"
            raise TypeError(f"{where}: expected known arguments; got {got}. Write it without {name}.")
        elif value:
            raise checks.fail_value(where, f"{name} must be False on one device", value, f"{name}=False")
    return str(options.get("format", "ckpt"))
