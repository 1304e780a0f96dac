"""Checkpoints in HDF5 as mixtrain wrote them (version 1), for tests that read them; this process writes them only."""

from __future__ import annotations

import json
import pathlib
import zlib
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np


def write_old(
    path: pathlib.Path,
    values: Mapping[str, Any],
    states: Mapping[str, np.ndarray] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write arrays, strings and (uint16 array, "bfloat16") by name as the writer of version 1 did."""
    with h5py.File(path, "w", libver="latest", track_order=True) as file:
        file.attrs["format"], file.attrs["version"] = "mixtrain.checkpoint", 1
        put(file, "facts", _as_text(json.dumps(dict(facts or {}))))
        for group, entries in (("parameters", values), ("state", states or {})):
            into = file.create_group(group, track_order=True)
            for entry, value in entries.items():
                put(into, entry, _as_text(value) if isinstance(value, str) else value)


def put(group: Any, name: str, value: Any) -> Any:
    """Write one value and return its dataset."""
    array, dtype = value if isinstance(value, tuple) else (value, None)
    key = name if name not in ("", ".", "..") and "/" not in name else f"#{len(group)}"
    dataset = group.create_dataset(key, data=array)
    dataset.attrs["crc32"] = np.uint32(zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data))
    if key != name:
        dataset.attrs["name"] = name
    if dtype is not None:
        dataset.attrs["dtype"] = dtype
    return dataset


def _as_text(text: str) -> tuple[np.ndarray, str]:
    return np.frombuffer(text.encode(), np.uint8), "str"
