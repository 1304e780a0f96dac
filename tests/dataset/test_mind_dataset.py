"""FileWriter, Dataset.save and MindDataset: rows, columns and dtypes are those of MindSpore 2.10."""

from __future__ import annotations

import os
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

from mixtrain.dataset import MindDataset, NumpySlicesDataset
from mixtrain.dataset.vision import Decode
from mixtrain.mindrecord import Cifar10ToMR, FileWriter

SCHEMA = {
    "s": {"type": "string"}, "i": {"type": "int32"}, "b": {"type": "bytes"},
    "f": {"type": "float32", "shape": [-1]}, "g": {"type": "float64", "shape": [2, 2]},
}


def written(path: pathlib.Path, numbers: range, files: int = 1) -> str:
    """Write rows that hold numbers, and return the first file's path."""
    writer = FileWriter(str(path), files, overwrite=True)
    writer.add_schema({"i": {"type": "int32"}})
    writer.write_raw_data([{"i": number} for number in numbers])
    writer.commit()
    return str(path) + ("0" if files > 1 else "")


def numbers_of(dataset: Any) -> list[int]:
    """Return the column of a dataset that has one."""
    return [int(number) for number, in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_columns_come_by_name_with_their_types(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "rows.mindrecord")
    writer = FileWriter(path, 1, True)
    writer.add_schema(SCHEMA, "rows")
    writer.add_index(["s", "i"])
    writer.write_raw_data([
        {"s": f"é{k}", "i": k, "b": b"xyz", "f": np.ones(k + 1, np.float32), "g": np.eye(2)} for k in range(3)
    ])
    writer.commit()
    rows = list(MindDataset(path, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [list(row) for row in rows] == [["b", "f", "g", "i", "s"]] * 3
    last = rows[2]
    assert last["b"].tolist() == [120, 121, 122] and last["f"].tolist() == [1, 1, 1] and str(last["s"]) == "é2"
    assert last["i"].dtype == np.int32 and last["i"].shape == () and last["g"].dtype == np.float64
    assert [len(row) for row in MindDataset(path, ["f", "i"]).create_tuple_iterator(num_epochs=1)] == [2, 2, 2]


def test_rows_are_divided_over_files_and_appended(tmp_path: pathlib.Path) -> None:
    first = written(tmp_path / "rows", range(5), files=2)
    assert numbers_of(MindDataset(first, shuffle=False)) == [0, 1, 2, 3, 4]
    assert numbers_of(MindDataset([str(tmp_path / "rows1")], shuffle=False)) == [2, 3, 4]
    writer = FileWriter.open_for_append(first)
    writer.write_raw_data([{"i": 5}, {"i": 6}, {"i": 7}])
    writer.commit()
    assert numbers_of(MindDataset(first, shuffle=False)) == [0, 1, 5, 2, 3, 4, 6, 7]


def test_shards_padding_and_order(tmp_path: pathlib.Path) -> None:
    path = written(tmp_path / "rows", range(5))
    padded = MindDataset(
        path, num_padded=1, padded_sample={"i": np.int32(-1)}, num_shards=2, shard_id=1, shuffle=False
    )
    assert numbers_of(padded) == [1, 3, -1]
    assert numbers_of(MindDataset(path, shuffle=False, num_samples=2)) == [0, 1]
    mixed = MindDataset(path)
    assert sorted(numbers_of(mixed)) == [0, 1, 2, 3, 4] and mixed.get_dataset_size() == 5


def test_save_widens_small_numbers(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "saved")
    columns = {
        "image": np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "label": np.arange(2, dtype=np.uint32),
        "x": np.ones(2, np.float16), "name": np.array(["a", "b"]),
    }
    NumpySlicesDataset(columns, shuffle=False).save(path, num_files=2)
    row = next(MindDataset(path + "1", shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert row["image"].tolist() == [[0, 1, 2], [3, 4, 5]] and str(row["name"]) == "a"
    assert [row[name].dtype.name for name in ("image", "label", "x")] == ["int32", "int64", "float32"]


def test_pictures_decode(tmp_path: pathlib.Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (4, 6), (255, 255, 255)).save(tmp_path / "white.jpg")
    writer = FileWriter(str(tmp_path / "rows"))
    writer.add_schema({"data": {"type": "bytes"}})
    writer.write_raw_data([{"data": (tmp_path / "white.jpg").read_bytes()}])
    writer.commit()
    dataset = MindDataset(str(tmp_path / "rows")).map(Decode(), "data")
    (pixels,) = next(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert pixels.shape == (6, 4, 3) and pixels.min() == 255


def test_what_is_wrong_is_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "rows"
    written(path, range(2))
    with pytest.raises(ValueError, match="FileWriter: file_name must be the name of a new file; .*overwrite=True"):
        FileWriter(str(path))
    with pytest.raises(ValueError, match="columns_list"):
        MindDataset(str(path), ["j"])
    with pytest.raises(ValueError, match="add_schema must come before rows"):
        FileWriter(str(tmp_path / "other")).commit()
    writer = FileWriter(str(tmp_path / "other"))
    with pytest.raises(ValueError, match="the type of 'x'"):
        writer.add_schema({"x": {"type": "int33"}})
    writer.add_schema({"x": {"type": "int32"}})
    with pytest.raises(ValueError, match="the schema's columns"):
        writer.write_raw_data([{"y": 1}])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="MindDataset: expected rows .* one of the two is cut off"):
        MindDataset(str(path))
    path.write_bytes(b"MindRecord of another program")
    with pytest.raises(ValueError, match="MindRecord files of MindSpore are not read"):
        MindDataset(str(path))


class _Runs:
    """Would run a command where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("true",)


def _write_cifar10(folder: pathlib.Path, **entries: Any) -> np.ndarray:
    """Write CIFAR-10's files for Python with two pictures each; return the pictures of the first."""
    pictures = np.random.default_rng(0).integers(0, 256, (2, 3072), dtype=np.uint8)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        batch = {b"data": pictures, b"labels": [3, 7], **{key.encode(): value for key, value in entries.items()}}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    return pictures


def test_pictures_of_cifar10_become_rows(tmp_path: pathlib.Path) -> None:
    _write_cifar10(tmp_path)
    path = str(tmp_path / "cifar10.mindrecord")
    Cifar10ToMR(str(tmp_path), path).transform()
    rows = list(MindDataset(path, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [int(row["label"]) for row in rows] == [3, 7] * 5
    assert bytes(rows[0]["data"][:3]) == b"\xff\xd8\xff"  # A JPEG file.


def test_a_file_of_cifar10_that_names_a_function_is_refused_and_not_run(tmp_path: pathlib.Path) -> None:
    _write_cifar10(tmp_path, extra=_Runs())
    with pytest.raises(ValueError, match="expected a batch of CIFAR-10.*; got the name posix.system"):
        Cifar10ToMR(str(tmp_path), str(tmp_path / "cifar10.mindrecord")).transform()
