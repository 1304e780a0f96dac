"""Folders of PNG files, one folder a class, and what a pipeline makes of each file; free of any framework."""

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
MEAN: Final = (0.49, 0.48, 0.45)  # Of values from 0 to 1; each channel's.
DEVIATION: Final = (0.25, 0.24, 0.26)


@dataclasses.dataclass(frozen=True)
class Pictures:
    """What lies in the files, and the size from which the crop is taken; the crop's is the workload's.

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
def _held(network: Network, classes: int) -> tempfile.TemporaryDirectory[str]:
    """Return the folder of a network's files, written once in a process and removed at its end."""
    held = tempfile.TemporaryDirectory(prefix="pictures-")
    random = np.random.default_rng(0)
    shape = PICTURES[network].shape
    for number in range(FILES):
        place = pathlib.Path(held.name) / f"class{number % classes}"
        place.mkdir(exist_ok=True)
        coarse = random.integers(0, 256, (4, 4, shape[2]))
        smooth = np.kron(coarse, np.ones((8, 8, 1)))[: shape[0], : shape[1]]
        noisy = np.clip(smooth + random.normal(0, 8, shape), 0, 255).astype(np.uint8)
        (place / f"{number:05}.png").write_bytes(png(noisy))
    return held


def folder_of(workload: Workload) -> str:
    """Return a folder with one folder of PNG files a class, the same in every process."""
    return _held(workload.network, workload.classes).name


def png(image: np.ndarray) -> bytes:
    """Return a PNG file of an image, uint8 (height, width, 1 or 3)."""
    height, width, channels = image.shape
    # Filter 2 of the format: each row as the difference from the one above it.
    rows = np.diff(image.reshape(height, -1), axis=0, prepend=np.zeros((1, width * channels), np.uint8))
    body = np.concatenate([np.full((height, 1), 2, np.uint8), rows], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(body.tobytes())), (b"IEND", b"")]
    chunks = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
              for kind, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def epochs_of(workload: Workload, steps: int) -> int:
    """Return how often the files are gone through for so many batches."""
    return -(-steps // (FILES // workload.batch))
