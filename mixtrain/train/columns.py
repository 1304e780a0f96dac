"""How many columns a batch must have: what a loss function takes, or a Keras network that brings its own loss."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.step.own_loss import inputs_of


def check_columns_of_loss(where: str, columns: int, *, weighted: bool, training: bool) -> None:
    """Check how many columns a batch has, where there is a loss function to give them to.

    Args:
        where: Who asks, for errors.
        columns: How many there are.
        weighted: Whether the third column weighs the samples.
        training: Whether the batch is trained on; an evaluation may leave the weights out.

    Raises:
        ValueError: Not two, or with weights not three.
    """
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


def check_columns_of_own_loss(where: str, columns: int, network: Any) -> None:
    """Check how many columns a batch has, where a Keras network brings its loss itself.

    Args:
        where: Who asks, for errors.
        columns: How many there are.
        network: A Keras layer or model; one that takes several tensors takes any number of columns.

    Raises:
        ValueError: More than data, label and sample weights.
    """
    if columns > 3 and len(inputs_of(network, range(columns))) == 1:
        raise checks.fail_value(
            where, "a batch of a Keras network without a loss_fn must have 1 to 3 columns: data, label, sample_weight",
            columns, "dataset.project([data, label])",
        )
