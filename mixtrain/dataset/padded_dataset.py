"""PaddedDataset: rows that pad another dataset, so that its shards have equal size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dataset.columns import read_names
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.samplers import SequentialSampler
from mixtrain.dataset.source import IndexedSource

_WHERE = "PaddedDataset"


class PaddedDataset(Dataset):
    """The given rows, in order. `padded_samples`: one dict per row, from column name to value; all with the same names.

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset import DistributedSampler, NumpySlicesDataset
        >>> five = NumpySlicesDataset(np.arange(5), "x", shuffle=False)
        >>> six = five.concat(PaddedDataset([{"x": np.array(-1)}]))
        >>> six.use_sampler(DistributedSampler(2, 1, shuffle=False))
        >>> [x.tolist() for x, in six.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [1, 3, -1]
    """

    def __init__(self, padded_samples: Sequence[dict[str, Any]]) -> None:
        write = 'PaddedDataset([{"x": np.zeros(1)}])'
        checks.instance(_WHERE, "padded_samples", padded_samples, list, write)
        if not padded_samples:
            raise checks.fail_value(_WHERE, "padded_samples must have a row", padded_samples, write)
        for row in padded_samples:
            checks.instance(_WHERE, "each of padded_samples", row, dict, write)
            if row.keys() != padded_samples[0].keys():
                columns = checks.join_names(padded_samples[0])
                got = checks.join_names(row)
                raise checks.fail_value(_WHERE, f"each row must have the columns {columns}", got, write)
        names = read_names(_WHERE, "the keys of padded_samples", list(padded_samples[0]))
        rows = [tuple(row[name] for name in names) for row in padded_samples]
        super().__init__(IndexedSource(_WHERE, rows, names, SequentialSampler()))
        self.padded_samples = padded_samples
