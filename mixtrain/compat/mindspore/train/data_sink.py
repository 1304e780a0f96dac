"""`data_sink`: a function that takes the next batches of a dataset by itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from mixtrain import checks
from mixtrain.common.jit_function import jit
from mixtrain.lazy_names import serve_names

__all__ = ["data_sink"]

_WHERE = "data_sink"


def data_sink(
    fn: Callable[..., Any], dataset: Any, sink_size: int = 1, jit_config: Any = None, input_signature: Any = None
) -> Callable[[], Any]:
    """Return a function that runs `fn` on the next `sink_size` batches, and returns what the last of them gave.

    After the last batch comes the first again, of a new pass over the dataset. In loops of a script's own this stands
    for sink feed; `Model.train(..., dataset_sink_mode=True)` keeps the data on the device.

    Args:
        fn: Takes the columns of a batch, as tensors.
        dataset: A dataset of mixtrain, or anything with `create_tuple_iterator`.
        sink_size: Number of batches in a call.
        jit_config: A `JitConfig` with which `fn` is compiled; None to call it as it is.
        input_signature: Accepted for MindSpore scripts.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `sink_size` is under 1, or the dataset has no batch.

    Example:
        >>> import mixtrain
        >>> rows = mixtrain.dataset.NumpySlicesDataset({"x": [1, 2, 3]}, shuffle=False)
        >>> step = mixtrain.data_sink(lambda x: x + 10, rows, sink_size=2)
        >>> [int(step()) for _ in range(3)]
        [12, 11, 13]
    """
    checks.integer(_WHERE, "sink_size", sink_size, at_least=1)
    if not callable(fn) or not hasattr(dataset, "create_tuple_iterator"):
        wrong, name = (dataset, "dataset must be a dataset") if callable(fn) else (fn, "fn must be a function")
        raise checks.fail_type(_WHERE, name, wrong, "data_sink(train_step, dataset)")
    run = fn if jit_config is None else jit(fn, jit_config=jit_config)
    batches = _endless(dataset)

    @functools.wraps(fn)
    def sink_process() -> Any:
        for _ in range(sink_size):
            outputs = run(*next(batches))
        return outputs

    return sink_process


def _endless(dataset: Any) -> Iterator[Any]:
    while True:
        batch = None
        for batch in dataset.create_tuple_iterator():
            yield batch
        if batch is None:
            raise checks.fail_value(_WHERE, "dataset must have batches", "none", "a dataset with rows")


serve_names(__name__)
