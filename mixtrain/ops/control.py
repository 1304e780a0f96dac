"""Functions of functions and of control flow: `partial`, `depend`, printing from a compiled step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.ops.primitive import Primitive, primitives
from mixtrain.typing import Tensor, TensorLike


def partial(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """`func`, a Cell, a primitive or any function, with its first `args` and its `kwargs` bound.

    Example: ``ops.partial(pow, 2)(5)``.
    """
    if not callable(func):
        raise checks.fail_type("partial", "func must be a function", func, "ops.partial(f, value)")
    return functools.partial(func, *args, **kwargs)


def chosen(index: Any, count: int) -> int | None:
    """Return the position of the one of `count` items that `index` means, or None; in a graph a tensor's value decides.

    Example: ``chosen(-1, 3)`` is 2.
    """
    for position in range(count):
        if index == position or index == position - count:
            return position
    return None


def depend(value: Any, expr: Any) -> Any:
    """Return `value` after the effects of the computation of `expr`, such as ``optimizer(grads)``.

    `expr` is unused: effects happen in program order here, in compiled functions too. Example:
    ``ops.depend(loss, update)``.
    """
    del expr
    return value


def print_(*input_x: Any) -> None:
    """Print values (`input_x`), one per line, at run time; in a compiled function too, unless XLA compiled it.

    Example: ``ops.print_("loss", Tensor([1.0, 2.0]))``.
    """
    leaves = keras.tree.flatten(list(input_x))
    tensors = [backend.to_tensor(leaf) for leaf in leaves if is_any_tensor(leaf)]

    def show(*arrays: np.ndarray) -> None:
        values = iter(arrays)
        for leaf in leaves:
            print(_format_tensor(leaf, next(values)) if is_any_tensor(leaf) else leaf)

    backend.call_python(show, tensors)


def constexpr(
    fn: Callable[..., Any] | None = None, get_instance: bool = True, name: str | None = None,
    reuse_result: bool = True, check: bool = True,
) -> Any:
    """Mark a function of constants that runs while compiling; here `fn` is returned unchanged, or a decorator for None.

    `get_instance`, `name`, `reuse_result` and `check` are accepted. Example: ``@ops.constexpr``.
    """
    return (lambda function: function) if fn is None else fn


def get_grad(gradients: Any, identifier: TensorLike) -> Tensor:
    """Return one of the `gradients` that `grad` returned with ``return_ids=True``: pairs, or tuples of pairs.

    `identifier`: the position of an input, or a Parameter. Example: ``mixtrain.get_grad(gradients, 0)``.

    Raises: TypeError: It is neither. RuntimeError: No gradient was taken of it.
    """
    if type(identifier) is not int and not isinstance(identifier, keras.Variable):
        raise checks.fail_type("get_grad", "identifier must be an int or a Parameter", identifier, "0")
    expected = getattr(identifier, "name", identifier)
    for key, gradient in _pairs(gradients):
        if type(key) is type(expected) and key == expected:
            return gradient
    raise RuntimeError(
        f"get_grad: expected an input or a Parameter that gradients were taken of; got {expected}. Write "
        "grad(..., return_ids=True) of it."
    )


def _pairs(gradients: Any) -> list[tuple[Any, Tensor]]:
    if isinstance(gradients, (tuple, list)) and len(gradients) == 2 and isinstance(gradients[0], (int, str)):
        return [(gradients[0], gradients[1])]
    return [pair for part in gradients for pair in _pairs(part)] if isinstance(gradients, (tuple, list)) else []


def _format_tensor(tensor: Any, array: np.ndarray) -> str:
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    return f"Tensor(shape={list(array.shape)}, dtype={dtype[0].upper()}{dtype[1:]}, value={array})"


Partial, Depend, Print = primitives(Partial=partial, Depend=depend, Print=print_)


class Morph(Primitive):
    """The function `fn` as a primitive; its gradient is that of its operations.

    `infer_shape` and `infer_dtype` are accepted: the result has both. Example:
    ``ops.Morph(lambda x: 2 * x, None, None)(3)``.
    """

    def __init__(
        self, fn: Callable[..., Any], infer_shape: Callable[..., Any], infer_dtype: Callable[..., Any]
    ) -> None:
        super().__init__()
        if not callable(fn):
            raise checks.fail_type(self.name, "fn must be a function", fn, "Morph(f, None, None)")
        self.fn = fn

    def __call__(self, *args: Any) -> Any:
        """Return the result of the function."""
        return self.fn(*args)
