"""`custom_backward`: a function whose gradients another function computes, as the `bprop` of a Cell does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import in_mode, to_backend_tensors, to_tensors, wants_tensors
from mixtrain.dtype import is_float
from mixtrain.ops.inputs import tensor
from mixtrain.typing import Tensor, Tree


def custom_backward(where: str, function: Callable[..., Tree], backward: Callable[..., Any]) -> Callable[..., Tree]:
    """Return a function with the gradients that `backward` computes, as the `bprop` of MindSpore's cells does.

    `where`: Who has the two functions, for errors. `function`: Takes positional arguments and returns a tensor or a
    tree of them. Variables that it reads get no gradients. `backward`: Takes the arguments, what the function returned
    and the gradients of that, and returns the tuple of the arguments' gradients; None, or 0, where there is none.

    Example:
        >>> import mixtrain
        >>> double = custom_backward("double", lambda x: 2 * x, lambda x, out, dout: (10 * dout,))
        >>> float(mixtrain.grad(double)(mixtrain.Tensor(3.0)))
        10.0
    """

    def call(*args: Tree, **named: Tree) -> Tree:
        if named:  # The other function takes them by position.
            bound = inspect.signature(function).bind(*args, **named)
            bound.apply_defaults()
            args = bound.args
        # Before the function, which may write to them in place.
        inputs = [_value_of(where, leaf) for leaf in keras.tree.flatten(args)]
        outputs = function(*args)
        results = keras.tree.flatten(to_backend_tensors(outputs))
        in_floats, out_floats = _float_positions(inputs), _float_positions(results)
        if not in_floats or not out_floats:
            return outputs
        wants = wants_tensors(args, outputs)

        def rule(
            values: Sequence[Tensor], computed: Sequence[Tensor], gradients: Sequence[Tensor]
        ) -> list[Tensor]:
            zeros = [keras.ops.zeros_like(leaf) if backend.is_tensor(leaf) else None for leaf in results]
            arguments = (
                *keras.tree.pack_sequence_as(args, _with_values(inputs, in_floats, values)),
                keras.tree.pack_sequence_as(outputs, _with_values(results, out_floats, computed)),
                keras.tree.pack_sequence_as(outputs, _with_values(zeros, out_floats, gradients)),
            )
            with in_mode("tensors"):
                new = to_backend_tensors(backward(*(to_tensors(arguments) if wants else arguments)))
            leaves = _gradient_leaves(where, args, new)
            return [_fitted(where, leaves[index], value) for index, value in zip(in_floats, values, strict=True)]

        constants = [keras.ops.stop_gradient(results[index]) for index in out_floats]
        computed = backend.with_backward_rule([inputs[index] for index in in_floats], constants, rule)
        whole = keras.tree.pack_sequence_as(outputs, _with_values(results, out_floats, computed))
        return to_tensors(whole) if wants else whole

    return call


def _value_of(where: str, leaf: Any) -> Any:
    """Return the backend tensor of a Tensor or a variable, and other values as they are."""
    return tensor(where, leaf) if isinstance(leaf, keras.Variable) else to_backend_tensors(leaf)


def _float_positions(leaves: Sequence[Any]) -> list[int]:
    return [index for index, leaf in enumerate(leaves) if backend.is_tensor(leaf) and is_float(leaf.dtype)]


def _with_values(leaves: Sequence[Any], positions: Sequence[int], values: Sequence[Tensor]) -> list[Any]:
    """Return a list with other values at some positions."""
    changed = [*leaves]
    for index, value in zip(positions, values, strict=True):
        changed[index] = value
    return changed


def _gradient_leaves(where: str, args: Sequence[Tree], new: Any) -> list[Any]:
    """Return the gradients that `backward` returned, one for each leaf of the arguments."""
    new = tuple(new) if isinstance(new, (tuple, list)) else (new,)
    new = new[: len(args)]  # As in MindSpore, which some functions also return `dout`.
    if len(new) != len(args):
        raise checks.fail_type(
            f"{where}.bprop", f"it must return {len(args)} gradients, one for each input",
            f"a tuple of {len(new)}", "return (dout,) for one input, and None for one without a gradient",
        )
    leaves: list[Any] = []
    for argument, gradient in zip(args, new, strict=True):
        count = len(keras.tree.flatten(argument))
        own = [gradient] * count if gradient is None or isinstance(gradient, (int, float)) else _flat(gradient)
        if len(own) != count:
            raise checks.fail_type(
                f"{where}.bprop", f"the gradient of an input of {count} tensors must have as many", f"{len(own)}",
                "return gradients in the structure of the inputs",
            )
        leaves += own
    return leaves


def _flat(gradient: Tree) -> list[Any]:
    """Return the gradients of a tree, in which None counts as one."""
    if isinstance(gradient, (tuple, list)):
        return [leaf for item in gradient for leaf in _flat(item)]
    return [gradient] if gradient is None or backend.is_tensor(gradient) else keras.tree.flatten(gradient)


def _fitted(where: str, gradient: Any, value: Tensor) -> Tensor:
    """Return a gradient in the dtype and shape of its tensor, summed where that was broadcast; zeros for None."""
    if gradient is None:
        return keras.ops.zeros_like(value)
    fitted = keras.ops.cast(backend.to_tensor(gradient), value.dtype)
    if len(fitted.shape) == 0:
        return keras.ops.broadcast_to(fitted, keras.ops.shape(value))
    more = len(fitted.shape) - len(value.shape)
    if more > 0:
        fitted = keras.ops.sum(fitted, axis=tuple(range(more)))
    repeated = tuple(
        axis for axis, (size, own) in enumerate(zip(fitted.shape, value.shape, strict=False)) if own == 1 and size != 1
    )
    if repeated:
        fitted = keras.ops.sum(fitted, axis=repeated, keepdims=True)
    if len(fitted.shape) != len(value.shape) or any(
        None not in pair and pair[0] != pair[1] for pair in zip(fitted.shape, value.shape, strict=True)
    ):
        raise checks.fail_value(
            f"{where}.bprop", f"the gradient of an input of shape {tuple(value.shape)} must have its shape",
            tuple(fitted.shape), "a gradient of the shape of the input",
        )
    return fitted
