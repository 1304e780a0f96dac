"""Weights stored in half precision: their float32 copies, and updates in float32 of those that have none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import HALF_DTYPES, float32
from mixtrain.network.marks import MASTER, REST, STORED_BY_PLAN
from mixtrain.precision.dtypes import stored_dtype_of
from mixtrain.precision.half_rounding import joined, rounded, split
from mixtrain.seed import stream_of
from mixtrain.typing import Tensor, Variable

# How the update of a weight that is stored in half without a copy is rounded.
LowPrecisionUpdate = Literal["stochastic", "compensated", "nearest"]
LOW_PRECISION_UPDATES: Final = ("stochastic", "compensated", "nearest")
# Of a weight that a plan stores in half with a copy.
COPIES: Final = "copies"
# One stream for all weights of the process: it is saved, restored, and left alone by a skipped step as any other.
_STREAM: Final = "low_precision_update"


# ---- updates --------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def updating(variables: Sequence[Variable], update: LowPrecisionUpdate | None = None) -> Iterator[None]:
    """Show weights stored in half as float32 to an optimizer, and store what it writes at the end.

    A weight with a float32 copy is shown as the copy. Any other is shown as its value, with the rest that earlier
    roundings left if there is one, and is rounded at the end, as its plan says or else by `update`.

    `update`: None to leave weights alone that have no copy and no plan.
    """
    chosen = [(variable, choice) for variable in variables if (choice := update_of(variable, update))]
    shown = [
        (variable, backend.exchange_storage(variable, backend.temporary_storage(variable, full_value(variable))))
        for variable, _ in chosen
    ]
    try:
        with masters_shown(variables):
            yield
    finally:
        values = [backend.read_storage(backend.exchange_storage(*pair)) for pair in shown]
    refresh_from_masters(variables)
    seed = stream_of(_STREAM).next() if any(choice == "stochastic" for _, choice in chosen) else None
    for index, ((variable, choice), value) in enumerate(zip(chosen, values, strict=True)):
        dtype = stored_dtype_of(variable)
        if choice == "compensated":
            nearest, rest = split(value, dtype)
            rest_of(variable).assign(rest)
            variable.assign(nearest)
        elif choice == "stochastic":
            bits = backend.special.random_bits(tuple(variable.shape), seed, index)
            variable.assign(rounded(value, dtype, bits))
        else:
            variable.assign(rounded(value, dtype))


def update_of(variable: Variable, update: LowPrecisionUpdate | None) -> LowPrecisionUpdate | None:
    """Return how the update of a weight is rounded; None for one in float32, with a copy, or that is left alone.

    `update`: How that of a weight is rounded for which no plan says it.
    """
    if not stored_in_half(variable) or has_master(variable):
        return None
    return STORED_BY_PLAN.of(variable) or update


@contextlib.contextmanager
def updated_as(variables: Sequence[Variable], update: LowPrecisionUpdate) -> Iterator[None]:
    """Round the updates of weights stored in half without a copy in this way for the duration of a context."""
    before = [(variable, STORED_BY_PLAN.of(variable)) for variable in variables if update_of(variable, update)]
    try:
        for variable, _ in before:
            STORED_BY_PLAN.put(variable, update)
        yield
    finally:
        for variable, choice in before:
            STORED_BY_PLAN.put(variable, choice) if choice else STORED_BY_PLAN.remove(variable)


def update_state(variables: Sequence[Variable], update: LowPrecisionUpdate | None) -> list[keras.Variable]:
    """Return what `updating` writes besides weights, made where it is missing: the rests, and a random state."""
    choices = {id(variable): update_of(variable, update) for variable in variables}
    rests = [rest_of(variable) for variable in variables if choices[id(variable)] == "compensated"]
    return [*rests, *([stream_of(_STREAM).state] if "stochastic" in choices.values() else [])]


def rest_of(variable: Variable) -> keras.Variable:
    """Return the variable with the rest that rounding a weight has left, in the weight's dtype; 0 at first."""
    if REST.of(variable) is None:
        with backend.eager_scope():
            zeros, dtype = np.zeros(tuple(variable.shape), np.float32), stored_dtype_of(variable).name
            options = {"trainable": False, "autocast": False, "name": "rest"}
            REST.put(variable, keras.Variable(zeros, dtype=dtype, **options))
    return REST.of(variable)


@contextlib.contextmanager
def presented_in_float32(variables: Sequence[Variable], update: LowPrecisionUpdate | None = None) -> Iterator[None]:
    """Show weights as `updating` does, to make an optimizer's variables or to save them; what is written is lost."""
    values = [(variable, full_value(variable)) for variable in variables if update_of(variable, update)]
    with masters_shown(variables), stored_in_float32([variable for variable, _ in values]):
        for variable, value in values:
            variable.assign(value)
        yield


def check_optimizer(
    where: str, optimizer: Any, weights: Sequence[Variable], update: LowPrecisionUpdate | None
) -> None:
    """Check that an optimizer can update weights that are stored in half.

    Raises: ValueError if a choice is made for no weight; or a Keras optimizer writes weights at other times than in its
    update, or has variables in half already.
    """
    chosen = [variable for variable in weights if update_of(variable, update)]
    if update is not None and not chosen:
        raise checks.fail_value(
            where, "low_precision_update needs weights that are stored in half without copies", update,
            'amp_level="O2" or "O3" with master_weights=False, or Keras layers with dtype="bfloat16"',
        )
    if not chosen and not any(map(has_master, weights)):
        return
    for name in ("use_ema", "gradient_accumulation_steps"):
        if getattr(optimizer, name, None):
            raise checks.fail_value(
                where, f"an optimizer of weights stored in half must not have {name}", getattr(optimizer, name),
                "accumulate_steps of Model, or weights in float32",
            )
    variables = optimizer.variables if isinstance(optimizer, keras.optimizers.Optimizer) else ()
    if any(map(stored_in_half, variables)):
        raise checks.fail_value(
            where, "the variables of the optimizer must be float32", "some in half, of an earlier use",
            "a new optimizer",
        )


# ---- copies ---------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def updating_masters(variables: Sequence[Variable]) -> Iterator[None]:
    """Present masters as the values of variables, and set the half parameters to their cast at the end."""
    with masters_shown(variables):
        yield
    refresh_from_masters(variables)


def has_master(variable: Variable) -> bool:
    """Whether a parameter is stored in half precision with a float32 copy."""
    return MASTER.of(variable) is not None


def master_value(variable: Variable) -> Tensor:
    """Return the value of the float32 copy if there is one, else the variable's own."""
    if has_master(variable) and stored_in_half(variable):
        return backend.read_storage(MASTER.of(variable))
    return backend.snapshot(variable)


def full_value(variable: Variable) -> Tensor:
    """Return the value that `updating` shows: of a half variable without a copy in float32, with its rest."""
    value = master_value(variable)
    if has_master(variable) or not stored_in_half(variable):
        return value
    dtype, rest = stored_dtype_of(variable), REST.of(variable)
    if rest is None:
        return keras.ops.cast(value, "float32")
    return joined(keras.ops.cast(value, dtype.name), backend.snapshot(rest), dtype)


def masters_shown(variables: Sequence[Variable]) -> contextlib.AbstractContextManager[None]:
    """Make those variables that have a float32 copy read and write the copy for the duration of a context.

    One inside of another does nothing: an optimizer in a train step may update copies by itself.
    """
    hidden = [each for each in variables if has_master(each) and stored_in_half(each)]
    return _storage_swapped([(variable, MASTER.of(variable)) for variable in hidden])


@contextlib.contextmanager
def _storage_swapped(storages: Sequence[tuple[Variable, object]]) -> Iterator[None]:
    """Exchange the storage of variables for the duration of a context."""
    swapped = [(variable, backend.exchange_storage(variable, storage)) for variable, storage in storages]
    try:
        yield
    finally:
        for variable, storage in swapped:
            backend.exchange_storage(variable, storage)


def stored_in_float32(variables: Sequence[Variable]) -> contextlib.AbstractContextManager[None]:
    """Store half variables without a master in float32 for the duration of a context; their values are unchanged."""
    half = [variable for variable in variables if stored_in_half(variable) and not has_master(variable)]
    return _storage_swapped([(variable, backend.storage_in(variable, float32)) for variable in half])


def stored_in_half(variable: Variable) -> bool:
    """Whether a variable is stored in half precision."""
    return stored_dtype_of(variable) in HALF_DTYPES


def refresh_from_masters(variables: Sequence[Variable]) -> None:
    """Set those variables that have a float32 copy, and do not show it, to the cast of it."""
    for variable in variables:
        if has_master(variable) and stored_in_half(variable):
            variable.assign(backend.read_storage(MASTER.of(variable)))
