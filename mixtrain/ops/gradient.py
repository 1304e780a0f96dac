"""Gradients of functions and networks by inputs, chosen by position, and by weights."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import (
    in_mode,
    is_any_tensor,
    refuse_without_gradients,
    to_backend_tensors,
    to_current_values,
    to_tensors,
    wants_tensors,
)
from mixtrain.dtype import as_dtype, bool_, float32, int64, is_complex, is_float, wider
from mixtrain.ops.inputs import tensor_dtype
from mixtrain.ops.parameter_reads import on_trial, parameter_read_dtype, parameters_read_as
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.repeated_forward import run_gradient
from mixtrain.seed import unmoved_streams
from mixtrain.step.gradient_hooks import hooked
from mixtrain.typing import Tensor, Tree, Variable


class GradOperation(Primitive):
    """Makes a function that computes gradients: ``grad(fn, weights)(*inputs)``.

    Args:
        get_all: Whether to differentiate by all tensors among the inputs; else by the first.
        get_by_list: Whether to differentiate by the weights (instead of the first input, or besides all inputs).
        sens_param: Whether calls pass the gradient of the output as one more argument, or as the keyword ``sens``. It
            has the shape of the output (a tuple for several outputs). Else it is 1 everywhere.

    Returns:
        A call returns a function, which returns the gradient of the first input; the tuple of the gradients of all
        inputs; the gradients of the weights, one for one Parameter and a tuple for a list; or a tuple of the last two.
        Inputs and weights that the output does not depend on have a gradient of zeros. Inputs by keyword follow those
        by position, in the order of the call; without a tensor among the inputs their gradient is ``()``.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.GradOperation()(lambda x: x * x)(mixtrain.Tensor([3.0])).numpy().tolist()
        [6.0]
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        super().__init__()
        self.get_all = checks.boolean(self.name, "get_all", get_all)
        self.get_by_list = checks.boolean(self.name, "get_by_list", get_by_list)
        self.sens_param = checks.boolean(self.name, "sens_param", sens_param)

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Return the function that computes the gradients of `fn`, a Cell or a function whose outputs are tensors.

        `weights`: with `get_by_list`, a Parameter or a list of them; None for the trainable ones of the Cell `fn`.
        """
        check_function(self.name, fn)
        if self.get_by_list and weights is None:
            weights = _trainable_params(self.name, fn)
        variables = weights_of(self.name, weights) if self.get_by_list else None

        def gradients(*inputs: Any, **kwargs: Any) -> Tree:
            inputs, kwargs, sens = split_sens(self.name, inputs, kwargs, self.sens_param)
            all_positions = tensor_positions((*inputs, *kwargs.values()))
            positions = all_positions if self.get_all else () if self.get_by_list else (0,)
            _, by_input, by_weight = differentiate(self.name, fn, inputs, kwargs, positions, variables, sens)
            if self.get_by_list:
                by_list = like_weights(weights, by_weight)
                return (by_input, by_list) if self.get_all else by_list
            return by_input if self.get_all or not by_input else by_input[0]

        return gradients


def differentiate(
    where: str, fn: Callable[..., Any], inputs: Sequence[Any], named: dict[str, Any], positions: Sequence[int],
    weights: Sequence[Variable] | None, sens: Tree = None, *, only_first: bool = False,
) -> tuple[Tree, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Run a function and return ``(outputs, gradients of inputs, gradients of weights)``.

    `where`: Name of the caller, for errors. `fn`: A Cell or a function. `inputs`: Its arguments; NumPy arrays become
    tensors. `named`: Its keyword arguments. `positions`: The arguments to differentiate by, counted through `inputs`
    and then `named`: tensors or tuples of tensors; numbers are skipped. The gradient of integers is zeros beside those
    of floats, else that of `_of_integers`. `weights`: The variables to differentiate by, or None; the gradient of one
    without `requires_grad` is zeros. `sens`: The gradient of the outputs: None for 1 everywhere, a number, a tensor, or
    one for each output. `only_first`: Whether only the first output counts.
    """
    refuse_without_gradients(where)
    wants = wants_tensors(inputs, named)
    names, passed = tuple(named), (*inputs, *named.values())
    hooks: list[Any] = [getattr(value, "gradient_hooks", None) for value in passed]
    inputs = [_as_input(to_backend_tensors(value), index in positions) for index, value in enumerate(passed)]
    sens = to_backend_tensors(sens)
    watched_at = tensor_positions(inputs, positions)
    watched = [inputs[index] for index in watched_at]
    tensors = [value for value in keras.tree.flatten(watched) if _is_float_tensor(value)]
    weights = list(weights or ())
    if not tensors and (watched or weights) and all(map(_is_whole, weights)):
        return _of_integers(where, fn, inputs, names, positions, weights, sens, wants, only_first=only_first)
    read_dtype = parameter_read_dtype()

    def forward(*tensors: Tensor) -> tuple[Tensor, Tree]:
        with parameters_read_as(read_dtype):
            outputs = _call(fn, _with_tensors(inputs, watched_at, tensors), names, wants)
        first = outputs[:1] if only_first and isinstance(outputs, (tuple, list)) else outputs
        # Without anything to differentiate by, the outputs may be of any kind.
        return _weighted_sum(where, first, sens) if tensors or weights else keras.ops.zeros(()), outputs

    with parameters_read_as(None):  # Differentiate by the variables themselves, not by their casts.
        _, outputs, gradients = run_gradient(fn, passed, lambda: backend.value_and_gradient(forward, weights, tensors))
    dense = [_dense(gradient, source) for gradient, source in zip(gradients, [*weights, *tensors], strict=True)]
    changed = hooked(dense[: len(weights)], weights)
    dense[: len(weights)] = [_dense(gradient, weight) for gradient, weight in zip(changed, weights, strict=True)]
    tensor_gradients = iter(dense[len(weights) :])

    def gradient_of(value: Any) -> Tensor:
        if _is_float_tensor(value):
            return next(tensor_gradients)
        return keras.ops.zeros_like(value) if backend.is_tensor(value) else value

    for gradient, weight in zip(dense, weights, strict=False):
        if backend.takes_next_value(weight):
            backend.mark_next_value(gradient)
    by_input = tuple(keras.tree.map_structure(gradient_of, watched))
    results = outputs, by_input, _of_trainable(dense, weights)
    if not wants:
        return results
    outputs, by_input, by_weight = to_tensors(results)
    by_input = tuple(
        gradient if hooks[index] is None else hooks[index]((gradient,))
        for index, gradient in zip(watched_at, by_input, strict=True)
    )
    return outputs, by_input, by_weight


def _of_integers(
    where: str, fn: Callable[..., Any], inputs: Sequence[Any], names: tuple[str, ...], positions: Sequence[int],
    weights: Sequence[Variable], sens: Tree, wants: bool, *, only_first: bool,
) -> tuple[Tree, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return what `differentiate` does where all inputs and weights to differentiate by are integers.

    As in MindSpore the gradient is that of the same numbers as floats, rounded towards zero; zeros for bools, for what
    takes no floats, as an index does, and for what returns none. That is found on trial, before the call that counts.
    """
    sources = [*(inputs[index] for index in tensor_positions(inputs, positions)), *weights]
    found: Sequence[Any] = [None] * len(keras.tree.flatten(sources))
    integers = any(map(_is_integer, keras.tree.flatten(sources)))
    for dtype in dict.fromkeys(map(backend.canonical_dtype, ("float64", "float32") if integers else ())):
        floats = [
            _as_floats(value, dtype) if index in positions else value for index, value in enumerate(inputs)
        ]
        known = len(floats)

        def call(*passed: Any, dtype: str = dtype, known: int = known) -> Tree:
            own = {id(weight): value for weight, value in zip(weights, passed[known:], strict=True)}
            with on_trial(as_dtype(dtype), own):
                return _call(fn, passed[:known], names, wants)

        passed = [*floats, *_as_floats([*map(backend.to_tensor, weights)], dtype)]
        at = [*positions, *range(known, len(passed))]
        try:
            with unmoved_streams():
                gradients = differentiate(where, call, passed, {}, at, None, sens, only_first=only_first)[1]
        except Exception:  # What the function raises of floats, it does not of its own inputs.
            continue
        found = keras.tree.flatten(to_backend_tensors(gradients))
        break
    outputs = _call(fn, inputs, names, wants)
    first = outputs[:1] if only_first and isinstance(outputs, (tuple, list)) else outputs
    tensors = [value for value in keras.tree.flatten(first) if backend.is_tensor(value)]
    # Refuses what does not fit.
    _weighted_sum(where, [keras.ops.cast(value, float32) for value in tensors] if tensors else first, sens)
    remaining = iter(found)
    gradients = keras.tree.map_structure(lambda value: _in_integers(next(remaining), value), tuple(sources))
    first_weight = len(sources) - len(weights)
    results = outputs, gradients[:first_weight], _of_trainable(gradients[first_weight:], weights)
    return to_tensors(results) if wants else results


def _of_trainable(gradients: Sequence[Tensor], weights: Sequence[Variable]) -> tuple[Tensor, ...]:
    """Return the gradients of weights, zeros for those without `requires_grad`."""
    return tuple(
        gradient if getattr(weight, "requires_grad", True) else keras.ops.zeros_like(gradient)
        for gradient, weight in zip(gradients, weights, strict=False)
    )


def _as_floats(value: Tree, dtype: str) -> Tree:
    return keras.tree.map_structure(lambda leaf: keras.ops.cast(leaf, dtype) if _is_integer(leaf) else leaf, value)


def _is_integer(value: Any) -> bool:
    return _is_whole(value) and tensor_dtype(value) != bool_


def _is_whole(value: Any) -> bool:
    """Whether a value is a tensor or variable of integers or bools."""
    return is_any_tensor(value) and not (is_float(value.dtype) or is_complex(value.dtype))


def _in_integers(gradient: Any, value: Any) -> Any:
    if not _is_whole(value):
        return value
    # By way of int64: out of the range of a narrow dtype, backends would round in ways of their own.
    return keras.ops.zeros_like(value) if gradient is None else keras.ops.cast(
        backend.to_tensor(gradient, int64), value.dtype
    )


def _call(fn: Callable[..., Any], inputs: Sequence[Any], names: tuple[str, ...], wants: bool) -> Tree:
    """Call a user's function, with Tensors if its caller uses them, and return its outputs as backend tensors.

    `names`: Those of the last inputs, which are passed by keyword.
    """
    fn, count = backend.branching(fn), len(inputs) - len(names)
    inputs = to_tensors(inputs) if wants else inputs
    with in_mode("tensors") if wants else contextlib.nullcontext():
        outputs = fn(*inputs[:count], **dict(zip(names, inputs[count:], strict=True)))
    return to_current_values(to_backend_tensors(outputs))


def _with_tensors(inputs: Sequence[Any], positions: Sequence[int], tensors: Sequence[Tensor]) -> list[Any]:
    """Return the inputs with the float tensors at `positions` replaced by `tensors`, in order."""
    remaining = iter(tensors)
    return [
        keras.tree.map_structure(lambda leaf: next(remaining) if _is_float_tensor(leaf) else leaf, value)
        if index in positions else value
        for index, value in enumerate(inputs)
    ]


def _as_input(value: Any, watched: bool) -> Any:
    """Return an argument as the function receives it; a variable to differentiate by becomes its value."""
    if isinstance(value, np.ndarray) or (watched and isinstance(value, keras.Variable)):
        return backend.to_tensor(value)
    return value


def _is_float_tensor(value: Any) -> bool:
    return backend.is_tensor(value) and (is_float(value.dtype) or is_complex(value.dtype))


def tensor_positions(inputs: Sequence[Any], positions: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the positions (among `positions`, or all) of the inputs that are tensors or structures with tensors."""
    tensors = (*backend.TENSOR_TYPES, np.ndarray, keras.Variable)
    return tuple(
        index for index in (range(len(inputs)) if positions is None else positions) if index < len(inputs)
        if any(isinstance(value, tensors) for value in keras.tree.flatten(inputs[index]))
    )


def _dense(gradient: Tensor | None, source: Tensor) -> Tensor:
    """Return a gradient as a dense tensor of the dtype of its source; zeros if it is None."""
    dtype = getattr(source, "stored_dtype", None) or tensor_dtype(source)
    if gradient is None:
        return keras.ops.zeros(keras.ops.shape(source), dtype)
    return keras.ops.cast(backend.densified(gradient), dtype)


def _weighted_sum(where: str, outputs: Tree, sens: Tree) -> Tensor:
    """Return the outputs times their `sens`, in at least float32, as the one tensor to differentiate.

    Of complex numbers that is the real part of the product with the conjugate of `sens`, as in MindSpore and PyTorch.
    """
    leaves = keras.tree.flatten(outputs)
    tensors = [value for value in leaves if backend.is_tensor(value)]
    nested = len(leaves) > 1 or isinstance(sens, (tuple, list, dict))
    weights = [None] * len(tensors) if sens is None else keras.tree.flatten(sens) if nested else [sens]
    if len(weights) == len(leaves):  # What is no tensor has a place among them too.
        weights = [weight for weight, value in zip(weights, leaves, strict=True) if backend.is_tensor(value)]
    if len(weights) != len(tensors):
        raise checks.fail_value(
            where, f"sens must have {len(tensors)} gradients, one an output", len(weights), "a tuple"
        )
    terms = [
        _weighted(where, value, weight)
        for value, weight in zip(tensors, weights, strict=True) if is_float(value.dtype) or is_complex(value.dtype)
    ]
    if not terms:
        if outputs is not None and all(map(_is_constant, keras.tree.flatten(outputs))):
            return keras.ops.zeros(())  # Of sizes, comparisons and the like the gradients are zeros, as in MindSpore.
        raise checks.fail_type(where, "the function must return a float tensor", outputs, "return loss")
    return terms[0] if len(terms) == 1 else sum(keras.ops.sum(term) for term in terms)


def _is_constant(leaf: Any) -> bool:
    return leaf.dtype == bool_ if backend.is_tensor(leaf) else isinstance(leaf, int)


def _weighted(where: str, value: Tree, sens: Tree) -> Tensor:
    if is_complex(value.dtype):
        return keras.ops.real(value if sens is None else _weighted_by(where, value, keras.ops.conj(sens)))
    value = keras.ops.cast(value, wider(value.dtype, float32))
    return value if sens is None else _weighted_by(where, value, sens)


def _weighted_by(where: str, value: Tensor, sens: Tree) -> Tensor:
    sens = keras.ops.cast(backend.to_tensor(sens), value.dtype)
    if value.shape == () and set(sens.shape) == {1}:  # As MindSpore takes it.
        sens = keras.ops.reshape(sens, ())
    shape, expected = tuple(sens.shape), tuple(value.shape)
    if shape not in ((), expected) and None not in (*shape, *expected):
        raise checks.fail_value(
            where, f"sens must have the shape of the output {expected}", shape,
            "ops.fill(loss.dtype, loss.shape, scale)",
        )
    return value * sens


# ---- Arguments, for all callers of `differentiate` ----------------------------------------------------------------
def check_function(where: str, fn: Any) -> None:
    """Raise a TypeError unless `fn` is a function or a callable object."""
    if not callable(fn) or isinstance(fn, type):
        raise checks.fail_type(where, "fn must be a Cell or a function", fn, f"{where}(net)")


def weights_of(where: str, weights: Any) -> tuple[Variable, ...] | None:
    """Return one Parameter or Keras variable or a list of them as a tuple; None stays None."""
    if weights is None:
        return None
    items = (weights,) if isinstance(weights, keras.Variable) else tuple(weights)
    for item in items:
        checks.instance(where, "each of the weights", item, keras.Variable, "weights=net.trainable_params()")
    return items


def _trainable_params(where: str, fn: Any) -> list[Variable]:
    """Return the trainable parameters of a Cell."""
    if not hasattr(fn, "trainable_params"):
        raise checks.fail_value(
            where, "get_by_list needs weights, for the function is no Cell", None, "grad(fn, net.trainable_params())"
        )
    return list(fn.trainable_params())


def like_weights(weights: Any, gradients: tuple[Tensor, ...]) -> Tree:
    """Return the gradients of the weights: one for one Parameter, else a tuple."""
    return gradients[0] if isinstance(weights, keras.Variable) else gradients


def split_sens(
    where: str, inputs: Sequence[Any], named: dict[str, Any], has_sens: bool
) -> tuple[tuple[Any, ...], dict[str, Any], Tree]:
    """Return ``(inputs, keyword arguments, sens)``; `sens` is the keyword of that name, else the last input."""
    if not has_sens:
        return tuple(inputs), named, None
    if "sens" in named:
        return tuple(inputs), {name: value for name, value in named.items() if name != "sens"}, named["sens"]
    if not inputs:
        raise checks.fail_value(where, "sens_param=True needs one more argument", "none", "gradient(*inputs, sens)")
    return tuple(inputs[:-1]), named, inputs[-1]


def is_int(value: Any) -> bool:
    """Whether `value` is an int."""
    return isinstance(value, numbers.Integral)
