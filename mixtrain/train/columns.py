"""Check the number of columns of a batch, and select the network's inputs."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.step.own_loss import inputs_of
from mixtrain.train.networks import Networks
from mixtrain.typing import Batch, Network, Tree


def check_columns(
    where: str, networks: Networks, batch: Batch, *, training: bool, in_keras_style: bool = False
) -> None:
    """Check how many columns a batch has.

    Args:
        where: The caller, for errors.
        networks: The networks that take them.
        batch: The batch.
        training: Whether the batch is for training; one for evaluation needs no sample weights.
        in_keras_style: Whether a third column is sample weights even without `sample_weight` in the Model.

    Raises:
        ValueError: Too few or too many for the loss.
    """
    columns = len(batch)
    if networks.own_loss:
        _check_columns_of_own_loss(where, columns, networks.network)
    elif networks.loss_fn is not None:
        if columns == 1 and isinstance(batch[0], dict):
            raise _no_label(where, batch[0])
        weighted = networks.sample_weight or in_keras_style and columns == 3
        _check_columns_of_loss(where, columns, weighted=weighted, training=training)


def network_inputs(networks: Networks, batch: Batch, *, training: bool) -> Batch:
    """Return the columns of a batch that are the network's inputs; all to train a Cell that returns its own loss."""
    if networks.own_loss:
        return tuple(inputs_of(networks.network, batch))
    return batch if training and networks.loss_fn is None else batch[:1]


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
