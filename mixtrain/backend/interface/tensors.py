"""Tensors, variables and the devices that they are on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain.backend.info import DeviceInfo, DeviceMemory
from mixtrain.dtype import DType
from mixtrain.typing import BackendTensor, Tensor, TensorLike

# The classes of tensors of the backend.
BACKEND_TENSORS: tuple[type, ...]
# The same, and the class of tensors of MindSpore code.
TENSOR_TYPES: tuple[type, ...]

def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of the backend, a `TensorBase` or a `KerasTensor`."""

def is_unknown_dimension(value: Any) -> bool:
    """Whether `value` is an unknown dimension, or another size that is only known at run time."""

def byte_count(value: Any) -> int:
    """Return the size of a tensor's values in bytes."""

def is_symbolic(value: Any) -> bool:
    """Whether a tensor belongs to a traced function and has no values."""

def known_value(value: Any) -> np.ndarray | None:
    """Return a tensor's values if they are known, as those of constants in a trace are, else None."""

def bytes_of(dtype: str) -> int:
    """Return the item size of a dtype in bytes."""

def canonical_dtype(dtype: str) -> str:
    """Return the dtype in which tensors of a dtype are stored."""

def refuse_unstorable(value: Any) -> Any:
    """Return an array or number as it is, if its values are stored as themselves.

    Raises: Unstorable if it is text, or an integer does not fit: `to_tensor` would wrap it around without a word.
    """

def to_tensor(value: Any, dtype: str | None = None) -> Tensor:
    """Convert `value` to a tensor, of `dtype` if given, in the dtype in which it is stored."""

def to_numpy(value: Any) -> np.ndarray:
    """Return the values of a tensor or variable as a NumPy array, bfloat16, which NumPy lacks, as float32."""

def snapshot(variable: keras.Variable) -> Any:
    """Return a variable's current value, which later assignments do not change."""

def wait_for(tensors: Sequence[Tensor]) -> None:
    """Wait until tensors are computed."""

def name_scope(name: str) -> Any:
    """Name operations after a layer, for graphs and profiles of a compiled step."""

def double_precision() -> contextlib.AbstractContextManager[Any]:
    """Enable float64 in the code inside."""

def prunes(tensor: Tensor) -> bool:
    """Whether an operation on a tensor becomes part of a program, from which it is pruned if nothing uses it."""

def truth(tensor: Tensor) -> bool:
    """Return the outcome of a branch: a tensor's value, or the outcome on the path that is being traced.

    Raises: The backend's TypeError if the tensor has no value yet, and the function is not traced along all paths.
    """

def register_tensor(kind: type, make: Callable[[BackendTensor], Any]) -> None:
    """Register a subclass of `TensorBase`, if the backend has to know it; `make` creates one from a backend tensor."""

def store(variable: keras.Variable, value: TensorLike) -> None:
    """Set the value of a variable to a tensor of its dtype and shape, without the conversions of `assign`."""

def is_mirrored(variable: keras.Variable) -> bool:
    """Whether a strategy of the user's keeps a copy of a variable on each device, which has no other storage."""

def spans_processes(value: Any) -> bool:
    """Whether a variable or tensor is on devices of several processes: as a whole, or in parts."""

def own_pieces(value: Any) -> list[tuple[tuple[int, ...], Tensor]]:
    """Return the pieces of a variable or tensor that this process has to save, each with the index of its start.

    Those of all processes make up the whole, each piece once.
    """

def sharding_axes(variable: keras.Variable) -> list[str]:
    """Return the axes of the mesh of devices over which a variable is sharded; none where each device has all of it."""

def storage_in(variable: keras.Variable, dtype: DType) -> Any:
    """Return new storage of a dtype with a variable's current value, cast."""

def exchange_storage(variable: keras.Variable, storage: Any) -> Any:
    """Switch a variable, which stays the same object, to other storage and its dtype; return the previous storage.

    `storage`: A result of `storage_in`, `temporary_storage` or this function, of the same shape.
    """

def temporary_storage(variable: keras.Variable, value: Tensor) -> Any:
    """Return storage for a variable that is no memory of its own, but a tensor, which a write replaces.

    For some code of a step that writes the variable: it must exchange the storage back, and no branch or loop inside
    may write it.
    """

def read_storage(storage: Any) -> Any:
    """Return the current value of storage as a tensor, which later writes do not change."""

class LiveValue:
    """The last value that was put here by a compiled step (by XLA too) or by Python.

    `value`: A tensor with the dtype and shape of those that will be put here. With XLA, values put between two calls of
    `take` have one size.

    Example:
        >>> from mixtrain import backend
        >>> live = backend.LiveValue(backend.to_tensor([1.0, 2.0]))
        >>> live.take() is None
        True
        >>> live.put(backend.to_tensor([3.0, 4.0]))
        >>> live.take()[1].tolist()
        [3.0, 4.0]
    """

    def __init__(self, value: TensorLike) -> None: ...

    def put(self, value: TensorLike) -> None:
        """Write a value."""

    def take(self) -> tuple[int, np.ndarray] | None:
        """Return the time (a count) and the value of the last `put` since the previous call; None without one."""

def describe_device() -> DeviceInfo:
    """Return info about the device that the backend uses by default."""

def has_started() -> bool:
    """Whether the backend has computed anything in this process, or in one that it was forked from."""

def peak_memory(*, restart: bool = False) -> int | None:
    """Return the peak memory of the device in bytes, on a CPU that of the process; None where it is unknown.

    `restart`: Whether to reset the peak to the current usage first, where the device supports that.
    """

def device_memory() -> DeviceMemory:
    """Return the memory of the device that the backend uses by default."""

def restart_peak() -> bool:
    """Reset the peaks of the device's memory to the current usage; return whether the backend can."""

def synchronize() -> None:
    """Wait until the device has computed all that it was asked for."""

def tf32_products() -> str:
    """Return the code that disables TF32, if the device computes float32 products in TF32; else ""."""

def version() -> str:
    """Return the name and the version of the library that computes."""

def device_of(tensor: BackendTensor) -> str:
    """Return the device that holds a tensor, in MindSpore's words: "CPU", "GPU:0"."""

def can_fork() -> bool:
    """Whether a process forked from this one can run Python and NumPy."""
