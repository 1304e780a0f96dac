"""The seam: what mixtrain asks of the array library under Keras, and the choice of the engine that answers.

Every name below means the same on every engine; the files of an engine carry the same names. Floors above speak
`keras.ops`, `keras.Variable` and this seam, nothing else.
"""

from __future__ import annotations

import os

# TensorFlow prints start-up notes unless told otherwise before it is first imported; a user's own setting wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402

from mixtrain.errors import UnsupportedBackendError  # noqa: E402

if keras.backend.backend() != "tensorflow":
    raise UnsupportedBackendError(
        f'mixtrain: the Keras backend must be "tensorflow"; got "{keras.backend.backend()}". '
        "Set the environment variable KERAS_BACKEND=tensorflow before Python starts."
    )

from mixtrain.engine.facts import DeviceFacts, JitChoice  # noqa: E402
from mixtrain.engine.tensorflow.compile import (  # noqa: E402
    choose_jit,
    compile_function,
    compile_loop,
    is_tracing,
    trace_count,
)
from mixtrain.engine.tensorflow.control import cond  # noqa: E402
from mixtrain.engine.tensorflow.cross_entropy import (  # noqa: E402
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from mixtrain.engine.tensorflow.device import describe_device  # noqa: E402
from mixtrain.engine.tensorflow.gradient import all_finite, map_values, value_and_gradient  # noqa: E402
from mixtrain.engine.tensorflow.layout import (  # noqa: E402
    cast_keeping_layout,
    elementwise,
    from_channels_last,
    to_channels_last,
    twin_of,
)
from mixtrain.engine.tensorflow.normalise import fused_batch_norm  # noqa: E402
from mixtrain.engine.tensorflow.stream import (  # noqa: E402
    EndOfStream,
    Pipeline,
    is_pipeline_source,
    pipeline_from_arrays,
    pipeline_from_batches,
    pipeline_from_rows,
    wrap_pipeline,
)
from mixtrain.engine.tensorflow.tensor import (  # noqa: E402
    TENSOR_TYPES,
    is_tensor,
    name_scope,
    promoting,
    snapshot,
    to_numpy,
    to_tensor,
)

__all__ = [
    "TENSOR_TYPES",
    "DeviceFacts",
    "EndOfStream",
    "JitChoice",
    "Pipeline",
    "all_finite",
    "cast_keeping_layout",
    "choose_jit",
    "compile_function",
    "compile_loop",
    "cond",
    "describe_device",
    "elementwise",
    "from_channels_last",
    "fused_batch_norm",
    "is_pipeline_source",
    "is_tensor",
    "is_tracing",
    "map_values",
    "name_scope",
    "pipeline_from_arrays",
    "pipeline_from_batches",
    "pipeline_from_rows",
    "promoting",
    "snapshot",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
    "to_channels_last",
    "to_numpy",
    "to_tensor",
    "trace_count",
    "twin_of",
    "value_and_gradient",
    "wrap_pipeline",
]
