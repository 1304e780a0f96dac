"""SummaryRecord: what it writes, read back from the event file, and what summary operations put aside for it."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain import Tensor
from mixtrain.train import SummaryCollector, SummaryRecord
from tests.train.events import events, numbers, pixels


def test_values_are_written_at_their_step_and_only_once(tmp_path: pathlib.Path) -> None:
    with SummaryRecord(str(tmp_path / "new")) as summary:
        assert summary.log_dir.endswith("_MS") and os.path.exists(summary.log_dir)
        summary.add_value("scalar", "loss", Tensor(0.25))
        summary.add_value("scalar", "loss", Tensor([0.5]))
        assert summary.record(1) and summary.record(2)
        summary.add_value("scalar", "loss", Tensor(0.75))
        assert summary.record(3)
    assert numbers(tmp_path / "new", "loss") == {1: 0.5, 3: 0.75}
    assert summary.record(4) is False
    with pytest.raises(ValueError, match="closed"), summary:
        raise AssertionError("not reached")


def test_tensors_histograms_and_images_come_back(tmp_path: pathlib.Path) -> None:
    images = np.arange(2 * 3 * 2 * 4, dtype=np.float32).reshape(2, 3, 2, 4)
    with SummaryRecord(str(tmp_path)) as summary:
        summary.add_value("tensor", "t", Tensor([[1.0, 2.0]]))
        summary.add_value("histogram", "h", Tensor(np.array([0.0, 1.0, 1.0, 3.0])))
        summary.add_value("image", "i", Tensor(images))
        summary.record(7)
    result = {tag: (plugin, step, value) for plugin, tag, step, value in events(tmp_path)}
    assert result["t"][:2] == ("tensor", 7) and result["t"][2].tolist() == [[1.0, 2.0]]
    rows = result["h"][2]
    assert rows.shape == (30, 3) and (rows[0, 0], rows[-1, 1], rows[:, 2].sum()) == (0.0, 3.0, 4.0)
    width, height, *encoded = result["i"][2].tolist()
    assert (width, height, len(encoded)) == (b"4", b"2", 2)
    expected = (images[0].transpose(1, 2, 0) / 47 * 255).astype(np.uint8)
    np.testing.assert_array_equal(pixels(encoded[0]), expected)


def test_tensors_are_exported_as_npy_where_that_is_wanted(tmp_path: pathlib.Path) -> None:
    with SummaryRecord(str(tmp_path), export_options={"tensor_format": "npy"}) as summary:
        summary.add_value("tensor", "a/b", Tensor([1.0, 2.0]))
        summary.record(3)
    assert np.load(tmp_path / "export" / "tensor" / "a_b_3.npy").tolist() == [1.0, 2.0]


def test_a_full_file_takes_no_more(tmp_path: pathlib.Path) -> None:
    with SummaryRecord(str(tmp_path), max_file_size=1000) as summary:
        summary.add_value("tensor", "t", Tensor(np.zeros(500)))
        with pytest.warns(UserWarning, match="max_file_size"):
            assert summary.record(1)
        summary.add_value("scalar", "x", Tensor(1.0))
        assert summary.record(2) is False
    assert [tag for _, tag, _, _ in events(tmp_path)] == ["t"]


class Watched(nn.Cell):
    """A network that says what it computes inside."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 1, weight_init="ones", has_bias=False)
        self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()

    def construct(self, x: Any) -> Any:
        y = self.fc(x)
        self.scalar("mean", ops.mean(y))
        self.tensor("y", y)
        return y


def train_cell() -> nn.TrainOneStepCell:
    net = Watched()
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.0))


@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_operations_in_a_network_are_recorded_while_a_record_is_open(tmp_path: pathlib.Path, mode: int) -> None:
    mixtrain.set_context(mode=mode)
    step = train_cell()

    def run(value: float, rows: int = 1) -> None:
        step(Tensor(np.full((rows, 2), value, np.float32)), Tensor(np.ones((rows, 1), np.float32)))

    run(1.0)
    with SummaryRecord(str(tmp_path)) as summary:
        summary.record(1)
        run(2.0)
        run(3.0, rows=3)
        summary.record(2)
        summary.record(3)
        run(4.0)
        summary.set_mode("eval")
        summary.record(4)
    run(5.0)
    assert numbers(tmp_path, "mean") == {2: 6.0}
    assert [value.shape for _, tag, _, value in events(tmp_path) if tag == "y"] == [(3, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_operations_are_recorded_in_steps_that_xla_compiles(tmp_path: pathlib.Path, sink: bool) -> None:
    mixtrain.set_context(jit_level="O2")
    net = Watched()
    model = mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0))
    batches = [(np.full((2, 2), float(value), np.float32), np.ones((2, 1), np.float32)) for value in (1, 2)]
    model.train(1, batches, SummaryCollector(str(tmp_path), 1, 32, {}, False), dataset_sink_mode=sink, verbose=0)
    assert numbers(tmp_path, "mean") == ({2: 4.0} if sink else {1: 2.0, 2: 4.0})


@pytest.mark.parametrize(
    ("operation", "arguments", "kind", "says"),
    [
        (ops.ScalarSummary, ("a", [1.0]), TypeError, "value must be a Tensor"),
        (ops.ScalarSummary, (3, Tensor(1.0)), TypeError, "name must be a str"),
        (ops.ScalarSummary, ("", Tensor(1.0)), ValueError, "name must not be empty"),
        (ops.ScalarSummary, ("a", Tensor([[1.0]])), ValueError, "one element"),
        (ops.TensorSummary, ("a", Tensor(1.0)), ValueError, "at least one axis"),
        (ops.HistogramSummary, ("a", Tensor(1.0)), ValueError, "at least one axis"),
        (ops.ImageSummary, ("a", Tensor([1.0])), ValueError, r"\(N, C, H, W\)"),
    ],
)
def test_operations_refuse_what_they_cannot_record(
    operation: Any, arguments: tuple[Any, ...], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        operation()(*arguments)


@pytest.mark.parametrize(
    ("plugin", "name", "value", "kind", "says"),
    [
        ("foo", "a", Tensor(1.0), ValueError, "scalar, image, tensor, histogram"),
        ("scalar", "", Tensor(1.0), ValueError, "not empty"),
        ("scalar", "a", 1.0, TypeError, "value must be a Tensor"),
        ("scalar", "a", Tensor([1.0, 2.0]), ValueError, "one element"),
        ("image", "a", Tensor(np.ones((2, 3))), ValueError, r"\(N, C, H, W\)"),
        ("tensor", "a", Tensor(1.0), ValueError, "at least one axis"),
    ],
)
def test_values_that_do_not_fit_their_plugin_are_refused(
    tmp_path: pathlib.Path, plugin: str, name: str, value: Any, kind: type[Exception], says: str
) -> None:
    with SummaryRecord(str(tmp_path)) as summary, pytest.raises(kind, match=says):
        summary.add_value(plugin, name, value)


def test_wrong_arguments_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(TypeError, match="directory must be a str"):
        SummaryRecord(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_file_size"):
        SummaryRecord(str(tmp_path), max_file_size=0)
    with pytest.raises(ValueError, match="tensor_format"):
        SummaryRecord(str(tmp_path), export_options={"x": 1})
    with SummaryRecord(str(tmp_path)) as summary:
        with pytest.raises(TypeError, match="step must be an int"):
            summary.record(True)
        with pytest.raises(ValueError, match="train, eval"):
            summary.set_mode("foo")  # type: ignore[arg-type]
