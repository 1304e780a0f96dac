"""The in-memory batches of a round, as a `tf.data` pipeline."""

from __future__ import annotations

import tensorflow as tf

from benchmarks.workloads import Workload, arrays


def batches(workload: Workload, steps: int, *, channels_first: bool = False) -> tf.data.Dataset:
    """Return a dataset of `steps` batches."""
    return tf.data.Dataset.from_tensor_slices(arrays(workload, steps, channels_first=channels_first)).prefetch(8)
