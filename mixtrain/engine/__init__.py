"""The seam: what mixtrain asks of the array library under Keras, and the choice of the engine that answers.

Every name below means the same on every engine; the files of an engine carry the same names. Floors above speak
`keras.ops`, `keras.Variable` and this seam, nothing else.
"""

from __future__ import annotations

from mixtrain.engine.backend import check_asked_backend, check_backend
from mixtrain.engine.quiet import without_startup_notes

check_asked_backend()
with without_startup_notes():
    import keras
check_backend(keras.backend.backend())

from mixtrain.engine.facts import DeviceFacts, JitChoice
from mixtrain.engine.tensorflow.compile import (
    choose_jit,
    compile_function,
    compile_loop,
    is_tracing,
    trace_count,
)
from mixtrain.engine.tensorflow.control import cond
from mixtrain.engine.tensorflow.cross_entropy import (
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from mixtrain.engine.tensorflow.device import describe_device
from mixtrain.engine.tensorflow.gradient import all_finite, map_values, value_and_gradient
from mixtrain.engine.tensorflow.layout import (
    cast_keeping_layout,
    elementwise,
    from_channels_last,
    to_channels_last,
    twin_of,
)
from mixtrain.engine.tensorflow.normalise import fused_batch_norm
from mixtrain.engine.tensorflow.stream import (
    EndOfStream,
    Pipeline,
    is_pipeline_source,
    pipeline_from_arrays,
    pipeline_from_batches,
    pipeline_from_rows,
    wrap_pipeline,
)
from mixtrain.engine.tensorflow.tensor import (
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
