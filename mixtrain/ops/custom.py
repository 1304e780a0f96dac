"""Operations that Python functions compute on NumPy arrays: `Custom`, with a gradient by another one, and `PyFunc`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import to_backend_tensors, to_tensors, wants_tensors
from mixtrain.dtype import DType, as_dtype, pytype_to_dtype
from mixtrain.ops.custom_backward import custom_backward
from mixtrain.ops.inputs import tensor, tensor_dtype
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Shape, Tensor, Tree

_WHERE: Final = "ops.Custom"
_KINDS: Final = ("hybrid", "akg", "tbe", "aicpu", "aot", "pyfunc")


class Custom(Primitive):
    """An operation that `func` computes on NumPy arrays, under `jit` and in training steps, too.

    A compiled step waits for the function, which runs on the host; on TensorFlow XLA does not compile it.

    Args:
        func: Takes an array for each input that is a tensor, and returns an array, or a tuple of them where `out_dtype`
            is one. It has no side effects: JAX may call it any number of times.
        out_shape: The shape of the result, a tuple of shapes, or a function that computes it from those of the inputs;
            () is (1,).
        out_dtype: The dtype of the result, a tuple of dtypes, or a function that computes it from those of the inputs.
        func_type: "pyfunc"; the others make kernels for MindSpore's runtime.
        bprop: Takes the inputs, the result and its gradient, and returns the inputs' gradients; None for a function
            that cannot be differentiated.
        reg_info: None.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There is no such `func_type`.
        NotImplementedError: `func_type` is another one than "pyfunc", or there is `reg_info`.
        RuntimeError: Of a call: the function returned another number of results, size or dtype.

    Example:
        >>> import mixtrain, numpy as np
        >>> square = mixtrain.ops.Custom(
        ...     np.square, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (2 * x * dout,))
        >>> x = mixtrain.Tensor([1.0, 3.0])
        >>> square(x).asnumpy().tolist(), mixtrain.grad(square)(x).asnumpy().tolist()
        ([1.0, 9.0], [2.0, 6.0])
    """

    def __init__(
        self, func: Callable[..., Any], out_shape: Any = None, out_dtype: Any = None, func_type: str = "pyfunc",
        bprop: Callable[..., Any] | None = None, reg_info: Any = None,
    ) -> None:
        super().__init__()
        if checks.one_of(_WHERE, "func_type", func_type, _KINDS) != "pyfunc" or reg_info is not None:
            raise NotImplementedError(
                f"{_WHERE}: kernels for MindSpore's runtime are not made. Write a function of NumPy arrays with "
                'func_type="pyfunc" and no reg_info, or the function in mixtrain.ops or keras.ops.'
            )
        if not callable(func):
            raise checks.fail_type(_WHERE, "func must be a function", func, "ops.Custom(np.sin, ...)")
        if not callable(out_shape) and not isinstance(out_shape, (tuple, list)):
            raise checks.fail_type(_WHERE, "out_shape must be given", out_shape, "out_shape=lambda x: x")
        if not callable(out_dtype) and (not isinstance(out_dtype, (DType, tuple, list)) or not out_dtype):
            raise checks.fail_type(_WHERE, "out_dtype must be given", out_dtype, "out_dtype=lambda x: x")
        self.func, self.out_shape, self.out_dtype, self.func_type = func, out_shape, out_dtype, func_type
        self.bprop = bprop

    def __call__(self, *inputs: Tree) -> Tree:
        """Compute the function of `inputs`: tensors, and numbers, which it gets as they are."""
        return custom_backward(_WHERE, self._computed, self.bprop or _not_differentiable)(*inputs)

    def _computed(self, *inputs: Any) -> Tree:
        values = [*map(_input, inputs)]
        tensors = [x for x in values if backend.is_tensor(x)]
        shapes = self.out_shape(*(tuple(getattr(x, "shape", ())) for x in values)) if callable(
            self.out_shape) else self.out_shape
        dtypes = self.out_dtype(*map(_dtype_of, values)) if callable(self.out_dtype) else self.out_dtype
        several = isinstance(dtypes, (tuple, list))
        if not several:
            shapes, dtypes = (shapes,), (dtypes,)
        shapes, dtypes = [tuple(shape) or (1,) for shape in shapes], [as_dtype(dtype) for dtype in dtypes]

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            copies = iter(arrays)
            # Copies, as the function may write to them.
            results = self.func(*(np.array(next(copies)) if backend.is_tensor(x) else x for x in values))
            results = results if isinstance(results, tuple) or len(dtypes) > 1 else (results,)
            if not isinstance(results, tuple) or len(results) != len(dtypes):
                got = len(results) if isinstance(results, tuple) else type(results).__name__
                raise RuntimeError(f"{_WHERE}: the function must return a tuple of {len(dtypes)}; got {got}. Write "
                                   "out_shape and out_dtype for as many results.")
            return [*map(_fitted, results, shapes, dtypes)]

        results = backend.computed_by_numpy(
            call, [keras.ops.stop_gradient(x) for x in tensors], shapes, [dtype.name for dtype in dtypes]
        )
        result = tuple(results) if several else results[0]
        return to_tensors(result) if wants_tensors(inputs) else result


class PyFunc(Primitive):
    """An operation that `fn` computes on NumPy arrays, without a gradient; it returns a tuple.

    Args:
        fn: Takes an array for each input, and returns an array, or a tuple of them.
        in_types, in_shapes: Dtypes and shapes of the inputs, which are not checked.
        out_types, out_shapes: Dtypes and shapes of the results.
        stateful: Accepted for MindSpore scripts: it is called where the program calls it.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There are more dtypes than shapes, or fewer.

    Example:
        >>> import mixtrain
        >>> double = PyFunc(lambda x: 2 * x, [mixtrain.float32], [(2,)], [mixtrain.float32], [(2,)])
        >>> double(mixtrain.Tensor([1.0, 3.0]))[0].asnumpy().tolist()
        [2.0, 6.0]
    """

    def __init__(
        self, fn: Callable[..., Any], in_types: Sequence[DType], in_shapes: Sequence[Shape],
        out_types: Sequence[DType], out_shapes: Sequence[Shape], stateful: bool = True,
    ) -> None:
        super().__init__()
        for name, types, shapes in (("in", in_types, in_shapes), ("out", out_types, out_shapes)):
            for kind, value in (("types", types), ("shapes", shapes)):
                checks.instance(self.name, f"{name}_{kind}", value, (tuple, list), f"{name}_{kind}=[...]")
            if len(types) != len(shapes):
                raise checks.fail_value(self.name, f"{name}_shapes must be {len(types)}", len(shapes), "one for each")
        self._custom = Custom(fn, [*out_shapes], [*out_types])
        self._shapes = [tuple(shape) for shape in out_shapes]

    def __call__(self, *inputs: Tree) -> tuple[Tensor, ...]:
        """Compute the function of tensors, or of one tuple of them."""
        several = len(inputs) == 1 and isinstance(inputs[0], (tuple, list))
        results = self._custom(*inputs[0] if several else inputs)
        return tuple(keras.ops.reshape(result, shape) for result, shape in zip(results, self._shapes, strict=True))


def _input(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        raise checks.fail_type(_WHERE, "an input must be a tensor or a number", value, "each tensor as an input")
    return tensor(_WHERE, to_backend_tensors(value))


def _dtype_of(value: Tensor | complex) -> DType:
    return tensor_dtype(value) if backend.is_tensor(value) else pytype_to_dtype(type(value))


def _fitted(value: Any, shape: Sequence[int | None], dtype: DType) -> np.ndarray:
    """Return a result of the function in its shape and dtype; a number is converted, another array is an error."""
    array = np.asarray(value)
    wanted = np.dtype(dtype.name)
    if array.ndim and not np.can_cast(array.dtype, wanted):
        raise RuntimeError(f"{_WHERE}: the function must return {dtype.name}, the out_dtype; got {array.dtype}. Write "
                           f"result.astype(np.{dtype.name}) in it.")
    if None in shape:
        return array.astype(wanted)
    if array.size != math.prod(shape):  # type: ignore[arg-type]
        raise RuntimeError(f"{_WHERE}: the function must return an array of the out_shape {tuple(shape)}; got "
                           f"{array.shape}. Write the shape that it returns.")
    return array.astype(wanted).reshape(shape)  # type: ignore[arg-type]


def _not_differentiable(*_: Any) -> NoReturn:
    raise RuntimeError(f"{_WHERE}: the gradient of the function is not known. Write bprop=..., a function of the "
                       "inputs, the result and its gradient.")
