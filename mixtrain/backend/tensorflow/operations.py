"""Observe the operations of a function as they run eagerly."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

# TensorFlow has no public name for observing eager operations, as its debugger does; tests/backend/test_rollback.py and
# test_operations.py fail if it moves.
from tensorflow.python.framework import op_callbacks

from mixtrain.backend.tensor_base import backend_value
from mixtrain.backend.tensorflow.graph_writes import READERS
from mixtrain.backend.user_code import Operation, users_line
from mixtrain.typing import Tensor, Tree


@contextlib.contextmanager
def observed(observe: Callable[[str, Sequence[Any], Sequence[Any]], None]) -> Iterator[None]:
    """Call `observe` with the kind, the inputs and the outputs of each operation that runs eagerly inside."""

    def callback(
        kind: str | bytes, inputs: Sequence[Any], attributes: Any, outputs: Sequence[Any], op_name: Any = None,
        graph: Any = None,
    ) -> None:
        if graph is None:
            observe(kind.decode() if isinstance(kind, bytes) else kind, inputs, outputs)

    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)


def run_operations(function: Callable[[], Tree], inside: types.CodeType) -> tuple[Tree, list[Operation]]:
    return _run(function, inside, lambda tensor: None)


def _run(
    function: Callable[[], Tree], inside: types.CodeType, watch: Callable[[Tensor], None]
) -> tuple[Tree, list[Operation]]:
    operations: list[Operation] = []

    def observe(kind: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        inputs, outputs = ([tensor for tensor in group if tensor.dtype.is_floating] for group in (inputs, outputs))
        stack = _stack(inside) if outputs and kind not in READERS else None
        if stack is not None:
            operations.append(Operation(kind, users_line(stack, tf.__file__), inputs, outputs))
            for tensor in outputs:
                watch(tensor)

    with observed(observe):
        return function(), operations


def _stack(inside: types.CodeType) -> list[tuple[str, int]] | None:
    """Return files and line numbers of the caller's stack, innermost first, up to a function; None without that."""
    frame: types.FrameType | None = sys._getframe(1)
    stack = []
    while frame is not None and frame.f_code is not inside:
        stack.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return None if frame is None else stack


def finite_gradients(
    function: Callable[[], Tensor], factor: Tensor | float, inside: types.CodeType
) -> tuple[list[Operation], Tensor]:
    with tf.GradientTape(persistent=True) as tape:
        value, operations = _run(function, inside, tape.watch)
        value = tf.cast(backend_value(value), tf.float32)
    tensors = {id(tensor): tensor for run in operations for tensor in (*run.inputs, *run.outputs)}
    found = tape.gradient(value, [*tensors.values()], tf.convert_to_tensor(factor, tf.float32))
    gradients = dict(zip(tensors, found, strict=True))

    def finite(values: Sequence[Any]) -> bool:
        dense = (tf.convert_to_tensor(value) for value in values if value is not None)
        return all(bool(tf.reduce_all(tf.math.is_finite(value))) for value in dense)

    flags = []
    for run in operations:
        of_outputs = [gradients[id(tensor)] for tensor in run.outputs]
        flag = finite(of_outputs), finite([gradients[id(tensor)] for tensor in run.inputs])
        known = [index for index, gradient in enumerate(of_outputs) if gradient is not None]
        if flag == (True, False) and known:
            # Of an input that several operations use, whether this one makes its gradient non-finite. It does so as
            # well by way of earlier operations, but then these are among the non-finite ones.
            outputs, seeds = zip(*((run.outputs[index], of_outputs[index]) for index in known), strict=True)
            flag = True, finite(tape.gradient(outputs, run.inputs, seeds))
        flags.append(flag)
    return operations, tf.constant(flags, tf.bool, [len(flags), 2])
