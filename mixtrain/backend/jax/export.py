"""Export of functions: only TensorFlow supports it, in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mixtrain.errors import UnsupportedBackendError


def write_saved_model(function: Callable[..., Any], inputs: Sequence[Any], folder: str) -> None:
    _refuse("SAVED_MODEL")


def write_onnx(function: Callable[..., Any], inputs: Sequence[Any], file: str) -> None:
    _refuse("ONNX")


def _refuse(kind: str) -> NoReturn:
    raise UnsupportedBackendError(
        f'export: expected TensorFlow, which writes file_format="{kind}"; got the Keras backend jax. '
        "Write save_checkpoint(net, file) here, and load_checkpoint and export in a process with "
        "KERAS_BACKEND=tensorflow."
    )
