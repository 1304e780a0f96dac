"""`export`: writes a network for programs without mixtrain; `load`, which refuses MindSpore graphs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float32
from mixtrain.precision.apply import AppliedPlan, applied_plan, put_in_force
from mixtrain.precision.cast import cast_floats
from mixtrain.typing import Network, TensorLike

_FORMATS: Final = ("SAVED_MODEL", "ONNX")
_MINDSPORE_FORMATS: Final = ("MINDIR", "AIR")


def export(
    net: Network, *inputs: TensorLike, file_name: str | os.PathLike[str], file_format: str, **kwargs: Any
) -> None:
    """Write the inference graph of a network, in float32 regardless of its training level.

    Args:
        net: A Cell, a built Keras model, or a function of tensors.
        *inputs: An example of each input, or a Tensor of unknown sizes; in the graph the first axis, that of the
            batch, has any size.
        file_name: The folder ("SAVED_MODEL") or file ("ONNX"; ``.onnx`` is added if it is missing).
        file_format: "SAVED_MODEL" for a TensorFlow SavedModel, or "ONNX", which needs ``mixtrain[onnx]``. MindSpore's
            "MINDIR" and "AIR" are not supported: they are MindSpore graphs.
        **kwargs: None: MindSpore's options for encryption and obfuscation are not supported.

    Raises:
        TypeError: An argument has the wrong type, or is unknown.
        ValueError: There is no input, or `file_format` is another string.
        ImportError: tf2onnx or onnx is not installed.

    Example:
        >>> import os, tempfile, mixtrain, mixtrain.nn as nn
        >>> folder = os.path.join(tempfile.mkdtemp(), "dense")
        >>> export(nn.Dense(2, 3), mixtrain.Tensor([[1.0, 2.0]]), file_name=folder, file_format="SAVED_MODEL")
        >>> sorted(os.listdir(folder))
        ['assets', 'fingerprint.pb', 'saved_model.pb', 'variables']
    """
    if file_format in _MINDSPORE_FORMATS:
        raise ValueError(
            f"export: expected file_format to be one of {', '.join(_FORMATS)}; got {file_format!r}, a graph of "
            'MindSpore\'s own. Write file_format="SAVED_MODEL", or "ONNX" with mixtrain[onnx] installed.'
        )
    checks.one_of("export", "file_format", file_format, _FORMATS)
    if kwargs:
        raise TypeError(f"export: expected no more arguments; got {', '.join(kwargs)}. Write it without them.")
    if not isinstance(file_name, (str, os.PathLike)):
        raise checks.fail_type("export", "file_name must be a str", file_name, 'file_name="lenet"')
    if not callable(net):
        raise checks.fail_type("export", "net must be a Cell, a Keras model or a function", net, "a network")
    if not inputs:
        raise checks.fail_value("export", "an example of each input must be given", inputs, "export(net, data, ...)")
    tensors = [backend.to_tensor(_with_values(value)) for value in inputs]
    path = os.path.realpath(os.fspath(file_name))
    with _inference_function(net) as function:
        if file_format == "ONNX":
            backend.write_onnx(function, tensors, path if path.endswith(".onnx") else f"{path}.onnx")
        else:
            backend.write_saved_model(function, tensors, path)


def _with_values(value: TensorLike) -> TensorLike:
    """Return zeros for a Tensor without values, with 1 for its unknown sizes; others unchanged."""
    if isinstance(value, Tensor) and isinstance(value.content, keras.KerasTensor):
        if value.shape == (-2,):
            raise checks.fail_value("export", "the number of axes of each input must be known", value, "shape=(None,)")
        return Tensor(shape=[1 if size is None else size for size in value.shape], dtype=value.dtype)
    return value


def load(file_name: str, **kwargs: Any) -> NoReturn:
    """Raise an error: MindSpore's MINDIR graphs run only in MindSpore.

    Args:
        file_name: The file.
        **kwargs: MindSpore's options.

    Raises:
        ValueError: Always; the message says what to use instead.
    """
    raise ValueError(
        f"load: expected a file that TensorFlow can run; got {file_name!r}, a MINDIR graph of MindSpore's own. "
        "Write load_checkpoint for parameters, or tf.saved_model.load for what export wrote as SAVED_MODEL."
    )


@contextlib.contextmanager
def _inference_function(net: Network) -> Iterator[Callable[..., Any]]:
    """Yield the network as a function in inference mode and without its plan; restore both afterwards."""
    if not isinstance(net, (Cell, keras.Layer)):
        yield net
        return
    undone: list[AppliedPlan] = []
    while (applied := applied_plan(net)) is not None:
        applied.undo()
        undone.insert(0, applied)
    modes = [(cell, cell.training) for _, cell in net.cells_and_names()] if isinstance(net, Cell) else []
    try:
        if isinstance(net, Cell):
            net.set_train(False)
            yield lambda *inputs: cast_floats(net(*inputs), float32)
        else:
            yield lambda *inputs: cast_floats(net(*inputs, training=False), float32)
    finally:
        for cell, training in modes:
            object.__setattr__(cell, "training", training)
        for applied in undone:
            put_in_force(AppliedPlan(net, applied.plan, lasting=applied.lasting, planning=applied.planning))
