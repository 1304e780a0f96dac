"""`Tensor`: MindSpore's tensor over a backend tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, boundary, checks, context
from mixtrain.common import printing
from mixtrain.common.gradient_hooks import GradientHooks, HookHandle
from mixtrain.common.initializer import Initializer
from mixtrain.common.operators import is_numeric
from mixtrain.common.tensor_methods import TensorMethods
from mixtrain.dtype import DType, as_dtype, float32, is_complex
from mixtrain.lazy_names import serve_names
from mixtrain.ops import indexing, views
from mixtrain.ops.hook_backward import hook_gradients
from mixtrain.ops.inputs import dtype_of, tensor as as_tensor
from mixtrain.typing import BackendTensor, DTypeLike, TensorLike


class _TensorType(type):
    """Make ``isinstance(x, Tensor)`` true for Parameters, which are Keras variables."""

    def __instancecheck__(cls, value: Any) -> bool:
        return type.__instancecheck__(cls, value) or (cls is Tensor and isinstance(value, TensorMethods))


class Tensor(TensorMethods, backend.TensorBase, metaclass=_TensorType):
    """A tensor with MindSpore's methods, operators, indexing and printing, on every backend.

    `keras.ops`, Keras layers, losses and metrics, TensorFlow, JAX and NumPy accept it as it is.

    Args:
        input_data: A number, list, NumPy array, backend tensor or Tensor.
        dtype: Its dtype; without it, that of `input_data` (Python floats give float32).
        shape: Shape of the values that `init` creates; zeros without `init`. With None or -1 for an unknown size it is
            a description without values, for `Cell.set_inputs` and `export`; with a dtype alone, of unknown rank.
        init: An `Initializer` that creates the values.
        internal: Accepted for MindSpore scripts.
        const_arg: Accepted for MindSpore scripts.

    Raises:
        TypeError: `dtype` is not a dtype, `init` is not an Initializer, `input_data` cannot become a tensor, or
            neither of the two was passed.
        ValueError: `init` was passed without `shape`.

    Example:
        >>> import mixtrain
        >>> x = mixtrain.Tensor([1.0, 2.0], mixtrain.float16)
        >>> x[0] = 3
        >>> print(x * 2, isinstance(x, mixtrain.Tensor))
        [6. 4.] True
    """

    __slots__ = ("__dict__", "__weakref__", "born", "content", "origin")

    # The compiled call that made it; see `boundary.current_call`.
    born: int

    # The backend tensor, or a channels-last view of one.
    content: BackendTensor
    # The tensors that this one is a view of: weak references, and the operations that lead from each to it.
    origin: tuple[views.Origin, ...]

    def __init__(
        self, input_data: TensorLike | None = None, dtype: DTypeLike | None = None,
        shape: int | Sequence[int] | None = None, init: Initializer | None = None, internal: bool = False,
        const_arg: bool = False,
    ) -> None:
        self.born = boundary.current_call()
        self.content = initial_value(input_data, None if dtype is None else as_dtype(dtype), shape, init)
        if isinstance(input_data, Tensor) and input_data.dtype == self.dtype:
            # In MindSpore both share the memory.
            views.record(self, input_data, lambda x: x)

    def backend_tensor(self) -> BackendTensor:
        """Return the backend tensor."""
        content = self.content
        return content.backend_tensor() if isinstance(content, backend.TensorBase) else content

    @property
    def nhwc(self) -> BackendTensor | None:
        """The channels-last backend tensor that this one is a view of, or None."""
        return backend.nhwc_of(self.content)

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """Return a Tensor with the values of a NumPy array."""
        checks.instance("Tensor.from_numpy", "array", array, np.ndarray, "Tensor.from_numpy(np.ones(2))")
        return Tensor(array)

    @staticmethod
    def convert_bytes_to_tensor(bytes_data: bytes, shape: int | Sequence[int], dtype: DTypeLike) -> Tensor:
        """Return a Tensor of a shape and dtype from the bytes that `get_bytes` returns."""
        return Tensor(np.frombuffer(bytes_data, np.dtype(as_dtype(dtype))).reshape(shape))

    @property
    def dtype(self) -> DType:
        """The dtype."""
        return dtype_of(self.content.dtype)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape; None for a dimension that is unknown while compiling."""
        return tuple(self.content.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.content.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The number of bytes between neighboring elements along each axis."""
        return tuple(self.itemsize * stride for stride in self.stride())

    @property
    def has_init(self) -> bool:
        """Always False: the values exist from the start."""
        return False

    @property
    def data(self) -> Tensor:
        """A view of this tensor: writes to it change this tensor, too."""
        return Tensor(self)

    @property
    def init(self) -> None:
        """Always None: the values exist from the start."""
        return None

    @property
    def device(self) -> str:
        """The device of the values, "CPU" or "GPU:0"; while compiling, that of the context."""
        value = self.backend_tensor()
        return context.get_context("device_target") if backend.is_symbolic(value) else backend.device_of(value)

    def copy(self) -> Tensor:
        """Return a new tensor with the same values."""
        return _wrap(self.content)  # type: ignore[no-any-return]

    def clone(self) -> Tensor:
        """Alias of `copy`."""
        return self.copy()

    def numpy(self) -> np.ndarray:
        """Alias of `asnumpy`."""
        return self.asnumpy()  # type: ignore[no-any-return]

    def assign_value(self, value: TensorLike) -> Tensor:
        """Set the values to those of another tensor; return this tensor."""
        self.store(boundary.unwrap(value) if isinstance(value, Tensor) else Tensor(value).content)
        return self

    def set_dtype(self, dtype: DTypeLike) -> DType:
        """Cast this tensor in place; return the dtype."""
        self.store(self.astype(dtype).content)
        return self.dtype

    def set_data(self, data: TensorLike, slice_shape: bool = False) -> Tensor:
        """Set the values to those of another tensor; return this tensor."""
        return self.assign_value(data)

    def item(self, index: int | tuple[int, ...] | None = None) -> Any:
        """Return the element at an index, or the only one, as a Python number."""
        element = self if index is None else self.reshape(-1)[index] if isinstance(index, int) else self[index]
        return TensorMethods.item(element)

    def itemset(self, *args: Any) -> Tensor:
        """Return a copy with the element at an index, or the only element, replaced."""
        result = self.copy()
        *rest, value = args
        index = rest[0] if rest else ...
        if isinstance(index, int):
            index = tuple(int(position) for position in np.unravel_index(index, self.shape))
        result[index] = value
        return result

    def register_hook(self, hook: Callable[[Tensor], Any]) -> HookHandle:
        """Call a function with the gradient of this tensor in the computations that follow.

        Args:
            hook: Called with the gradient; a result other than None replaces the gradient.

        Returns:
            A handle whose `remove` removes the hook.

        Raises:
            TypeError: `hook` cannot be called.
        """
        hooks = self._hooks() or GradientHooks()
        handle = hooks.add("Tensor.register_hook", hook)
        if hooks.content is None:
            self.content = hooks.content = boundary.unwrap(hook_gradients("Tensor.register_hook", (self,), hooks)[0])
            self.gradient_hooks = hooks
        return handle

    def _hooks(self) -> GradientHooks | None:
        hooks = self.gradient_hooks
        return hooks if hooks is not None and hooks.content is self.content else None

    def hooks(self) -> list[Callable[[Tensor], Tensor | None]]:
        """Return the hooks of `register_hook`, in their order; a write in place leaves none."""
        hooks = self._hooks()
        return [] if hooks is None else hooks.functions()

    def __getitem__(self, index: Any) -> Tensor:
        view = boundary.to_tensors(indexing.get_item(self.backend_tensor(), index))
        return views.record_index(view, self, index)

    def __setitem__(self, index: Any, value: TensorLike) -> None:
        self.store(indexing.set_item(self.backend_tensor(), index, value))
        views.write_back(self)

    def store(self, value: BackendTensor) -> None:
        """Replace the backend tensor."""
        boundary.note_write(self)
        self.content = value

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("Tensor: expected a tensor with axes to iterate over; got one without. Write x.item().")
        return (self[index] for index in range(len(self)))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Tensor: expected a tensor with axes, which has a length; got one without. Write x.size.")
        return int(self.shape[0])

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, (int, float, complex, np.number, Tensor)) and bool((self == value).any())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                "Tensor: The truth value of an array with several elements is ambiguous: expected one element; got "
                f"shape {self.shape}. Write x.all() or x.any()."
            )
        return backend.truth(self.reshape(()).backend_tensor())

    def __int__(self) -> int:
        return int(TensorMethods.item(self))

    def __float__(self) -> float:
        return float(TensorMethods.item(self))

    def __index__(self) -> int:
        if "int" not in self.dtype:
            raise TypeError(
                f"Tensor: expected an integer tensor as an index; got {self.dtype.name}. Write x.astype(int)."
            )
        return int(self)

    def __str__(self) -> str:
        return self._symbolic_text() if self._has_no_value() else printing.str_of(self.asnumpy(), self.dtype)

    def __repr__(self) -> str:
        return self._symbolic_text() if self._has_no_value() else printing.repr_of(self.asnumpy(), self.dtype)

    def _has_no_value(self) -> bool:
        return backend.is_symbolic(self) and backend.known_value(self) is None

    def _symbolic_text(self) -> str:
        if isinstance(self.content, keras.KerasTensor):
            sizes = [-1 if size is None else size for size in self.shape]
            return f"Tensor(shape={sizes}, dtype={self.dtype}, value= )"
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, in a function that is being compiled)"

    def __format__(self, form: str) -> str:
        return format(TensorMethods.item(self), form) if form else str(self)

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memodict: Any) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[Callable[..., Tensor], tuple[np.ndarray, str]]:
        return _unpickled, (self.asnumpy(), self.dtype.name)


def _unpickled(array: np.ndarray, dtype: str) -> Tensor:
    return Tensor(array, dtype)


def _wrap(value: BackendTensor) -> Tensor | BackendTensor:
    """Return a Tensor over a backend tensor or a view; tensors of strings and the like are returned unchanged."""
    return _from_backend(value) if is_numeric(value.dtype) else value


def _from_backend(value: BackendTensor) -> Tensor:
    # Without `__init__`, which converts and copies.
    result = Tensor.__new__(Tensor)
    result.born = boundary.current_call()
    result.content = value
    return result


backend.wrap_with(_wrap)
backend.register_tensor(Tensor, _from_backend)


class _OfUnknownRank(keras.KerasTensor):  # type: ignore[misc]
    """What a Tensor without values or shape holds, as scripts pass to `set_inputs`."""

    shape = property(lambda self: (-2,))

    def __init__(self, dtype: str) -> None:
        super().__init__((None,), dtype)


def initial_value(
    input_data: TensorLike | None, dtype: DType | None, shape: int | Sequence[int] | None = None,
    init: Initializer | None = None,
) -> BackendTensor:
    """Return the backend tensor for the arguments of `Tensor`."""
    sizes = (shape,) if isinstance(shape, int) else shape and tuple(shape)
    if init is not None:
        checks.instance("Tensor", "init", init, Initializer, "init=mixtrain.common.initializer.Zero()")
        if sizes is None:
            raise checks.fail_value("Tensor", "init needs a shape", shape, "shape=(2, 3)")
        return backend.to_tensor(init.make(sizes), dtype or float32)
    if input_data is None and sizes is not None:
        known = tuple(None if size in (None, -1) else size for size in sizes)
        if None in known:
            return keras.KerasTensor(known, (dtype or float32).name)
        return backend.to_tensor(np.zeros(known), dtype or float32)
    if input_data is None and dtype is not None:
        return _OfUnknownRank(dtype.name)
    if input_data is None:
        raise checks.fail_type("Tensor", "input_data must be given", input_data, "Tensor(1.0)")
    value = boundary.to_backend_tensors(input_data)
    if dtype is not None and not is_complex(dtype) and not backend.is_tensor(value) and np.iscomplexobj(value):
        value = np.real(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "USO":
            raise checks.fail_type("Tensor", "input_data must hold numbers", value, "a NumPy array for text")
        value = np.array(value)  # A backend may share the memory of an array.
    if isinstance(value, (np.ndarray, np.generic)) or backend.is_tensor(value) or isinstance(value, keras.Variable):
        return backend.to_tensor(value, dtype)
    return backend.to_tensor(as_tensor("Tensor", value), dtype)


def tensor(
    input_data: TensorLike | None = None, dtype: DTypeLike | None = None, shape: int | Sequence[int] | None = None,
    init: Initializer | None = None, const_arg: bool = False, device: str | None = None,
) -> Tensor:
    """Create a `Tensor`.

    Args:
        input_data: A number, list, NumPy array, backend tensor or Tensor.
        dtype: Its dtype; without it, that of `input_data`.
        shape: Shape of the values that `init` creates; see `Tensor`.
        init: An `Initializer` that creates the values.
        const_arg, device: Accepted for MindSpore scripts.

    Returns:
        A `Tensor`.

    Example:
        >>> import mixtrain
        >>> mixtrain.tensor([1, 2]).shape
        (2,)
    """
    return Tensor(input_data, dtype, shape, init)


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a Tensor with the values of a NumPy array."""
    return Tensor.from_numpy(array)


serve_names(__name__)
