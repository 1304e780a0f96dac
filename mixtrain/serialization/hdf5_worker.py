"""The process started by `hdf5`: converts an HDF5 checkpoint on standard input to safetensors on standard output.

It is run by its path and does not import mixtrain. Before the HDF5 library reads a byte, the process is forbidden to
open any other file or library, and its memory and time are limited to what a file of this length needs.
"""

from __future__ import annotations

import io
import json
import signal
import sys
import zlib
from typing import Any

import h5py
import ml_dtypes
import numpy as np
import safetensors.numpy

try:
    import resource
except ImportError:  # Windows has no such limits, so old files are not read there.
    resource = None  # type: ignore[assignment]


def limit(size: int) -> None:
    """Forbid this process to open files, and limit its memory and time by the `size` of the file in bytes."""
    limits = {
        resource.RLIMIT_NOFILE: 0, resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_AS: 2**30 + 6 * size,
    }
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))
    # CPU time after which a signal ends the process, because the library may loop forever. A file of ten thousand small
    # values, 3.5 MB, took 5 seconds; its limit is 17.
    signal.setitimer(signal.ITIMER_PROF, min(0.3 + 5 * size / 2**20, 120.0))


def convert(data: bytes) -> bytes:
    """Return an HDF5 checkpoint as a safetensors file; for a damaged one h5py raises errors of many classes."""
    tensors: dict[str, np.ndarray] = {}
    description: dict[str, Any] = {"parameters": [], "strings": [], "states": []}
    remaining = len(data)
    addresses: set[int] = set()
    with h5py.File(io.BytesIO(data), "r") as file:
        if file.attrs["format"] != "mixtrain.checkpoint" or int(file.attrs["version"]) != 1:
            raise ValueError("another format or version")
        array, kind = _value(file, "facts", remaining)
        if kind != "str":
            raise ValueError("text expected")
        description["facts"] = json.loads(array.tobytes().decode())
        for group, names in (("parameters", "parameters"), ("state", "states")):
            items = _group(file, group)
            for key in items:
                array, kind = _value(items, key, remaining)
                remaining -= array.nbytes
                addresses.add(h5py.h5o.get_info(items[key].id).addr)
                name = items[key].attrs.get("name", key)
                if not isinstance(name, str) or name.startswith("mixtrain:") or name == "__metadata__":
                    raise ValueError("a name that was never written")
                description[names].append(name)
                if kind == "str":
                    description["strings"].append(name)
                stored = array.view(ml_dtypes.bfloat16) if kind == "bfloat16" else array
                tensors[name if group == "parameters" else f"mixtrain:state:{name}"] = stored
    if not len(tensors) == len(addresses) == len(description["parameters"]) + len(description["states"]):
        raise ValueError("two values of one name, or two names of one value")
    tensors["mixtrain:description"] = np.frombuffer(json.dumps(description).encode(), np.uint8)
    return safetensors.numpy.save(tensors)


def _group(parent: Any, name: str) -> Any:
    if type(parent.get(name, getlink=True)) is not h5py.HardLink or parent.get(name, getclass=True) is not h5py.Group:
        raise ValueError("a link, or not a group")
    return parent[name]


def _value(group: Any, name: str, max_bytes: int) -> tuple[np.ndarray, str]:
    """Return a value and its kind ("", "str" or "bfloat16"); it must be in this file, uncompressed and intact."""
    if type(group.get(name, getlink=True)) is not h5py.HardLink or group.get(name, getclass=True) is not h5py.Dataset:
        raise ValueError("a link, or not a value")
    dataset = group[name]
    plist = dataset.id.get_create_plist()
    if dataset.is_virtual or dataset.external or plist.get_nfilters() or plist.get_layout() != h5py.h5d.CONTIGUOUS:
        raise ValueError("a value outside this file, or compressed")
    if dataset.dtype.kind not in "biuf" or dataset.shape is None or dataset.size * dataset.dtype.itemsize > max_bytes:
        raise ValueError("a value of another dtype, or longer than the file")
    array = np.ascontiguousarray(dataset[()]).reshape(dataset.shape)
    if zlib.crc32(array.reshape(-1).view(np.uint8).data) != int(dataset.attrs["crc32"]):
        raise ValueError("a checksum differs")
    kind = dataset.attrs.get("dtype", "")
    if kind not in ("", "str", "bfloat16") or (kind == "str" and array.dtype != np.uint8):
        raise ValueError("a value of another kind")
    return array, kind


def main() -> None:
    """Read standard input, convert, and write standard output."""
    data = sys.stdin.buffer.read()
    limit(len(data))
    sys.stdout.buffer.write(convert(data))


if __name__ == "__main__":
    main()
