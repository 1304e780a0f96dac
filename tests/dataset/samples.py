"""Files in the formats of the data sets, small and made from a rule, so that every reader's numbers are known."""

from __future__ import annotations

import gzip
import json
import pathlib
import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

Feature = Sequence[int] | Sequence[float] | Sequence[bytes]


def write_idx(path: pathlib.Path, values: np.ndarray, dtype: str = "u1") -> None:
    """Write bytes, or int32 as ">i4", as an IDX file, compressed where the name ends in .gz."""
    code = {"u1": 8, ">i4": 12}[dtype]
    data = struct.pack(f">HBB{values.ndim}I", 0, code, values.ndim, *values.shape) + values.astype(dtype).tobytes()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def mnist(folder: pathlib.Path, *, train: int = 7, test: int = 4, suffix: str = "") -> None:
    """Write the four files of MNIST with few images."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, count, start in (("train", train, 0), ("t10k", test, 100)):
        images = (np.arange(count * 784).reshape(count, 28, 28) * 7 + start) % 256
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", (np.arange(count) * 3 + start) % 10)


def emnist(folder: pathlib.Path, name: str) -> None:
    """Write the four files of one of EMNIST's data sets with few images."""
    mnist(folder)
    for path in list(folder.iterdir()):
        if not path.name.startswith("emnist"):
            path.rename(folder / f"emnist-{name}-{path.name.replace('t10k', 'test')}")


def qmnist(folder: pathlib.Path) -> None:
    """Write the six files of QMNIST with few images."""
    folder.mkdir(parents=True, exist_ok=True)
    for start, (prefix, count) in enumerate({"qmnist-train": 3, "qmnist-test": 4, "xnist": 2}.items()):
        write_idx(folder / f"{prefix}-images-idx3-ubyte", (np.arange(count * 784).reshape(count, 28, 28) + start) % 256)
        write_idx(folder / f"{prefix}-labels-idx2-int", np.arange(count * 8).reshape(count, 8) * 300 + start, ">i4")


def text_files(folder: pathlib.Path) -> None:
    """Write three files of lines, and three of CSV, of which two have a line of names."""
    folder.mkdir(parents=True)
    for name, contents in {
        "a.txt": "a 0\n\n  a 1 \r\na \u00e9", "b.txt": "b 0\n", "c.txt": "c 0\nc 1\nc 2\n",
        "a.csv": "i,f,s\n1,2.5,cat\n3,.5e1,\"do,\"\"g\n\"\n", "b.csv": "i,f,s\n\r\n5, 6,\r\n",
        "plain": "1.5\t+2x\tcat\n-3\t\"4\"\td,g\n",
    }.items():
        (folder / name).write_bytes(contents.encode())


def cifar10(folder: pathlib.Path, *, rows: int = 3, batches: int = 5) -> None:
    """Write the binary batches of CIFAR-10 with few rows each."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data_batch_{index + 1}.bin" for index in range(batches)] + ["test_batch.bin"]
    for index, name in enumerate(names):
        (folder / name).write_bytes(_cifar_rows(index, rows, labels=1).tobytes())


def cifar100(folder: pathlib.Path, *, train: int = 5, test: int = 3) -> None:
    """Write the two binary files of CIFAR-100 with few rows."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.bin").write_bytes(_cifar_rows(0, train, labels=2).tobytes())
    (folder / "test.bin").write_bytes(_cifar_rows(1, test, labels=2).tobytes())


def _cifar_rows(index: int, rows: int, *, labels: int) -> np.ndarray:
    numbers = np.arange(rows * 3072).reshape(rows, 3072) * 5 + 11 * index
    classes = [(np.arange(rows) * (7 + column) + index) % 10 + 10 * column for column in range(labels)]
    return np.concatenate([np.stack(classes, axis=1), numbers], axis=1).astype(np.uint8)


def png(image: np.ndarray) -> bytes:
    """Return the bytes of a PNG file of an image (height, width, 3) or (height, width)."""
    kind = 2 if image.ndim == 3 else 0
    lines = b"".join(b"\0" + line.astype(np.uint8).tobytes() for line in image)
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def picture(number: int, height: int = 4, width: int = 5) -> np.ndarray:
    """Return the picture of a number, (height, width, 3)."""
    return ((np.arange(height * width * 3) * 3 + 40 * number) % 256).reshape(height, width, 3).astype(np.uint8)


def image_folder(folder: pathlib.Path, names: Mapping[str, Sequence[str]]) -> None:
    """Write one folder of PNG images per class."""
    number = 0
    for name, files in names.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_bytes(png(picture(number, 4 + number % 2)))
            number += 1


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _feature(values: Feature) -> bytes:
    if isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, value) for value in values))
    if isinstance(values[0], float):
        return _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
    return _field(3, _field(1, b"".join(_varint(value) for value in values)))


def tfrecord(path: pathlib.Path, rows: Sequence[Mapping[str, Feature]], *, compression: str = "") -> None:
    """Write examples as a TFRecord file; `compression` is as TFRecordDataset's."""
    data = b""
    for row in rows:
        entries = (_field(1, _field(1, name.encode()) + _field(2, _feature(values))) for name, values in row.items())
        body = _field(1, b"".join(entries))
        length = struct.pack("<Q", len(body))
        data += length + struct.pack("<I", _masked_crc(length)) + body + struct.pack("<I", _masked_crc(body))
    if compression == "GZIP":
        data = gzip.compress(data, mtime=0)
    elif compression == "ZLIB":
        data = zlib.compress(data)
    path.write_bytes(data)


def fill(folder: pathlib.Path, *, rows: int) -> None:
    """Write every kind of file below a folder; `rows` is the number of rows in a file of CIFAR."""
    mnist(folder / "mnist")
    emnist(folder / "emnist", "letters")
    qmnist(folder / "qmnist")
    text_files(folder / "text")
    cifar10(folder / "cifar10", rows=rows)
    cifar100(folder / "cifar100", train=rows, test=rows)
    image_folder(folder / "images", {"dog": ["b.png", "a.png", "10.png", "2.png"], "cat": ["1.png", "x.PNG"],
                                     "bird": ["one.png"]})
    (folder / "images" / "top.png").write_bytes(png(picture(3)))
    (folder / "images" / "cat" / "grey.png").write_bytes(png(picture(1)[:, :, 0]))
    records = folder / "records"
    records.mkdir()
    for name, count, start in (("a", 5, 0), ("b", 3, 100), ("c", 4, 200)):
        tfrecord(records / f"{name}.tfrecord", _examples(count, start))
    for compression in ("GZIP", "ZLIB"):
        tfrecord(records / f"a.{compression}", _examples(4, 0), compression=compression)
    tfrecord(records / "bytes", [{"b": [b"a", b"bc"]}, {"b": [b"a", b"bc", b"d"]}])
    columns = {"i": {"type": "int64", "rank": 1, "shape": [1]}, "f": {"type": "float32", "rank": 1}}
    (records / "schema.json").write_text(json.dumps({"datasetType": "TF", "numRows": 3, "columns": columns}))


def _examples(count: int, start: int) -> list[dict[str, Feature]]:
    return [{"i": [k + start], "f": [k / 2, 1.0], "b": [b"ab" * (k + 1)]} for k in range(count)]
