"""Check the number of columns of a batch, and select the network's inputs."""

from __future__ import annotations

import inspect
import warnings

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.network.keras_own import keras_owns
from mixtrain.step.own_loss import computes_loss, inputs_of
from mixtrain.train.feed import Feed
from mixtrain.train.networks import Networks
from mixtrain.typing import Batch, DatasetLike, LossFn, Network, Tree


def check_columns(where: str, networks: Networks, feed: Feed, *, training: bool, in_keras_style: bool = False) -> None:
    """Check how many columns a batch has, and that labels are numbers; warn of rows that are no batches.

    A batch for evaluation needs no sample weights. `in_keras_style`: a third column is sample weights even without
    `sample_weight` in the Model.
    """
    batch = feed.example()
    columns = len(batch)
    if networks.own_loss:
        _check_columns_of_own_loss(where, columns, networks.network)
    elif networks.loss_fn is not None:
        if columns == 1 and computes_loss(networks.network):
            return  # Its `compute_loss` makes labels of its own.
        if columns == 1 and isinstance(batch[0], dict):
            raise _no_label(where, batch[0])
        if columns == 1 and _is_arrays(feed.dataset):
            raise checks.fail_value(
                where, "with a loss_fn a batch must have 2 columns, data and label; an array is not batches", columns,
                "model.fit(x, y), model.evaluate(x, y), or [(x, y)] for one batch of all rows",
            )
        weighted = networks.sample_weight or in_keras_style and columns == 3
        _check_columns_of_loss(where, columns, weighted=weighted, training=training)
        if not _is_users_function(networks.loss_fn):
            _check_labels_are_numbers(batch)
        _warn_of_rows(where, feed, batch)


def network_inputs(networks: Networks, batch: Batch, *, training: bool) -> Batch:
    """Return the columns of a batch that are the network's inputs; all to train a Cell that returns its own loss."""
    if networks.own_loss:
        return tuple(inputs_of(networks.network, batch))
    return batch if training and networks.loss_fn is None else batch[:1]


def _is_arrays(dataset: DatasetLike) -> bool:
    """Whether a dataset is an array, or some arrays, as Keras's `fit` takes them."""
    parts = dataset if isinstance(dataset, (list, tuple)) else [dataset]
    return all(isinstance(part, np.ndarray) or backend.is_tensor(part) for part in parts)


def _is_users_function(loss_fn: LossFn) -> bool:
    """Whether a loss is a function of the user's, which may look up text."""
    return inspect.isfunction(loss_fn) and not keras_owns(loss_fn) and not loss_fn.__module__.startswith("mixtrain.")


def _check_labels_are_numbers(batch: Batch) -> None:
    for index, column in enumerate(batch[1:], start=1):
        for part in keras.tree.flatten(column):
            dtype = getattr(part, "dtype", None)
            if getattr(dtype, "name", "") == "string" or getattr(dtype, "kind", "number") in ("U", "S"):
                raise backend.text_for_numbers("text").of(f"column {index}")


def _warn_of_rows(where: str, feed: Feed, batch: Batch) -> None:
    """Warn of a dataset whose elements seem to be single rows: data and label differ in their first dimension.

    Graphs and flattened labels differ too; so where the label has several values, the dataset must know that nothing
    batched its rows.
    """
    data, label = (getattr(column, "shape", None) for column in batch[:2])
    if data is None or label is None or len(label) and (not len(data) or label[0] in tuple(data)):
        return
    counted = getattr(feed.dataset, "get_batch_size", None)
    scalar = not len(label) or (len(data), tuple(label)) == (1, (1,))
    if scalar or counted is not None and counted() == 1:
        warnings.warn(
            f"{where}: expected batches, whose columns have as many rows as each other; got columns of shapes "
            f"{tuple(data)} and {tuple(label)}, which look like one row each. Write dataset.batch(32).",
            stacklevel=4,
        )


def _no_label(where: str, inputs: dict[str, Tree]) -> ValueError:
    """Return the error for a batch that is a dict where a label is needed too."""
    names = list(inputs)
    return checks.fail_value(
        where, "with a loss_fn a batch must be (inputs, label), and a dict is the inputs of a Keras network by name",
        inputs, f"dataset.map(lambda row: (row[{names[0]!r}], row[{names[-1]!r}])), or batches ({{...}}, label)",
    )


def _check_columns_of_loss(where: str, columns: int, *, weighted: bool, training: bool) -> None:
    """Expect data, label and, with `weighted`, sample weights."""
    if columns == 2 and not (weighted and training) or columns == 3 and weighted:
        return
    if weighted:
        raise checks.fail_value(
            where, "with sample_weight=True a batch must have 3 columns, data, label and sample_weight",
            columns, "a dataset with that third column, or sample_weight=False",
        )
    advice = "Model(..., sample_weight=True) if the third column is a sample_weight, " if columns == 3 else ""
    raise checks.fail_value(
        where, "with a loss_fn a batch must have 2 columns, data and label", columns,
        f"{advice}dataset.project([data, label]), or a network that returns its own loss",
    )


def _check_columns_of_own_loss(where: str, columns: int, network: Network) -> None:
    """Expect at most data, label and weights for a network of one input; any number for several inputs."""
    if columns > 3 and len(inputs_of(network, range(columns))) == 1:
        raise checks.fail_value(
            where, "a batch of a Keras network without a loss_fn must have 1 to 3 columns: data, label, sample_weight",
            columns, "dataset.project([data, label])",
        )
