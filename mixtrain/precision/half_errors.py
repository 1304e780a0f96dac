"""The errors of a user's Keras layer in half precision, with the line that keeps it in float32."""

from __future__ import annotations

import functools
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.dtype import HALF_DTYPES, as_dtype, float_format
from mixtrain.network.interpose import Forward
from mixtrain.network.keras_own import keras_owns
from mixtrain.precision.plan import PlanRow

# What operations raise for dtypes that they do not take.
_ERRORS: Final[tuple[type[Exception], ...]] = (TypeError, ValueError, *backend.VALUE_ERRORS)

# Up to which a half format holds every whole number.
_LARGEST_WHOLE: Final = {dtype.name: int(2 / float_format(dtype.name).epsilon) for dtype in HALF_DTYPES}


def runs_user_code(layer: keras.Layer) -> bool:
    """Whether a Keras layer's `call` runs code of the user, which may be written for float32."""
    return isinstance(layer, keras.layers.Lambda) or not keras_owns(type(layer))


def advising(forward: Forward, row: PlanRow) -> Forward:
    """Return `forward` with errors that say what to write if the layer's code does not work in half precision."""
    dtype, name = row.compute_dtype.name, f"{row.layer} {row.path}".strip()
    advice = (
        f"({name} computes in {dtype}: {row.rule}, {row.why}. If that is the reason, cast what its code creates to the "
        "dtype of its input, or write mixtrain.to_float(layer, mixtrain.float32).)"
    )

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return forward(*args, **kwargs)
        except _ERRORS as error:
            # An error of the call itself, or one that a layer inside of this one explains.
            in_call = error.__traceback__ is None or error.__traceback__.tb_next is None
            if in_call or type(error) not in _ERRORS or "mixtrain.to_float(" in str(error):
                raise
            # Not a note, as Keras keeps only the message of an error.
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{error}\n{advice}") from error

    return call


def with_exact_indices(forward: Forward, row: PlanRow) -> Forward:
    """Return the `forward` of an embedding that refuses indices in a half format that does not hold all of them.

    A layer around it that computes in half has cast the indices that it got as floats, so they would be rounded.
    """
    last = row.target.input_dim - 1  # type: ignore[union-attr]

    @functools.wraps(forward)
    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        name = as_dtype(inputs.dtype).name if backend.is_tensor(inputs) else ""
        if last > _LARGEST_WHOLE.get(name, last):
            raise checks.fail_value(
                f"{row.layer} {row.path}",
                f"indices up to {last} must not be rounded, and floats that a layer around it has cast hold whole "
                f"numbers up to {_LARGEST_WHOLE[name]}", name,
                'keras.Input(..., dtype="int32"), and pass integers',
            )
        return forward(inputs, *args, **kwargs)

    return call
