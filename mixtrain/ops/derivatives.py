"""Function transformations: Jacobian products, Jacobians, and derivatives of higher order."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.boundary import UserTensor, to_backend_tensors, to_tensors
from mixtrain.dtype import float32, is_float
from mixtrain.ops.gradient import check_function, tensor_positions
from mixtrain.ops.inputs import tensor_dtype
from mixtrain.ops.repeated_forward import noting_forward, repeat_forward
from mixtrain.ops.value_and_grad import grad, value_and_grad
from mixtrain.typing import Tensor, TensorLike, Tree


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _unpack(values: tuple[Any, ...]) -> Any:
    """Return the only item of a tuple, or the tuple."""
    return values[0] if len(values) == 1 else values


def _without_aux(fn: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    return (lambda *args: fn(*args)[0]) if has_aux else fn


def vjp(fn: Callable[..., Any], *inputs: TensorLike, weights: Any = None, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute `fn` of `inputs` and return ``(outputs, vjp_fn)``; `vjp_fn` computes vector-Jacobian products.

    It takes the vectors of the outputs, and returns a tuple with the product of each input; with `weights`, a pair of
    that and those of the weights.

    Args:
        fn: A Cell or a function of tensors.
        inputs: Its arguments, which it is differentiated by.
        weights: Parameters to differentiate by as well, or None.
        has_aux: Whether to differentiate only the first output; the others are returned as a third item.

    Example:
        >>> import mixtrain
        >>> value, vjp_fn = mixtrain.vjp(lambda x: x * x, mixtrain.Tensor([3.0]))
        >>> vjp_fn(mixtrain.Tensor([2.0]))[0].asnumpy().tolist()
        [12.0]
    """
    check_function("vjp", fn)
    _check_tensors("vjp", inputs)
    with noting_forward(fn):
        outputs = fn(*inputs)
    positions = tuple(range(len(inputs)))

    def vjp_fn(*sens: TensorLike) -> Tree:
        sens = tuple(sens[0]) if len(sens) == 1 and isinstance(sens[0], (tuple, list)) else sens
        repeat_forward(fn, inputs)  # However often it is called, moving statistics move once.
        function = value_and_grad(_without_aux(fn, has_aux), positions, weights=weights, sens_param=True)
        gradients = function(*inputs, _unpack(sens))[1]
        by_input, by_weight = (gradients, None) if weights is None else gradients
        by_input = by_input if len(inputs) > 1 else (by_input,)
        return by_input if weights is None else (by_input, by_weight)

    return (outputs[0], vjp_fn, _unpack(tuple(outputs[1:]))) if has_aux else (outputs, vjp_fn)


def _check_tensors(where: str, values: Sequence[TensorLike]) -> None:
    for value in values:
        if not tensor_positions([value]):
            raise checks.fail_type(where, "inputs must be Tensors", value, f"{where}(fn, mixtrain.Tensor(1.0))")


def jvp(
    fn: Callable[..., Any], inputs: TensorLike | Sequence[TensorLike], v: TensorLike | Sequence[TensorLike],
    has_aux: bool = False,
) -> tuple[Tree, ...]:
    """Compute `fn` of `inputs`, a tensor or a tuple, and Jacobian-vector products: ``(outputs, products)``.

    The vectors `v` have the shapes of the inputs; with `has_aux` only the first output is differentiated, and the
    others are returned as a third item. Example: ``mixtrain.jvp(lambda x: x * x, Tensor([3.0]), Tensor([2.0]))`` is
    ``([9.0], [12.0])``.
    """
    check_function("jvp", fn)
    arguments, vectors = _tuple(inputs), _tuple(v)
    _check_tensors("jvp", (*arguments, *vectors))
    if len(vectors) != len(arguments):
        raise checks.fail_value("jvp", f"v must have {len(arguments)} vectors, one an input", len(vectors), "(vx, vy)")
    outputs = fn(*arguments)
    products = _jvp(_without_aux(fn, has_aux), arguments, vectors, outputs[0] if has_aux else outputs)
    return (outputs[0], products, _unpack(tuple(outputs[1:]))) if has_aux else (outputs, products)


def _jvp(fn: Callable[..., Any], inputs: tuple[Tensor, ...], vectors: tuple[Tensor, ...], outputs: Tree) -> Tree:
    """Compute Jacobian-vector products by two backward passes: J v is the gradient of (u J) v by u."""
    if all(_is_int(value) for value in inputs):  # As MindSpore has it: the products of the same numbers as floats.
        inputs, vectors = (tuple(value.astype(float32) for value in values) for values in (inputs, vectors))
    duals = tuple(
        to_tensors(keras.ops.ones_like(to_backend_tensors(value.astype(float32) if _is_int(value) else value)))
        for value in _tuple(outputs)
    )
    positions = tuple(range(len(inputs)))

    def product(*duals: Tensor) -> Tree:
        gradients = value_and_grad(fn, positions, sens_param=True)(*inputs, _unpack(duals))[1]
        pairs = zip(_tuple(gradients), vectors, strict=True)
        return sum(keras.ops.sum(gradient * vector) for gradient, vector in pairs)

    products = _tuple(value_and_grad(product, tuple(range(len(duals))))(*duals)[1])
    products = tuple(
        item.astype(value.dtype) if _is_int(value) else item
        for item, value in zip(products, _tuple(outputs), strict=True)
    )
    return products if isinstance(outputs, (tuple, list)) else products[0]


def _is_int(value: Any) -> bool:
    return isinstance(value, UserTensor) and tensor_dtype(value).startswith(("int", "uint"))


def linearize(fn: Callable[..., Any], inputs: TensorLike | Sequence[TensorLike]) -> tuple[Tree, Callable[..., Any]]:
    """Compute `fn` of `inputs` and return ``(outputs, jvp_fn)``; ``jvp_fn`` computes Jacobian-vector products.

    Example: ``outputs, jvp_fn = ops.linearize(fn, x)``.
    """
    check_function("linearize", fn)
    arguments = _tuple(inputs)
    outputs = fn(*arguments)
    return outputs, lambda v: _jvp(fn, arguments, _tuple(v), outputs)


def _jacobian(name: str) -> Callable[..., Any]:
    def jacobian(
        fn: Callable[..., Any], grad_position: int | Sequence[int] = 0, has_aux: bool = False
    ) -> Callable[..., Any]:
        check_function(name, fn)
        positions = _tuple(grad_position)

        def compute(*inputs: Tensor) -> Tree:
            outputs = fn(*inputs)
            first = outputs[0] if has_aux else outputs
            several = isinstance(first, (tuple, list))
            jacobians = tuple(
                _jacobian_of_output(fn, inputs, positions, index if has_aux or several else None, output)
                for index, output in enumerate(_tuple(first))
            )
            result = jacobians if several else jacobians[0]
            return (result, _unpack(tuple(outputs[1:]))) if has_aux else result

        return compute

    jacobian.__name__ = jacobian.__qualname__ = name
    jacobian.__doc__ = (
        "Return a function that computes the Jacobian of `fn`, of the axes of the output and then of the input at "
        "`grad_position` (an int or a tuple). With `has_aux` only the first output is differentiated, and the others "
        f"are returned as a second item. Example: ``mixtrain.{name}(fn)(x)``."
    )
    return jacobian


def _jacobian_of_output(
    fn: Callable[..., Any], inputs: tuple[Tensor, ...], positions: tuple[int, ...], index: int | None, output: Tensor
) -> Tree:
    """Compute the Jacobian of one output (that at `index`), with one backward pass per element."""
    shape = tuple(output.shape)
    count = math.prod(shape)
    function = fn if index is None else lambda *args: fn(*args)[index]
    vjp_fn = value_and_grad(function, positions, sens_param=True)
    basis = keras.ops.reshape(keras.ops.eye(count, dtype=output.dtype), (count, *shape))
    rows = [_tuple(vjp_fn(*inputs, to_tensors(basis[row]))[1]) for row in range(count)]
    return _unpack(tuple(
        to_tensors(keras.ops.reshape(keras.ops.stack(to_backend_tensors(gradients)), (*shape, *inputs[position].shape)))
        for gradients, position in zip(zip(*rows, strict=True), positions, strict=True)
    ))


jacfwd = _jacobian("jacfwd")
jacrev = _jacobian("jacrev")


def derivative(fn: Callable[..., Any], primals: TensorLike | Sequence[TensorLike], order: int) -> tuple[Tree, Tree]:
    """`fn` of `primals`, and its elementwise derivative of the `order`: ``value, third = ops.derivative(fn, x, 3)``.

    Of several primals it is the derivative along all of them at once: that of `jet` for the series 1, 0, 0 ...
    """
    checks.integer("ops.derivative", "order", order, at_least=1)
    values = _floats("ops.derivative", primals)
    series = [keras.ops.stack([keras.ops.ones_like(x)] + [keras.ops.zeros_like(x)] * (order - 1)) for x in values]
    outputs, derivatives = jet(fn, tuple(to_tensors(values)), tuple(to_tensors(series)))
    return outputs, [item[-1] for item in derivatives] if isinstance(derivatives, list) else derivatives[-1]


def jet(
    fn: Callable[..., Any], primals: TensorLike | Sequence[TensorLike], series: TensorLike | Sequence[TensorLike]
) -> tuple[Tree, Tree]:
    """Propagate a Taylor series through `fn`: its value at `primals`, and its derivatives along the series.

    `fn` is an elementwise function of tensors of one shape; each of `series`, one a primal, holds the derivatives of
    that input (order, *shape) and has the shape of the derivatives that are returned, a list for several outputs.
    """
    values, terms = _floats("ops.jet", primals), _floats("ops.jet", series)
    if len(values) != len(terms):
        raise checks.fail_value(
            "ops.jet", f"series must have {len(values)} tensors, one a primal", len(terms), "(sx, sy)"
        )
    terms = [term if len(term.shape) > len(x.shape) else term[None] for x, term in zip(values, terms, strict=True)]

    def along_series(t: Tensor) -> Tree:
        factor, inputs = t, [*to_tensors(values)]  # The factors are t ** n / n!.
        for index in range(len(terms[0])):
            inputs = [x + to_tensors(term[index]) * factor for x, term in zip(inputs, terms, strict=True)]
            factor = factor * t / (index + 2)
        return fn(*inputs)

    outputs = fn(*to_tensors(values))
    zero = to_tensors(keras.ops.zeros_like(values[0]))
    if not isinstance(outputs, (tuple, list)):
        return outputs, _derivatives(along_series, zero, len(terms[0]))
    return list(outputs), [
        _derivatives(lambda t, at=at: along_series(t)[at], zero, len(terms[0])) for at in range(len(outputs))
    ]


def _floats(where: str, tensors: TensorLike | Sequence[TensorLike]) -> list[Tensor]:
    """Return tensors as backend tensors of float32 or float64; whole numbers become float32."""
    values = [backend.to_tensor(to_backend_tensors(value)) for value in _tuple(tensors)]
    for value in values:
        if tensor_dtype(value) not in ("int32", "int64", "float32", "float64"):
            raise checks.fail_type(
                where, "primals and series must be int32, int64, float32 or float64", value, "x.astype(float32)"
            )
    return [value if is_float(tensor_dtype(value)) else keras.ops.cast(value, "float32") for value in values]


def _derivatives(function: Callable[..., Any], at: Tensor, order: int) -> Tensor:
    """Return the elementwise derivatives of a function of one tensor from the first to the `order`, stacked."""
    found = []
    for _ in range(order):
        function = grad(function)
        found.append(to_backend_tensors(function(at)))
    return to_tensors(keras.ops.stack(found))
