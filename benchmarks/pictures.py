"""Folders of PNG files, one per class, for the input pipelines; imports no framework."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import struct
import tempfile
import zlib
from typing import Final

import numpy as np

from benchmarks.workloads import Network, Workload

FILES: Final = 1024
MEAN: Final = (0.49, 0.48, 0.45)  # Per channel, of values in [0, 1].
DEVIATION: Final = (0.25, 0.24, 0.26)


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Shape of the files and their size before the crop to the workload's shape.

    Attributes:
        shape: Height, width and channels of a file.
        resized: Height and width after resizing.
    """

    shape: tuple[int, int, int]
    resized: int


PICTURES: Final[dict[Network, Pictures]] = {
    "lenet": Pictures((28, 28, 1), 36),
    "cifar_cnn": Pictures((32, 32, 3), 40),
}


@functools.lru_cache
def _folder(network: Network, classes: int) -> tempfile.TemporaryDirectory[str]:
    """Write a network's files, once per process; return their folder, which is removed at exit."""
    folder = tempfile.TemporaryDirectory(prefix="pictures-")
    random = np.random.default_rng(0)
    shape = PICTURES[network].shape
    for number in range(FILES):
        class_folder = pathlib.Path(folder.name) / f"class{number % classes}"
        class_folder.mkdir(exist_ok=True)
        coarse = random.integers(0, 256, (4, 4, shape[2]))
        smooth = np.kron(coarse, np.ones((8, 8, 1)))[: shape[0], : shape[1]]
        noisy = np.clip(smooth + random.normal(0, 8, shape), 0, 255).astype(np.uint8)
        (class_folder / f"{number:05}.png").write_bytes(png(noisy))
    return folder


def folder_of(workload: Workload) -> str:
    """Return a folder with one folder of PNG files per class; the files are the same in every process."""
    return _folder(workload.network, workload.classes).name


def png(image: np.ndarray) -> bytes:
    """Encode an image as PNG, uint8 (height, width, 1 or 3)."""
    height, width, channels = image.shape
    # PNG filter 2 ("Up"): each row minus the row above it.
    rows = np.diff(image.reshape(height, -1), axis=0, prepend=np.zeros((1, width * channels), np.uint8))
    body = np.concatenate([np.full((height, 1), 2, np.uint8), rows], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(body.tobytes())), (b"IEND", b"")]
    chunks = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
              for kind, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def epochs_of(workload: Workload, steps: int) -> int:
    """Return the epochs over the files that yield at least `steps` batches."""
    return -(-steps // (FILES // workload.batch))
