"""`DatasetHelper`: the batches of a dataset for a loop of a script's own."""

from __future__ import annotations

from typing import Any, NoReturn

from mixtrain import checks
from mixtrain.dataset.iterators import DatasetIterator
from mixtrain.lazy_names import serve_names

__all__ = ["DatasetHelper", "connect_network_with_dataset"]


class DatasetHelper:
    """The batches of a dataset, each a list of tensors; each ``for`` loop reads one epoch of at most `epoch_num`.

    As in MindSpore on a CPU it has no sink mode, nor methods of it; `data_sink` and `Model.train` have one.

    Args:
        dataset: A dataset of mixtrain, or anything with `create_tuple_iterator`.
        dataset_sink_mode: False.
        sink_size: Accepted for MindSpore scripts: -1, or at least 1.
        epoch_num: Number of epochs, -1 for any.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `sink_size` or `epoch_num` is neither -1 nor at least 1.
        RuntimeError: `dataset_sink_mode` is True; or, of a loop, there were `epoch_num` before it.

    Example:
        >>> import mixtrain
        >>> rows = mixtrain.dataset.NumpySlicesDataset({"x": [1, 2, 3]}, shuffle=False).batch(2)
        >>> [x.asnumpy().tolist() for x, in mixtrain.DatasetHelper(rows, dataset_sink_mode=False)]
        [[1, 2], [3]]
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        where = type(self).__name__
        if sink_size != -1:
            checks.integer(where, "sink_size", sink_size, at_least=1)
        if not hasattr(dataset, "create_tuple_iterator"):
            raise checks.fail_type(where, "dataset must be a dataset", dataset, "NumpySlicesDataset(...).batch(32)")
        if checks.boolean(where, "dataset_sink_mode", dataset_sink_mode):
            raise RuntimeError(f"{where}: there is no sink mode in a loop of your own. Write dataset_sink_mode=False, "
                               "or mixtrain.data_sink(step, dataset).")
        self.iter = dataset.create_tuple_iterator(num_epochs=epoch_num)

    def __iter__(self) -> DatasetIterator:
        return iter(self.iter)


def connect_network_with_dataset(network: Any, dataset_helper: DatasetHelper) -> NoReturn:
    """Raise a RuntimeError, as in MindSpore on a CPU: a network takes batches from the device in sink mode alone.

    `network`: The train network. `dataset_helper`: A `DatasetHelper`.

    Example: instead, ``for batch in dataset_helper: train_network(*batch)``.
    """
    raise RuntimeError("connect_network_with_dataset: it is for sink mode, which a DatasetHelper does not have here. "
                       "Write for batch in dataset_helper: network(*batch).")


serve_names(__name__)
