"""`DatasetHelper`: the batches of a dataset in a loop of a script's own, epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.dataset as ds
from mixtrain.train import DatasetHelper, connect_network_with_dataset


def _rows() -> Any:
    return ds.NumpySlicesDataset({"x": np.arange(5), "y": np.arange(5) * 2}, shuffle=False).batch(2)


def test_each_loop_reads_an_epoch_of_as_many_as_there_are() -> None:
    helper = mixtrain.DatasetHelper(_rows(), dataset_sink_mode=False, epoch_num=2)
    for _ in range(2):
        batches = [*helper]
        assert [type(batch) for batch in batches] == [list] * 3 and isinstance(batches[0][0], mixtrain.Tensor)
        assert [y.asnumpy().tolist() for _, y in batches] == [[0, 2], [4, 6], [8]]
    with pytest.raises(RuntimeError, match="expected at most 2 epochs"):
        next(iter(helper))
    endless = DatasetHelper(_rows(), False, sink_size=2, epoch_num=-1)
    assert [len([*endless]) for _ in range(3)] == [3, 3, 3]
    assert not hasattr(helper, "stop_send")  # As in MindSpore, where only sink mode has it.


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ((_rows(), True), RuntimeError, "Write dataset_sink_mode=False"),
    ((_rows(), 0), TypeError, "dataset_sink_mode must be True or False"),
    ((_rows(), False, 0), ValueError, "sink_size must be at least 1"),
    ((_rows(), False, -1, 0), ValueError, "num_epochs must be at least 1"),
    (([1, 2], False), TypeError, "dataset must be a dataset"),
])
def test_what_does_not_fit_is_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DatasetHelper(*arguments)


def test_a_network_takes_no_batches_from_the_device() -> None:
    with pytest.raises(RuntimeError, match="it is for sink mode"):
        connect_network_with_dataset(mixtrain.nn.Dense(1, 1), DatasetHelper(_rows(), dataset_sink_mode=False))
