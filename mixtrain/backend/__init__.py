"""The backend interface: functions of the array library that Keras runs on, beyond `keras.ops`.

Every name below means what `mixtrain/backend/interface/` documents; the backends have the same file names. Packages
above use `keras.ops`, `keras.Variable` and this interface, nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixtrain.backend.supported import check_asked_backend, check_backend

check_asked_backend()

import keras

check_backend(keras.backend.backend())

from mixtrain.backend.class_labels import ClassLabels, LabelOutOfRange, first_outside, note_class_labels
from mixtrain.backend.forked import forked_after_start, note_forks
from mixtrain.backend.info import DeviceInfo, GroupInfo, JitChoice
from mixtrain.backend.layout import cast_keeping_layout, elementwise, join_along, nhwc_of, reduce_axes, to_channels_last
from mixtrain.backend.next_value import (
    is_next_value, mark_next_value, next_values, takes_next_value, without_next_values,
)
from mixtrain.backend.processor import processors
from mixtrain.backend.refused_batch import EmptyBatch, RefusedBatch, naming_position, refuse_empty
from mixtrain.backend.share import SEED_STRIDE, Share, is_one_number, merge_of
from mixtrain.backend.tensor_base import TensorBase, backend_value, public_tensor, wrap_with
from mixtrain.backend.unstorable import Unstorable, text_for_numbers

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from mixtrain.backend.tensorflow import random as row_random, special  # The name by which `ops` calls it.
    from mixtrain.backend.tensorflow.branches import branching, call_with_branches, tensor_decided, with_branches
    from mixtrain.backend.tensorflow.compile import (
        EAGER_COMPILES, INLINES_COMPILED, called_directly, choose_jit, compile_function, is_tracing, eager_scope,
        trace_count, trace_for,
    )
    from mixtrain.backend.tensorflow.control import call_python, cond, write_after
    from mixtrain.backend.tensorflow.cross_entropy import softmax_cross_entropy, sparse_softmax_cross_entropy
    from mixtrain.backend.tensorflow.device import (
        can_fork, describe_device, device_of, has_started, peak_memory, tf32_products,
    )
    from mixtrain.backend.tensorflow.export import write_onnx, write_saved_model
    from mixtrain.backend.tensorflow.failure import VALUE_ERRORS, error_reason, naming_layers
    from mixtrain.backend.tensorflow.gradient import (
        all_finite, densified, finite_and_norm, global_norm, is_sparse, map_values, non_finite_counts, tapped_gradients,
        value_and_gradient, with_backward_hook, with_backward_rule,
    )
    from mixtrain.backend.tensorflow.gather import boolean_mask, gather_in_batches, gather_nd, unique_with_indices
    from mixtrain.backend.tensorflow.live_values import LiveValue
    from mixtrain.backend.tensorflow.jit import compile_once
    from mixtrain.backend.tensorflow.keras_step import with_values, without_skipped_steps
    from mixtrain.backend.tensorflow.normalize import fused_batch_norm, normalize_axes
    from mixtrain.backend.tensorflow.pooling import pool
    from mixtrain.backend.tensorflow.elements import DevicePut, Stacked
    from mixtrain.backend.tensorflow.processes import (
        RecordedWrites, all_gather, all_reduce, join_processes, leave_processes, process_index, process_jit,
        reduce_scatter, naming_lost_process,
    )
    from mixtrain.backend.tensorflow.products import product, times_transposed
    from mixtrain.backend.tensorflow.replicas import Replicas, devices_in_force, find_devices
    from mixtrain.backend.tensorflow.rollback import Rollback
    from mixtrain.backend.tensorflow.scan import scan
    from mixtrain.backend.tensorflow.steps import GROUPS, CompiledSteps
    from mixtrain.backend.tensorflow.storage import exchange_storage, read_storage, storage_in
    from mixtrain.backend.tensorflow.tensor import (
        BACKEND_TENSORS, TENSOR_TYPES, byte_count, bytes_of, double_precision, from_channels_last, set_mask,
        canonical_dtype, is_unknown_dimension, is_symbolic, is_tensor, known_value, mask_of, name_scope,
        refuse_unstorable, register_tensor, snapshot, to_numpy, to_tensor, truth, wait_for,
    )
    from mixtrain.backend.tensorflow.trace import without_autograph, has_results, traces, value_scope
    from mixtrain.backend.tensorflow.variables import store
else:
    from mixtrain.backend.jax import random as row_random, special  # The name by which `ops` calls it.
    from mixtrain.backend.jax.branches import branching, call_with_branches, tensor_decided, with_branches
    from mixtrain.backend.jax.compile import (
        EAGER_COMPILES, INLINES_COMPILED, called_directly, choose_jit, compile_function, is_tracing, eager_scope,
        trace_count, trace_for,
    )
    from mixtrain.backend.jax.control import call_python, cond, write_after
    from mixtrain.backend.jax.cross_entropy import softmax_cross_entropy, sparse_softmax_cross_entropy
    from mixtrain.backend.jax.device import (
        can_fork, describe_device, device_of, has_started, peak_memory, tf32_products,
    )
    from mixtrain.backend.jax.export import write_onnx, write_saved_model
    from mixtrain.backend.jax.failure import VALUE_ERRORS, error_reason, naming_layers
    from mixtrain.backend.jax.gradient import (
        all_finite, densified, finite_and_norm, global_norm, is_sparse, map_values, non_finite_counts, tapped_gradients,
        value_and_gradient, with_backward_hook, with_backward_rule,
    )
    from mixtrain.backend.jax.gather import boolean_mask, gather_in_batches, gather_nd, unique_with_indices
    from mixtrain.backend.jax.live_values import LiveValue
    from mixtrain.backend.jax.jit import compile_once
    from mixtrain.backend.jax.keras_step import with_values, without_skipped_steps
    from mixtrain.backend.jax.normalize import fused_batch_norm, normalize_axes
    from mixtrain.backend.jax.pooling import pool
    from mixtrain.backend.jax.elements import DevicePut, Stacked
    from mixtrain.backend.jax.processes import (
        RecordedWrites, all_gather, all_reduce, join_processes, leave_processes, process_index, process_jit,
        reduce_scatter, naming_lost_process,
    )
    from mixtrain.backend.jax.products import product, times_transposed
    from mixtrain.backend.jax.replicas import Replicas, devices_in_force, find_devices
    from mixtrain.backend.jax.rollback import Rollback
    from mixtrain.backend.jax.scan import scan
    from mixtrain.backend.jax.steps import GROUPS, CompiledSteps
    from mixtrain.backend.jax.storage import exchange_storage, read_storage, storage_in
    from mixtrain.backend.jax.tensor import (
        BACKEND_TENSORS, TENSOR_TYPES, byte_count, bytes_of, double_precision, from_channels_last, set_mask,
        canonical_dtype, is_unknown_dimension, is_symbolic, is_tensor, known_value, mask_of, name_scope,
        refuse_unstorable, register_tensor, snapshot, to_numpy, to_tensor, truth, wait_for,
    )
    from mixtrain.backend.jax.trace import without_autograph, has_results, traces, value_scope
    from mixtrain.backend.jax.variables import store

note_forks(has_started)

__all__ = [
    "EAGER_COMPILES", "INLINES_COMPILED", "GROUPS", "SEED_STRIDE", "BACKEND_TENSORS", "TENSOR_TYPES", "ClassLabels",
    "CompiledSteps", "DeviceInfo", "DevicePut", "EmptyBatch", "GroupInfo", "JitChoice", "LabelOutOfRange", "LiveValue",
    "RecordedWrites", "RefusedBatch", "Replicas", "Rollback", "Share", "Stacked", "TensorBase", "Unstorable",
    "VALUE_ERRORS", "all_finite", "all_gather", "all_reduce", "mark_next_value", "next_values", "is_next_value",
    "takes_next_value", "without_autograph", "backend_value", "byte_count", "bytes_of", "call_python", "branching",
    "call_with_branches", "called_directly", "can_fork", "cast_keeping_layout", "choose_jit", "boolean_mask",
    "compile_function", "compile_once", "cond", "densified", "describe_device", "device_of", "devices_in_force",
    "double_precision", "elementwise", "error_reason", "exchange_storage", "find_devices", "finite_and_norm",
    "first_outside", "forked_after_start", "from_channels_last", "fused_batch_norm", "gather_in_batches", "gather_nd",
    "set_mask", "global_norm", "has_results", "has_started", "canonical_dtype", "is_sparse", "is_one_number",
    "is_unknown_dimension", "is_symbolic", "is_tensor", "is_tracing", "join_along", "join_processes", "known_value",
    "leave_processes", "map_values", "mask_of", "merge_of", "name_scope", "naming_layers", "nhwc_of",
    "non_finite_counts", "normalize_axes", "note_class_labels", "eager_scope", "peak_memory", "pool", "process_index",
    "process_jit", "processors", "public_tensor", "product", "read_storage", "reduce_axes", "reduce_scatter",
    "refuse_empty", "refuse_unstorable", "text_for_numbers", "register_tensor", "row_random", "scan", "snapshot",
    "softmax_cross_entropy", "sparse_softmax_cross_entropy", "special", "storage_in", "store", "tapped_gradients",
    "naming_lost_process", "naming_position", "tensor_decided", "tf32_products", "times_transposed", "to_channels_last",
    "to_numpy", "to_tensor", "trace_count", "trace_for", "traces", "value_scope", "truth", "unique_with_indices",
    "value_and_gradient", "with_backward_hook", "with_backward_rule", "with_branches", "with_values",
    "without_next_values", "without_skipped_steps", "wait_for", "wrap_with", "write_after", "write_onnx",
    "write_saved_model",
]
