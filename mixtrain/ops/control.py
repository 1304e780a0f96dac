"""Functions of functions and of control flow: `partial`, `depend`, `vmap`, printing from a compiled step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import UserTensor, in_mode, note_in_place, to_backend_tensors, to_tensors
from mixtrain.ops.primitive import Primitive, primitives
from mixtrain.typing import Tensor, TensorLike, Tree


def partial(func: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """`func`, a Cell, a primitive or any function, with its first `args` bound. Example: ``ops.partial(pow, 2)(5)``."""
    if not callable(func):
        raise checks.fail_type("partial", "func must be a function", func, "ops.partial(f, value)")
    return functools.partial(func, *args)


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
    tensors = [backend.to_tensor(leaf) for leaf in leaves if _is_tensor(leaf)]

    def show(*arrays: np.ndarray) -> None:
        values = iter(arrays)
        for leaf in leaves:
            print(_format_tensor(leaf, next(values)) if _is_tensor(leaf) else leaf)

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
    """
    expected = getattr(identifier, "name", identifier)
    for key, gradient in _pairs(gradients):
        if type(key) is type(expected) and key == expected:
            return gradient
    raise checks.fail_value(
        "get_grad", "identifier must be one that gradients were taken of", expected,
        "grad(..., return_ids=True) of this input or Parameter",
    )


def vmap(fn: Callable[..., Any], in_axes: int | Tree = 0, out_axes: int | Tree = 0) -> Callable[..., Any]:
    """Vectorize `fn` over an axis of its arguments; a CellList gives each slice to one of its Cells.

    Args:
        fn: A function of tensors, or a Cell; or a CellList.
        in_axes: The axis of each argument to map over; None for an argument that is the same for all slices.
        out_axes: The position of that axis in the results.

    Example:
        >>> import mixtrain
        >>> mixtrain.vmap(lambda row: row.sum())(mixtrain.Tensor([[1.0, 2.0], [3.0, 4.0]])).asnumpy().tolist()
        [3.0, 7.0]
    """

    def mapped(*args: Any) -> Tree:
        arguments = [to_backend_tensors(value) for value in args]
        leaves, axes = keras.tree.flatten(arguments), _axes_of(arguments, in_axes)
        written: list[int] = []
        mapped_arguments = [
            keras.ops.moveaxis(backend.to_tensor(leaf), axis, 0)
            for leaf, axis in zip(leaves, axes, strict=True) if axis is not None
        ]

        def call(slices: Tree, function: Callable[..., Any] = fn) -> Tree:
            remaining = iter(slices)
            values = [leaf if axis is None else next(remaining) for leaf, axis in zip(leaves, axes, strict=True)]
            passed = to_tensors(keras.tree.pack_sequence_as(arguments, values))
            with in_mode("tensors"):
                results = keras.tree.map_structure(backend.to_tensor, to_backend_tensors(function(*passed)))
            contents = {
                index: leaf.content for index, leaf in enumerate(keras.tree.flatten(passed))
                if isinstance(leaf, UserTensor) and leaf.content is not values[index]
            }
            written[:] = contents
            return results, list(contents.values())

        if isinstance(fn, Iterable):  # A CellList.
            results = [
                call(keras.tree.map_structure(lambda leaf, n=index: leaf[n], mapped_arguments), cell)
                for index, cell in enumerate(fn)
            ]
            outputs, contents = keras.tree.map_structure(lambda *leaves: keras.ops.stack(leaves), *results)
        else:
            outputs, contents = keras.ops.vectorized_map(call, tuple(mapped_arguments))
        _write_slices(args, axes, dict(zip(written, contents, strict=True)))
        # An output without such an axis is the same for all slices.
        moved = [
            leaf[0] if axis is None else keras.ops.moveaxis(leaf, 0, axis)
            for leaf, axis in zip(keras.tree.flatten(outputs), _axes_of(outputs, out_axes), strict=True)
        ]
        return to_tensors(keras.tree.pack_sequence_as(outputs, moved))

    return mapped


def _write_slices(args: Sequence[Any], axes: Sequence[int | None], contents: dict[int, Tensor]) -> None:
    """Write to the Tensors and Parameters among the arguments what a mapped function wrote to their slices."""
    passed = keras.tree.flatten(args)
    for index, content in contents.items():
        axis = axes[index]
        if axis is None:
            got = f"a write to argument {index}, of axis None"
            raise checks.fail_value("vmap", "a function may write to what it maps over", got, "in_axes=0")
        if isinstance(passed[index], UserTensor):
            passed[index].store(keras.ops.moveaxis(content, 0, axis))
            note_in_place(passed[index])


def _axes_of(values: Tree, axes: Any) -> list[int | None]:
    """Return the axis of each tensor in a structure; axes may be those of whole parts of it."""
    if not isinstance(values, (tuple, list)) or not isinstance(axes, (tuple, list)):
        return [axes] * len(keras.tree.flatten(values))
    return [axis for pair in zip(values, axes, strict=True) for axis in _axes_of(*pair)]


def _pairs(gradients: Any) -> list[tuple[Any, Tensor]]:
    if isinstance(gradients, (tuple, list)) and len(gradients) == 2 and isinstance(gradients[0], (int, str)):
        return [(gradients[0], gradients[1])]
    return [pair for part in gradients for pair in _pairs(part)] if isinstance(gradients, (tuple, list)) else []


def _is_tensor(value: Any) -> bool:
    return backend.is_tensor(value) or isinstance(value, keras.Variable)


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
