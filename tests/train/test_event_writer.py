"""Event files: TensorFlow reads them, checksums and all; without TensorBoard there is an error that says so."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain.compat.mindspore.train.summary_events import SummaryEvents

pytestmark = pytest.mark.tensorflow
tf = pytest.importorskip("tensorflow")


def _events(path: str) -> list[Any]:
    return [tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path)]


def test_every_kind_of_value_is_read_back(tmp_path: pathlib.Path) -> None:
    writer = SummaryEvents(str(tmp_path / "new"), ".end")
    pictures = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3)
    writer.scalar("loss", 0.5, 300)
    writer.tensor("weights", np.array([[1, 2], [3, 4]], np.int64), 0)
    writer.image("pictures", pictures, 1)
    writer.histogram("spread", np.arange(60.0), 2)
    writer.text("note", "of text", 3)
    writer.close()
    assert writer.path.endswith(".end") and pathlib.Path(writer.path).parent == tmp_path / "new"
    head, *events = _events(writer.path)
    assert head.file_version == "brain.Event:2"
    values = [event.summary.value[0] for event in events]
    assert [event.step for event in events] == [300, 0, 1, 2, 3]
    assert [value.tag for value in values] == ["loss", "weights", "pictures", "spread", "note"]
    assert [value.metadata.plugin_data.plugin_name for value in values] == [
        "scalars", "tensor", "images", "histograms", "text"
    ]
    loss, weights, images, spread, note = (tf.make_ndarray(value.tensor) for value in values)
    assert (loss.dtype, loss.item()) == (np.float32, 0.5)
    assert (weights.dtype, weights.tolist()) == (np.int64, [[1, 2], [3, 4]])
    assert images[:2].tolist() == [b"5", b"3"]
    for encoded, picture in zip(images[2:], pictures, strict=True):
        np.testing.assert_array_equal(tf.io.decode_png(encoded), picture)
    assert spread.shape == (30, 3) and spread[:, 2].sum() == 60
    assert note.tolist() == [b"of text"]


def test_bfloat16_is_written_as_float32(tmp_path: pathlib.Path) -> None:
    writer = SummaryEvents(str(tmp_path))
    writer.tensor("x", tf.constant([1.5, 2.5], tf.bfloat16).numpy(), 1)
    writer.close()
    _, event = _events(writer.path)
    assert tf.make_ndarray(event.summary.value[0].tensor).tolist() == [1.5, 2.5]


def test_without_tensorboard_the_error_says_what_to_install(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with pytest.raises(ImportError, match=r'SummaryRecord: .* Write pip install "mixtrain\[summary\]"'):
        with mixtrain.SummaryRecord(str(tmp_path)):
            pass
