"""Export of functions: only TensorFlow supports it, in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mixtrain.errors import UnsupportedBackendError


def write_saved_model(function: Callable[..., Any], inputs: Sequence[Any], folder: str) -> None:
    """Refuse to write a function of tensors as a SavedModel.

    Args:
        function: Takes tensors, returns a tensor or a structure of them.
        inputs: An example of each input.
        folder: Where it would be written.

    Raises:
        UnsupportedBackendError: Always.
    """
    _refuse("SAVED_MODEL")


def write_onnx(function: Callable[..., Any], inputs: Sequence[Any], file: str) -> None:
    """Refuse to write a function of tensors as an ONNX model; arguments as in `write_saved_model`.

    Raises:
        UnsupportedBackendError: Always.
    """
    _refuse("ONNX")


def _refuse(kind: str) -> NoReturn:
    raise UnsupportedBackendError(
        f'export: expected TensorFlow, which writes file_format="{kind}"; got the Keras backend jax. '
        "Write save_checkpoint(net, file) here, and load_checkpoint and export in a process with "
        "KERAS_BACKEND=tensorflow."
    )
