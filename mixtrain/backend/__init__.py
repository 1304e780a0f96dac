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
from mixtrain.backend.info import DeviceInfo, GroupInfo, JitChoice, processors
from mixtrain.backend.next_value import (
    is_next_value, mark_next_value, next_values, takes_next_value, without_next_values,
)
from mixtrain.backend.refused_batch import (
    EmptyBatch, RefusedBatch, Unstorable, naming_position, refuse_empty, text_for_numbers,
)
from mixtrain.backend.share import SEED_STRIDE, Share, is_one_number, merge_of
from mixtrain.backend.tensor_base import (
    LayoutView, TensorBase, backend_value, cast_keeping_layout, load_public_with, make_views_with, mask_of, nhwc_of,
    on_layout, public_tensor, set_mask, wrap_with,
)
from mixtrain.backend.user_code import Operation, UndecidedBranch

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from mixtrain.backend.tensorflow import special
    from mixtrain.backend.tensorflow.branches import (
        branching, call_with_branches, failed_on_a_path, tensor_decided, with_branches,
    )
    from mixtrain.backend.tensorflow.compile import (
        EAGER_COMPILES, INLINES_COMPILED, WRITES_AT_END, called_directly, choose_jit, compile_function, compile_once,
        eager_scope, has_results, is_tracing, never_cached, trace_count, trace_for, traces, value_scope,
        without_autograph,
    )
    from mixtrain.backend.tensorflow.control import call_python, computed_by_numpy, cond, scan, write_after
    from mixtrain.backend.tensorflow.device import (
        can_fork, describe_device, device_memory, device_of, has_started, peak_memory, restart_peak, synchronize,
        tf32_products, version,
    )
    from mixtrain.backend.tensorflow.elements import DevicePut, Stacked
    from mixtrain.backend.tensorflow.export import write_onnx, write_saved_model
    from mixtrain.backend.tensorflow.failure import VALUE_ERRORS, error_reason, naming_layers
    from mixtrain.backend.tensorflow.gradient import (
        all_finite, check_gradients, custom_gradient_count, densified, is_sparse, map_values, non_finite_counts,
        tapped_gradients, value_and_gradient, with_backward_hook, with_backward_rule,
    )
    from mixtrain.backend.tensorflow.kernels import (
        UNPOOLED_VOLUMES, boolean_mask, float8_einsum, gather_in_batches, gather_nd, pool, product,
        softmax_cross_entropy, sparse_softmax_cross_entropy, times_transposed, unique_with_indices,
    )
    from mixtrain.backend.tensorflow.normalize import fused_batch_norm, normalize_axes
    from mixtrain.backend.tensorflow.operations import finite_gradients, run_operations
    from mixtrain.backend.tensorflow.processes import (
        RecordedWrites, all_gather, all_reduce, join_processes, leave_processes, naming_lost_process, process_index,
        process_jit, reduce_scatter,
    )
    from mixtrain.backend.tensorflow.joined import joined_sum
    from mixtrain.backend.tensorflow.replicas import (
        SHARDS_WEIGHTS, Replicas, devices_in_force, find_devices, in_several_processes, join_rows,
        reads_own_rows,
    )
    from mixtrain.backend.tensorflow.rollback import Rollback, with_values, without_skipped_steps
    from mixtrain.backend.tensorflow.steps import GROUPS, CompiledSteps
    from mixtrain.backend.tensorflow.storage import (
        LiveValue, exchange_storage, is_mirrored, own_pieces, read_storage, sharding_axes, spans_processes,
        storage_in, temporary_storage,
    )
    from mixtrain.backend.tensorflow.tensor import (
        BACKEND_TENSORS, TENSOR_TYPES, byte_count, bytes_of, canonical_dtype, double_precision, is_symbolic, is_tensor,
        is_unknown_dimension, known_value, name_scope, prunes, refuse_unstorable, register_tensor, snapshot, store,
        to_numpy, to_tensor, truth, wait_for,
    )
else:
    from mixtrain.backend.jax import special
    from mixtrain.backend.jax.branches import (
        branching, call_with_branches, failed_on_a_path, tensor_decided, with_branches,
    )
    from mixtrain.backend.jax.compile import (
        EAGER_COMPILES, INLINES_COMPILED, WRITES_AT_END, called_directly, choose_jit, compile_function, compile_once,
        eager_scope, has_results, is_tracing, never_cached, trace_count, trace_for, traces, value_scope,
        without_autograph,
    )
    from mixtrain.backend.jax.control import call_python, computed_by_numpy, cond, scan, write_after
    from mixtrain.backend.jax.device import (
        can_fork, describe_device, device_memory, device_of, has_started, peak_memory, restart_peak, synchronize,
        tf32_products, version,
    )
    from mixtrain.backend.jax.elements import DevicePut, Stacked
    from mixtrain.backend.jax.export import write_onnx, write_saved_model
    from mixtrain.backend.jax.failure import VALUE_ERRORS, error_reason, naming_layers
    from mixtrain.backend.jax.gradient import (
        all_finite, check_gradients, custom_gradient_count, densified, is_sparse, map_values, non_finite_counts,
        tapped_gradients, value_and_gradient, with_backward_hook, with_backward_rule,
    )
    from mixtrain.backend.jax.kernels import (
        UNPOOLED_VOLUMES, boolean_mask, float8_einsum, gather_in_batches, gather_nd, pool, product,
        softmax_cross_entropy, sparse_softmax_cross_entropy, times_transposed, unique_with_indices,
    )
    from mixtrain.backend.jax.normalize import fused_batch_norm, normalize_axes
    from mixtrain.backend.jax.operations import finite_gradients, run_operations
    from mixtrain.backend.jax.processes import (
        RecordedWrites, all_gather, all_reduce, join_processes, leave_processes, naming_lost_process, process_index,
        process_jit, reduce_scatter,
    )
    from mixtrain.backend.jax.joined import joined_sum
    from mixtrain.backend.jax.replicas import (
        SHARDS_WEIGHTS, Replicas, devices_in_force, find_devices, in_several_processes, join_rows,
        reads_own_rows,
    )
    from mixtrain.backend.jax.rollback import Rollback, with_values, without_skipped_steps
    from mixtrain.backend.jax.steps import GROUPS, CompiledSteps
    from mixtrain.backend.jax.storage import (
        LiveValue, exchange_storage, is_mirrored, own_pieces, read_storage, sharding_axes, spans_processes,
        storage_in, temporary_storage,
    )
    from mixtrain.backend.jax.tensor import (
        BACKEND_TENSORS, TENSOR_TYPES, byte_count, bytes_of, canonical_dtype, double_precision, is_symbolic, is_tensor,
        is_unknown_dimension, known_value, name_scope, prunes, refuse_unstorable, register_tensor, snapshot, store,
        to_numpy, to_tensor, truth, wait_for,
    )

note_forks(has_started)
