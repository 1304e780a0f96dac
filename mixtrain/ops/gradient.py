"""Gradients of functions and networks, by position of the inputs and by list of the weights."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.autocast.casting import parameter_read_dtype, parameters_read_as
from mixtrain.boundary import running, settled, wants_tensors, wrapped
from mixtrain.dtype import float32, is_float, wider
from mixtrain.ops.inputs import format_of
from mixtrain.ops.primitive import Primitive


class GradOperation(Primitive):
    """Makes a function that computes gradients: ``grad(fn, weights)(*inputs)``.

    Args:
        get_all: Whether gradients are taken of all tensors among the inputs; else of the first.
        get_by_list: Whether gradients are taken of the weights (in place of the first input, or beside all).
        sens_param: Whether calls end with one more argument, or have a keyword ``sens``: what the output's gradient
            is, of the shape of the output (a tuple for several outputs). Else it is 1 everywhere.

    Returns:
        A call gives a function that returns the gradient of the first input; the tuple of all inputs' gradients; the
        weights' gradients, one for one Parameter and a tuple for a list; or a tuple of the last two. Something that
        the output does not depend on has a gradient of zeros.

    Raises:
        TypeError: An argument is no bool, or the function or the weights are none.
        ValueError: There are no weights to take gradients of, or `sens` has another shape than the output.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.GradOperation()(lambda x: x * x)(mixtrain.Tensor([3.0])).numpy().tolist()
        [6.0]

    Source: MindSpore, `mindspore.ops.GradOperation`.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        super().__init__()
        self.get_all = checks.boolean(self.name, "get_all", get_all)
        self.get_by_list = checks.boolean(self.name, "get_by_list", get_by_list)
        self.sens_param = checks.boolean(self.name, "sens_param", sens_param)

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Return the function that computes the gradients of `fn`.

        Args:
            fn: A Cell or a function; its outputs are tensors.
            weights: With `get_by_list`: a Parameter or a list of them; without, a Cell's trainable ones.
        """
        check_function(self.name, fn)
        if self.get_by_list and weights is None:
            weights = _weights_of(self.name, fn)
        held = weights_of(self.name, weights) if self.get_by_list else None

        def gradients(*inputs: Any, **named: Any) -> Any:
            inputs, named, sens = split_sens(self.name, inputs, named, self.sens_param)
            positions = tensor_positions(inputs) if self.get_all else () if self.get_by_list else (0,)
            if not tensor_positions(inputs) and not self.get_by_list:
                raise checks.fail_type(self.name, "an input must be a tensor", inputs, "gradient(mixtrain.Tensor(x))")
            _, inputs_found, weights_found = differentiate(self.name, fn, inputs, named, positions, held, sens)
            if self.get_by_list:
                by_list = as_given(weights, weights_found)
                return (inputs_found, by_list) if self.get_all else by_list
            return inputs_found if self.get_all else inputs_found[0]

        return gradients


def differentiate(
    where: str,
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    named: dict[str, Any],
    positions: Sequence[int],
    weights: Sequence[Any] | None,
    sens: Any = None,
    *,
    only_first: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Run a function and differentiate its outputs.

    Args:
        where: Who asks, for errors.
        fn: A Cell or a function.
        inputs: Its arguments; NumPy arrays become tensors.
        named: Its keyword arguments.
        positions: The inputs that gradients are taken of, among them tuples of tensors; numbers are passed over. The
            gradient of an integer tensor is zeros.
        weights: The variables that gradients are taken of, or None.
        sens: The gradient of the outputs: None for 1 everywhere, a number, a tensor, or one for each output.
        only_first: Whether only the first output is differentiated.

    Returns:
        ``(outputs, gradients of inputs, gradients of weights)``.
    """
    wants = wants_tensors(inputs, named)
    hooks: list[Any] = [getattr(value, "gradient_hooks", None) for value in inputs]
    inputs = [_as_input(settled(value), index in positions) for index, value in enumerate(inputs)]
    sens = settled(sens)
    watched_at = tensor_positions(inputs, positions)
    watched = [inputs[index] for index in watched_at]
    tensors = [value for value in keras.tree.flatten(watched) if _is_float_tensor(value)]
    weights = list(weights or ())
    read_as = parameter_read_dtype()

    def forward(*given: Any) -> tuple[Any, Any]:
        with parameters_read_as(read_as):
            outputs = _called(fn, _with_tensors(inputs, watched_at, given), named, wants)
        first = outputs[:1] if only_first and isinstance(outputs, (tuple, list)) else outputs
        return _weighted(where, first, sens), outputs

    with parameters_read_as(None):  # The variables themselves are looked at, not their casts.
        _, outputs, found = backend.value_and_gradient(forward, weights, tensors)
    dense = [_dense(gradient, of) for gradient, of in zip(found, [*weights, *tensors], strict=True)]
    of_tensors = iter(dense[len(weights) :])

    def gradient_of(value: Any) -> Any:
        if _is_float_tensor(value):
            return next(of_tensors)
        return keras.ops.zeros_like(value) if backend.is_tensor(value) else value

    by_input = tuple(keras.tree.map_structure(gradient_of, watched))
    results = outputs, by_input, tuple(dense[: len(weights)])
    if not wants:
        return results
    outputs, by_input, by_weight = wrapped(results)
    hooked = tuple(
        one if hooks[index] is None else hooks[index]((one,)) for index, one in zip(watched_at, by_input, strict=True)
    )
    return outputs, hooked, by_weight


def _called(fn: Callable[..., Any], inputs: Sequence[Any], named: dict[str, Any], wants: bool) -> Any:
    """Return the outputs of a user's function, which gets Tensors where its caller uses them, as backend tensors."""
    if not wants:
        return settled(fn(*inputs, **settled(named)))
    with running("tensors"):
        return settled(fn(*wrapped(inputs), **wrapped(named)))


def _with_tensors(inputs: Sequence[Any], places: Sequence[int], tensors: Sequence[Any]) -> list[Any]:
    """Return the inputs with other float tensors in those places, in order."""
    rest = iter(tensors)
    return [
        keras.tree.map_structure(lambda leaf: next(rest) if _is_float_tensor(leaf) else leaf, value)
        if index in places else value
        for index, value in enumerate(inputs)
    ]


def _as_input(value: Any, watched: bool) -> Any:
    """Return an argument as the function gets it; a variable that gradients are taken of comes as its value."""
    if isinstance(value, np.ndarray) or (watched and isinstance(value, keras.Variable)):
        return backend.to_tensor(value)
    return value


def _is_float_tensor(value: Any) -> bool:
    return backend.is_tensor(value) and is_float(value.dtype)


def tensor_positions(inputs: Sequence[Any], positions: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the places (among `positions`, or all) of the inputs that are tensors or structures with tensors."""
    tensors = (*backend.TENSOR_TYPES, np.ndarray, keras.Variable)
    return tuple(
        index for index in (range(len(inputs)) if positions is None else positions)
        if any(isinstance(value, tensors) for value in keras.tree.flatten(inputs[index]))
    )


def _dense(gradient: Any, source: Any) -> Any:
    """Return a gradient as a tensor of the format of what it belongs to; zeros where there is none."""
    dtype = getattr(source, "stored_dtype", None) or format_of(source)
    if gradient is None:
        return keras.ops.zeros(keras.ops.shape(source), dtype)
    return keras.ops.cast(backend.densified(gradient), dtype)


def _weighted(where: str, outputs: Any, sens: Any) -> Any:
    """Return what is differentiated: the float outputs times their gradients, in at least float32, as one tensor."""
    found = [value for value in keras.tree.flatten(outputs) if backend.is_tensor(value)]
    given = [None] * len(found) if sens is None else [sens] if len(found) == 1 else keras.tree.flatten(sens)
    if len(given) != len(found):
        raise checks.fail_value(where, f"sens must have {len(found)} gradients, one an output", len(given), "a tuple")
    terms = [_term(where, value, one) for value, one in zip(found, given, strict=True) if is_float(value.dtype)]
    if not terms:
        raise checks.fail_type(where, "the function must return a float tensor", outputs, "return loss")
    return terms[0] if len(terms) == 1 else sum(keras.ops.sum(term) for term in terms)


def _term(where: str, value: Any, sens: Any) -> Any:
    value = keras.ops.cast(value, wider(value.dtype, float32))
    if sens is None:
        return value
    sens = keras.ops.cast(backend.to_tensor(sens), value.dtype)
    shape, wanted = tuple(sens.shape), tuple(value.shape)
    if shape not in ((), wanted) and None not in (*shape, *wanted):
        raise checks.fail_value(
            where, f"sens must have the shape of the output {wanted}", shape, "ops.fill(loss.dtype, loss.shape, scale)"
        )
    return value * sens


# ---- what the callers share ---------------------------------------------------------------------------------------
def check_function(where: str, fn: Any) -> None:
    """Raise a TypeError unless `fn` can be called."""
    if not callable(fn) or isinstance(fn, type):
        raise checks.fail_type(where, "fn must be a Cell or a function", fn, f"{where}(net)")


def weights_of(where: str, weights: Any) -> tuple[Any, ...] | None:
    """Return one weight or a list of them as a tuple; None stays None.

    Raises:
        TypeError: An item is no Parameter or Keras variable.
    """
    if weights is None:
        return None
    items = (weights,) if isinstance(weights, keras.Variable) else tuple(weights)
    for item in items:
        checks.instance(where, "each of the weights", item, keras.Variable, "weights=net.trainable_params()")
    return items


def _weights_of(where: str, fn: Any) -> list[Any]:
    """Return the trainable parameters of a Cell."""
    if not hasattr(fn, "trainable_params"):
        raise checks.fail_value(
            where, "get_by_list needs weights, for the function is no Cell", None, "grad(fn, net.trainable_params())"
        )
    return list(fn.trainable_params())


def as_given(weights: Any, found: tuple[Any, ...]) -> Any:
    """Return the weights' gradients: one for one Parameter, else a tuple."""
    return found[0] if isinstance(weights, keras.Variable) else found


def split_sens(
    where: str, inputs: Sequence[Any], named: dict[str, Any], wanted: bool
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return ``(inputs, keyword arguments, sens)``; `sens` is the keyword of that name, else the last input."""
    if not wanted:
        return tuple(inputs), named, None
    if "sens" in named:
        return tuple(inputs), {name: value for name, value in named.items() if name != "sens"}, named["sens"]
    if not inputs:
        raise checks.fail_value(where, "sens_param=True needs one more argument", "none", "gradient(*inputs, sens)")
    return tuple(inputs[:-1]), named, inputs[-1]


def is_position(value: Any) -> bool:
    """Whether `value` is an int."""
    return isinstance(value, numbers.Integral)
