"""The seam: what mixtrain asks of the array library under Keras, and the choice of the engine that answers.

Every name below means the same on every engine; the files of an engine carry the same names. Floors above speak
`keras.ops`, `keras.Variable` and this seam, nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixtrain.engine.backend import check_asked_backend, check_backend

check_asked_backend()

import keras

check_backend(keras.backend.backend())

from mixtrain.engine.class_labels import (
    ClassLabels,
    LabelOutOfRange,
    first_outside,
    note_class_labels,
    telling_place,
)
from mixtrain.engine.example_columns import ExampleColumn, UnreadableRecord
from mixtrain.engine.facts import DeviceFacts, GroupFacts, JitChoice
from mixtrain.engine.layout import cast_keeping_layout, elementwise, join_along, nhwc_of, reduce_axes, to_channels_last
from mixtrain.engine.tensor_base import TensorBase, backend_value, public_tensor, wrap_with

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from mixtrain.engine.tensorflow import chance, colours, images, warp
    from mixtrain.engine.tensorflow.branches import branching, call_with_branches, tensor_decided, with_branches
    from mixtrain.engine.tensorflow.compile import (
        choose_jit,
        compile_function,
        is_tracing,
        outside_graph,
        trace_count,
        trace_for,
    )
    from mixtrain.engine.tensorflow.control import call_python, cond
    from mixtrain.engine.tensorflow.cross_entropy import (
        softmax_cross_entropy,
        sparse_softmax_cross_entropy,
    )
    from mixtrain.engine.tensorflow.device import describe_device
    from mixtrain.engine.tensorflow.export import write_onnx, write_saved_model
    from mixtrain.engine.tensorflow.failure import naming_layers
    from mixtrain.engine.tensorflow.gradient import (
        all_finite,
        densified,
        global_norm,
        is_sparse,
        map_values,
        value_and_gradient,
        with_backward_hook,
    )
    from mixtrain.engine.tensorflow.gather import choose_marked, gather_in_batches, gather_places, unique_with_places
    from mixtrain.engine.tensorflow.held import HeldValue
    from mixtrain.engine.tensorflow.image_files import ImageFiles, UnreadableFile
    from mixtrain.engine.tensorflow.jit import compile_once
    from mixtrain.engine.tensorflow.normalise import fused_batch_norm, normalise_axes
    from mixtrain.engine.tensorflow.pooling import pool
    from mixtrain.engine.tensorflow.products import product, times_transposed
    from mixtrain.engine.tensorflow.records import Examples, first_example
    from mixtrain.engine.tensorflow.requirements import require, speaking_of
    from mixtrain.engine.tensorflow.row_function import RowFunction, RowPart, call_row, processors
    from mixtrain.engine.tensorflow.scan import scan
    from mixtrain.engine.tensorflow.steps import GROUPS, CompiledSteps
    from mixtrain.engine.tensorflow.storage import exchange_storage, read_storage, storage_in
    from mixtrain.engine.tensorflow.stream import (
        EndOfStream,
        Pipeline,
        is_pipeline_source,
        pipeline_from_arrays,
        pipeline_from_batches,
        pipeline_from_rows,
        wrap_pipeline,
    )
    from mixtrain.engine.tensorflow.summary import EventWriter
    from mixtrain.engine.tensorflow.tensor import (
        BACKEND_TENSORS,
        TENSOR_TYPES,
        byte_count,
        bytes_of,
        double_precision,
        from_channels_last,
        give_mask,
        held_format,
        is_open_size,
        is_symbolic,
        is_tensor,
        known_value,
        mask_of,
        name_scope,
        register_tensor,
        snapshot,
        to_numpy,
        to_tensor,
        truth,
        wait_for,
    )
    from mixtrain.engine.tensorflow.trace import as_written, has_results, traces
    from mixtrain.engine.tensorflow.variables import store
else:
    from mixtrain.engine.jax import chance, colours, images, warp
    from mixtrain.engine.jax.branches import branching, call_with_branches, tensor_decided, with_branches
    from mixtrain.engine.jax.compile import (
        choose_jit,
        compile_function,
        is_tracing,
        outside_graph,
        trace_count,
        trace_for,
    )
    from mixtrain.engine.jax.control import call_python, cond
    from mixtrain.engine.jax.cross_entropy import (
        softmax_cross_entropy,
        sparse_softmax_cross_entropy,
    )
    from mixtrain.engine.jax.device import describe_device
    from mixtrain.engine.jax.export import write_onnx, write_saved_model
    from mixtrain.engine.jax.failure import naming_layers
    from mixtrain.engine.jax.gradient import (
        all_finite,
        densified,
        global_norm,
        is_sparse,
        map_values,
        value_and_gradient,
        with_backward_hook,
    )
    from mixtrain.engine.jax.gather import choose_marked, gather_in_batches, gather_places, unique_with_places
    from mixtrain.engine.jax.held import HeldValue
    from mixtrain.engine.jax.image_files import ImageFiles, UnreadableFile
    from mixtrain.engine.jax.jit import compile_once
    from mixtrain.engine.jax.normalise import fused_batch_norm, normalise_axes
    from mixtrain.engine.jax.pooling import pool
    from mixtrain.engine.jax.products import product, times_transposed
    from mixtrain.engine.jax.records import Examples, first_example
    from mixtrain.engine.jax.requirements import require, speaking_of
    from mixtrain.engine.jax.row_function import RowFunction, RowPart, call_row, processors
    from mixtrain.engine.jax.scan import scan
    from mixtrain.engine.jax.steps import GROUPS, CompiledSteps
    from mixtrain.engine.jax.storage import exchange_storage, read_storage, storage_in
    from mixtrain.engine.jax.stream import (
        EndOfStream,
        Pipeline,
        is_pipeline_source,
        pipeline_from_arrays,
        pipeline_from_batches,
        pipeline_from_rows,
        wrap_pipeline,
    )
    from mixtrain.engine.jax.summary import EventWriter
    from mixtrain.engine.jax.tensor import (
        BACKEND_TENSORS,
        TENSOR_TYPES,
        byte_count,
        bytes_of,
        double_precision,
        from_channels_last,
        give_mask,
        held_format,
        is_open_size,
        is_symbolic,
        is_tensor,
        known_value,
        mask_of,
        name_scope,
        register_tensor,
        snapshot,
        to_numpy,
        to_tensor,
        truth,
        wait_for,
    )
    from mixtrain.engine.jax.trace import as_written, has_results, traces
    from mixtrain.engine.jax.variables import store

__all__ = [
    "GROUPS",
    "BACKEND_TENSORS",
    "TENSOR_TYPES",
    "ClassLabels",
    "CompiledSteps",
    "DeviceFacts",
    "EndOfStream",
    "EventWriter",
    "ExampleColumn",
    "Examples",
    "GroupFacts",
    "HeldValue",
    "ImageFiles",
    "JitChoice",
    "LabelOutOfRange",
    "Pipeline",
    "RowFunction",
    "RowPart",
    "TensorBase",
    "UnreadableFile",
    "UnreadableRecord",
    "all_finite",
    "as_written",
    "backend_value",
    "byte_count",
    "bytes_of",
    "call_python",
    "call_row",
    "branching",
    "call_with_branches",
    "cast_keeping_layout",
    "chance",
    "choose_jit",
    "choose_marked",
    "colours",
    "compile_function",
    "compile_once",
    "cond",
    "densified",
    "describe_device",
    "double_precision",
    "elementwise",
    "exchange_storage",
    "first_example",
    "first_outside",
    "from_channels_last",
    "fused_batch_norm",
    "gather_in_batches",
    "gather_places",
    "give_mask",
    "global_norm",
    "has_results",
    "held_format",
    "images",
    "is_pipeline_source",
    "is_sparse",
    "is_open_size",
    "is_symbolic",
    "is_tensor",
    "is_tracing",
    "join_along",
    "known_value",
    "map_values",
    "mask_of",
    "name_scope",
    "naming_layers",
    "nhwc_of",
    "normalise_axes",
    "note_class_labels",
    "outside_graph",
    "pipeline_from_arrays",
    "pipeline_from_batches",
    "pipeline_from_rows",
    "pool",
    "processors",
    "public_tensor",
    "product",
    "read_storage",
    "reduce_axes",
    "register_tensor",
    "require",
    "scan",
    "snapshot",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
    "speaking_of",
    "storage_in",
    "store",
    "telling_place",
    "tensor_decided",
    "times_transposed",
    "to_channels_last",
    "to_numpy",
    "to_tensor",
    "trace_count",
    "trace_for",
    "traces",
    "truth",
    "unique_with_places",
    "value_and_gradient",
    "warp",
    "with_backward_hook",
    "with_branches",
    "wait_for",
    "wrap_with",
    "wrap_pipeline",
    "write_onnx",
    "write_saved_model",
]
