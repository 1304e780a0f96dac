"""The data backend interface: streams, functions of rows and images, by the array library that Keras runs on.

Every name below means what `mixtrain/data_backend/interface/` documents; the backends have the same file names.
`mixtrain.dataset` and `mixtrain.train`, which feeds steps, use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

from mixtrain.data_backend import colors, warp
from mixtrain.data_backend.example_columns import ExampleColumn, UnreadableRecord
from mixtrain.data_backend.row_part import RowPart, error_subject

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from mixtrain.data_backend.tensorflow import images, row_random
    from mixtrain.data_backend.tensorflow.records import Examples, first_example
    from mixtrain.data_backend.tensorflow.requirements import require
    from mixtrain.data_backend.tensorflow.row_function import RowFunction, call_row
    from mixtrain.data_backend.tensorflow.stream import (
        EndOfStream, Pipeline, is_pipeline_source, pipeline_from_arrays, pipeline_from_rows, wrap_pipeline,
    )
else:
    from mixtrain.data_backend.jax import images, row_random
    from mixtrain.data_backend.jax.records import Examples, first_example
    from mixtrain.data_backend.jax.requirements import require
    from mixtrain.data_backend.jax.row_function import RowFunction, call_row
    from mixtrain.data_backend.jax.stream import (
        EndOfStream, Pipeline, is_pipeline_source, pipeline_from_arrays, pipeline_from_rows, wrap_pipeline,
    )

__all__ = [
    "EndOfStream", "ExampleColumn", "Examples", "Pipeline", "RowFunction", "RowPart", "UnreadableRecord", "call_row",
    "colors", "error_subject", "first_example", "images", "is_pipeline_source", "pipeline_from_arrays",
    "pipeline_from_rows", "require", "row_random", "warp", "wrap_pipeline",
]
