"""Exchange tensors with other libraries through DLPack, and read them from bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import backend, checks
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import DType, as_dtype, float32
from mixtrain.typing import BackendTensor


def to_dlpack(tensor: Tensor | BackendTensor) -> np.ndarray:
    """Return an object with `__dlpack__` that holds a copy of a Tensor on the CPU.

    Args:
        tensor: A Tensor of a dtype that NumPy has.

    Example:
        >>> import numpy as np
        >>> np.from_dlpack(to_dlpack(Tensor([1.0, 2.0]))).tolist()
        [1.0, 2.0]
    """
    if not isinstance(tensor, Tensor) and not backend.is_tensor(tensor):
        raise checks.fail_type("to_dlpack", "tensor must be a Tensor", tensor, "to_dlpack(Tensor([1.0]))")
    return np.array(backend.to_numpy(tensor.content if isinstance(tensor, Tensor) else tensor))


def from_dlpack(dlpack: Any) -> Tensor:
    """Return a Tensor with the values of another library's tensor on the CPU.

    Args:
        dlpack: What `to_dlpack` returns, or any object with the method `__dlpack__`.

    Raises:
        TypeError: The object has no such method.

    Example:
        >>> import numpy as np
        >>> from_dlpack(np.array([1.0, 2.0])).asnumpy().tolist()
        [1.0, 2.0]
    """
    if not hasattr(dlpack, "__dlpack__"):
        raise checks.fail_type("from_dlpack", "dlpack must have a method __dlpack__", dlpack, "to_dlpack(tensor)")
    return Tensor(np.array(np.from_dlpack(dlpack)))


def frombuffer(buffer: Any, dtype: DType = float32, count: int = -1, offset: int = 0) -> Tensor:
    """Return a 1-D Tensor of the values in a buffer.

    Args:
        buffer: bytes, a bytearray or another object with a buffer.
        dtype: The dtype of the values.
        count: Number of values to read; -1 for all.
        offset: Offset of the first value, in bytes.

    Raises:
        ValueError: The buffer is too short.

    Example:
        >>> from mixtrain.dtype import uint8
        >>> frombuffer(bytes([1, 2, 3]), uint8, offset=1).asnumpy().tolist()
        [2, 3]
    """
    checks.integer("frombuffer", "offset", offset, at_least=0)
    return Tensor(np.frombuffer(buffer, np.dtype(as_dtype(dtype)), count, offset))
