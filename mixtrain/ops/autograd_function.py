"""`_Function`: an operation with gradients of its own, written as a class with `forward` and `backward`."""

from __future__ import annotations

import inspect
from typing import Any

import keras

from mixtrain import boundary
from mixtrain.boundary import is_any_tensor
from mixtrain.dtype import is_float
from mixtrain.ops.custom_backward import custom_backward
from mixtrain.typing import Tensor


class _Function:
    """A function whose gradients `backward` computes, as those of MindSpore and PyTorch's autograd.

    A subclass defines two static methods. `forward(ctx, *args)` returns a tensor or a tuple of outputs.
    `backward(ctx, *gradients)` takes the gradient of each output, None for one that is not a tensor, and returns the
    gradient of each argument of `forward`, None for one that is not a tensor. `ctx` is an instance of the class: what
    `forward` stores in its attributes `backward` reads there. Alternatively `forward(*args)` takes no `ctx`, and
    `setup_context(ctx, inputs, output)` stores what is needed. `apply` is the function.

    Attributes:
        saved_tensors: What `save_for_backward` was given, a tuple.
        needs_input_grad: For each argument whether it can have a gradient: whether it is a tensor of floats, or a
            Parameter that is trained.

    Example:
        >>> from mixtrain import Tensor, _Function, grad
        >>> class Square(_Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x
        ...     @staticmethod
        ...     def backward(ctx, gradient):
        ...         (x,) = ctx.saved_tensors
        ...         return 10 * x * gradient
        >>> float(grad(Square.apply)(Tensor(3.0)))
        30.0
    """

    saved_tensors: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("_Function: a subclass must define forward. Write def forward(ctx, *args).")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError("_Function: a subclass must define backward. Write def backward(ctx, *gradients).")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("_Function: setup_context is not defined. Write forward(ctx, *args) without it.")

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Name the arguments that `forward` writes to in place; each must be one of its outputs."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Name outputs without gradients."""
        self._constant = args

    def set_materialize_grads(self, value: bool) -> None:
        """Allow None as the gradient of an output that the loss does not depend on; here it is zeros."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of `forward`, whose gradients are those that `backward` computes.

        Raises:
            RuntimeError: If `backward` returns another number of gradients, one for what is no tensor, or one that is
                none; or if a tensor that is marked dirty is no output.
        """
        context = cls()
        by_context = cls.setup_context is not _Function.setup_context
        if by_context:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        context.needs_input_grad = tuple(map(_needs_gradient, args))
        constant: list[bool] = []
        written: list[Any] = []
        # For each value that the context holds the place of the input or output that it is.
        saved_at: list[int | None] = []

        def forward(*inputs: Any) -> tuple[Any, dict[str, Any]]:
            if by_context:
                outputs = cls.forward(*inputs, **kwargs)
                cls.setup_context(context, inputs, outputs)
            else:
                outputs = cls.forward(context, *inputs, **kwargs)
            parts = _as_tuple(outputs)
            kept = vars(context)
            marked, dirty = (kept.pop(name, ()) for name in ("_constant", "_dirty"))
            constant[:] = [any(part is other for other in marked) for part in parts]
            written[:] = [part if any(part is other for other in dirty) else None for part in parts]
            if not all(any(part is other for part in parts) for other in dirty):
                raise RuntimeError(
                    f"{cls.__name__}: The dirty tensors must all be outputs of the forward function. Return them too."
                )
            places = {id(leaf): at for at, leaf in enumerate(keras.tree.flatten((inputs, outputs)))}
            saved_at[:] = [places.get(id(leaf)) if is_any_tensor(leaf) else None for leaf in keras.tree.flatten(kept)]
            return outputs, kept

        def backward(*values: Any) -> tuple[Any, ...]:
            (outputs, kept), (gradients, _) = values[-2:]
            # What was saved of the inputs and outputs can be differentiated again; the rest is constant.
            known = [*keras.tree.flatten(values[:-2]), *keras.tree.flatten(outputs)]
            leaves = keras.tree.flatten(kept)
            leaves = [leaf if at is None else known[at] for leaf, at in zip(leaves, saved_at, strict=True)]
            vars(context).update(keras.tree.pack_sequence_as(kept, leaves))
            result = cls.backward(context, *_as_tuple(gradients))
            return _checked(cls, args, _as_tuple(result))

        outputs, _ = custom_backward(cls.__name__, forward, backward)(*args)
        parts = _as_tuple(outputs)
        for tensor, part in zip(written, parts, strict=True):
            if tensor is not None:
                tensor.store(boundary.to_backend_tensors(part))
        parts = tuple(_constant(part) if fixed else part for part, fixed in zip(parts, constant, strict=True))
        return parts if isinstance(outputs, tuple) else parts[0]


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def _needs_gradient(value: Any) -> bool:
    return is_any_tensor(value) and is_float(value.dtype) and getattr(value, "requires_grad", True)


def _constant(value: Tensor) -> Tensor:
    return boundary.to_tensors(keras.ops.stop_gradient(boundary.to_backend_tensors(value)))


def _checked(cls: type, args: tuple[Any, ...], gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the gradients that `backward` returned, one for each argument."""
    while len(gradients) > len(args) and gradients[-1] is None:  # Of arguments that have their defaults.
        gradients = gradients[:-1]
    where = f"{cls.__name__}: Function backward return a wrong number of gradients"
    if len(gradients) != len(args):
        raise RuntimeError(
            f"{where}; expected {len(args)}, one for each argument of forward; got {len(gradients)}. Return None for "
            "an argument without a gradient."
        )
    for arg, gradient in zip(args, gradients, strict=True):
        if gradient is None:
            continue
        if not is_any_tensor(gradient):
            raise RuntimeError(f"{cls.__name__}: Gradient should be none or tensor; got {gradient!r}. Return a Tensor.")
        if not is_any_tensor(arg):
            raise RuntimeError(
                f"{cls.__name__}: Input is not tensor, but gradient is not none; got {arg!r}. Return None for it."
            )
    return gradients
