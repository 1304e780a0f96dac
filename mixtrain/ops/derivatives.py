"""Derivatives of functions as functions: products with Jacobians, whole Jacobians, and higher orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from mixtrain import checks
from mixtrain.boundary import settled, wrapped
from mixtrain.ops.gradient import check_function
from mixtrain.ops.value_and_grad import value_and_grad


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _first_only(fn: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    return (lambda *args: fn(*args)[0]) if has_aux else fn


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute `fn` and return ``(outputs, function)``; that function returns the product of vectors and the Jacobian.

    Args:
        fn: A Cell or a function of tensors.
        inputs: What it is called with, and differentiated by.
        weights: Parameters that it is differentiated by as well, or None.
        has_aux: Whether only the first output is differentiated; the others are returned third.

    Example:
        >>> import mixtrain
        >>> value, back = mixtrain.vjp(lambda x: x * x, mixtrain.Tensor([3.0]))
        >>> back(mixtrain.Tensor([2.0])).asnumpy().tolist()
        [12.0]

    Source: MindSpore, `mindspore.vjp`.
    """
    check_function("vjp", fn)
    outputs = fn(*inputs)
    positions = tuple(range(len(inputs)))

    def back(*sens: Any) -> Any:
        grads = value_and_grad(
            _first_only(fn, has_aux), positions, weights=weights, sens_param=True
        )(*inputs, sens[0] if len(sens) == 1 else tuple(sens))
        return grads[1]

    if has_aux:
        rest = outputs[1:]
        return outputs[0], back, rest[0] if len(rest) == 1 else tuple(rest)
    return outputs, back


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute `fn` and the product of its Jacobian and vectors: ``(outputs, products)``.

    Args:
        fn: A Cell or a function of tensors.
        inputs: What it is called with: a tensor or a tuple.
        v: The vectors, one an input, of their shapes.
        has_aux: Whether only the first output is differentiated; the others are returned third.

    Example:
        >>> import mixtrain
        >>> x = mixtrain.Tensor([3.0])
        >>> [float(one) for one in mixtrain.jvp(lambda x: x * x, x, mixtrain.Tensor([2.0]))]
        [9.0, 12.0]

    Source: MindSpore, `mindspore.jvp`.
    """
    check_function("jvp", fn)
    given, vectors = _tuple(inputs), _tuple(v)
    outputs = fn(*given)
    aux = tuple(outputs[1:]) if has_aux else ()
    products = _pushed(_first_only(fn, has_aux), given, vectors, outputs[0] if has_aux else outputs)
    if has_aux:
        return outputs[0], products, aux[0] if len(aux) == 1 else aux
    return outputs, products


def _pushed(fn: Callable[..., Any], inputs: tuple[Any, ...], vectors: tuple[Any, ...], outputs: Any) -> Any:
    """Return the Jacobian times vectors: the gradient of its product with a dual vector, by that vector."""
    duals = tuple(wrapped(keras.ops.ones_like(settled(one))) for one in _tuple(outputs))
    positions = tuple(range(len(inputs)))

    def along(*duals: Any) -> Any:
        sens = duals if len(duals) > 1 else duals[0]
        found = value_and_grad(fn, positions, sens_param=True)(*inputs, sens)[1]
        pairs = zip(_tuple(found), vectors, strict=True)
        return sum((gradient * vector).sum() for gradient, vector in pairs)

    products = value_and_grad(along, tuple(range(len(duals))))(*duals)[1]
    return products if isinstance(outputs, (tuple, list)) else _tuple(products)[0]


def linearize(fn: Callable[..., Any], inputs: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute `fn` of `inputs`; return ``(outputs, function)``, which multiplies vectors by the Jacobian.

    Example: ``outputs, along = ops.linearize(fn, x)``. Source: MindSpore, `mindspore.ops.linearize`.
    """
    check_function("linearize", fn)
    given = _tuple(inputs)
    outputs = fn(*given)
    return outputs, lambda v: _pushed(fn, given, _tuple(v), outputs)


def _jacobian(name: str) -> Callable[..., Any]:
    def jacobian(fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
        check_function(name, fn)
        positions = _tuple(grad_position)

        def compute(*inputs: Any) -> Any:
            outputs = fn(*inputs)
            first = outputs[0] if has_aux else outputs
            found = [
                _rows(fn, inputs, positions, place if has_aux or isinstance(first, (tuple, list)) else None, one)
                for place, one in enumerate(_tuple(first))
            ]
            jacobians = tuple(found) if isinstance(first, (tuple, list)) else found[0]
            if has_aux:
                rest = tuple(outputs[1:])
                return jacobians, rest[0] if len(rest) == 1 else rest
            return jacobians

        return compute

    jacobian.__name__ = jacobian.__qualname__ = name
    jacobian.__doc__ = (
        "Return a function that computes the Jacobian of `fn`: outputs first, then the input at `grad_position` (an "
        "int or a tuple). With `has_aux` only the first output is differentiated, and the others are returned beside "
        f"it. Example: ``mixtrain.{name}(fn)(x)``. Source: MindSpore, `mindspore.{name}`."
    )
    return jacobian


def _rows(
    fn: Callable[..., Any], inputs: tuple[Any, ...], positions: tuple[int, ...], place: int | None, output: Any
) -> Any:
    """Return the Jacobian of one output, one backward pass an element."""
    shape = tuple(output.shape)
    count = int(keras.ops.size(keras.ops.zeros(shape)))
    one_of = fn if place is None else lambda *args: fn(*args)[place]
    back = value_and_grad(one_of, positions, sens_param=True)
    units = keras.ops.reshape(keras.ops.eye(count, dtype=output.dtype), (count, *shape))
    rows = [_tuple(back(*inputs, wrapped(units[number]))[1]) for number in range(count)]
    found = tuple(
        wrapped(keras.ops.reshape(
            keras.ops.stack([settled(row[number]) for row in rows]), (*shape, *inputs[position].shape)
        ))
        for number, position in enumerate(positions)
    )
    return found[0] if len(found) == 1 else found


jacfwd = _jacobian("jacfwd")
jacrev = _jacobian("jacrev")


def derivative(fn: Callable[..., Any], primals: Any, order: int) -> tuple[Any, Any]:
    """Compute `fn` of `primals` and its derivative of an `order`, element by element.

    Example: ``value, third = ops.derivative(fn, x, 3)``. Source: MindSpore, `mindspore.ops.derivative`.
    """
    checks.integer("ops.derivative", "order", order, at_least=1)
    values, function = _tuple(primals), fn
    single = not isinstance(primals, (tuple, list))
    for _ in range(order):
        function = _sloped(function, len(values))
    return fn(*values), function(*values) if single else _tuple(function(*values))


def _sloped(fn: Callable[..., Any], inputs: int) -> Callable[..., Any]:
    def slope(*args: Any) -> Any:
        found = value_and_grad(fn, tuple(range(inputs)))(*args)[1]
        return found if inputs == 1 else sum(_tuple(found)[1:], _tuple(found)[0])

    return slope


def jet(fn: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """Compute `fn` along a curve: its value and derivatives, from `primals` and the curve's derivatives `series`.

    Args:
        fn: A function of one tensor, element by element.
        primals: Where the curve begins.
        series: Its derivatives (order, *shape).

    Returns:
        ``(value, derivatives)``, those of the shape of `series`.

    Source: MindSpore, `mindspore.ops.jet`.
    """
    order = series.shape[0]

    def along(t: Any) -> Any:
        moved, power = primals, t
        for place in range(order):
            moved = moved + series[place] * power
            power = power * t / (place + 2)
        return fn(moved)

    zero = wrapped(keras.ops.zeros_like(settled(primals)))
    found, function = [], along
    for _ in range(order):
        function = _sloped(function, 1)
        found.append(settled(function(zero)))
    return fn(primals), wrapped(keras.ops.stack(found))
