"""`vmap`: a function over an axis of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import UserTensor, in_mode, note_in_place, to_backend_tensors, to_tensors
from mixtrain.typing import Tensor, Tree


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

    cells = list(fn) if isinstance(fn, Iterable) and not isinstance(fn, str) else None  # Those of a CellList.
    if cells is None and not callable(fn):
        raise _refused("fn must be a function or a Cell", fn, "vmap(lambda row: row.sum())")
    if cells is not None and len(cells) < 2:
        raise _refused("a CellList must have several Cells", len(cells), "vmap(cell)")
    if out_axes is None and cells is None:
        raise _refused("out_axes must say where the results have the axis", None, "out_axes=0")

    def mapped(*args: Any) -> Tree:
        arguments = [to_backend_tensors(value) for value in args]
        leaves, axes = keras.tree.flatten(arguments), _axes_of("in_axes", arguments, in_axes)
        sizes = {
            keras.ops.shape(leaf)[_checked_axis("in_axes", axis, leaf)]
            for leaf, axis in zip(leaves, axes, strict=True) if axis is not None
        }
        if cells is None and len(sizes) != 1:
            expected = "the axes that are mapped over must be of one size" if sizes else "in_axes must not all be None"
            raise _refused(expected, sorted(sizes) or in_axes, "in_axes=0")
        if cells is not None and sizes - {len(cells)}:
            raise checks.fail_value(
                "vmap", f"the axes that are mapped over must be of size {len(cells)}, that of the CellList",
                sorted(sizes), "a Cell for each slice",
            )
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

        def one_by_one(functions: Iterable[Callable[..., Any]]) -> Tree:
            results = [
                call([leaf[index] for leaf in mapped_arguments], function) for index, function in enumerate(functions)
            ]
            return keras.tree.map_structure(lambda *leaves: keras.ops.stack(leaves), *results)

        if cells is None:
            before = backend.custom_gradient_count()
            outputs, contents = keras.ops.vectorized_map(call, tuple(mapped_arguments))
        if cells is not None or backend.custom_gradient_count() != before:
            outputs, contents = one_by_one(cells or [fn] * sizes.pop())
        _write_slices(args, axes, dict(zip(written, contents, strict=True)))
        # An output without such an axis is the same for all slices.
        moved = [
            leaf[0] if axis is None else keras.ops.moveaxis(leaf, 0, _checked_axis("out_axes", axis, leaf))
            for leaf, axis in zip(keras.tree.flatten(outputs), _axes_of("out_axes", outputs, out_axes), strict=True)
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


def _axes_of(name: str, values: Tree, axes: Any) -> list[int | None]:
    """Return the axis of each tensor in a structure; axes may be those of whole parts of it."""
    if not isinstance(values, (tuple, list)) or not isinstance(axes, (tuple, list)):
        return [axes] * len(keras.tree.flatten(values))
    if len(values) != len(axes):
        raise _refused(f"{name} must have {len(values)} axes, one for each", axes, f"{name}=0")
    return [axis for pair in zip(values, axes, strict=True) for axis in _axes_of(name, *pair)]


def _checked_axis(name: str, axis: Any, leaf: Any) -> int:
    rank = len(keras.ops.shape(leaf))
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise _refused(f"{name} must be an axis of a tensor with {rank} of them", axis, f"{name}=0")
    return axis


def _refused(expected: str, got: Any, write: str) -> RuntimeError:
    """Return the error that MindSpore's scripts catch."""
    return RuntimeError(str(checks.fail_value("vmap", expected, got, write)))
