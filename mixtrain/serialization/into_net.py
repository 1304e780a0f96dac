"""`load_param_into_net`: parameters by name put into a network, all of those that fit or none."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.dtype import as_dtype, is_float
from mixtrain.errors import CheckpointError
from mixtrain.precision.master_weights import updating_masters
from mixtrain.seed import restore_seed_state
from mixtrain.serialization.checkpoint import Checkpoint
from mixtrain.serialization.facts import check_facts
from mixtrain.serialization.names import parameters_by_name, states_by_name
from mixtrain.serialization.run_state import check_loss_scale, trains, warn_of_another_plan
from mixtrain.serialization.values import dtype_of, restored

_WHERE: Final = "load_param_into_net"
Assignment = tuple[Any, Any]


def load_param_into_net(
    net: Any, parameter_dict: Mapping[str, Any], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Load parameters into a network, an optimizer or a train cell, by their names.

    Where names agree but for a prefix that the dict's have (``backbone.conv.weight``), it is cut off. Into a train cell
    (``model.train_network``) the rest of a checkpoint of one is loaded too: loss-scale counts, random states and the
    seed. Everything is checked before anything is written; an error leaves the network as it was.

    Args:
        net: A Cell (also an optimizer or a train cell), or a built Keras model.
        parameter_dict: What `load_checkpoint` returns, or a dict from name to Parameter, tensor or array.
        strict_load: Whether formats must agree and no prefix is cut; otherwise floats become the network's floats and
            ints its ints.
        remove_redundancy: False: there is one device.

    Returns:
        The names of the network's that were not loaded, and those of the dict that were not.

    Raises:
        TypeError: An argument has the wrong type.
        RuntimeError: A shape or format does not fit.
        CheckpointError: The loss scale, its counts, a random state or a fact of a checkpoint is malformed.

    Example:
        >>> import mixtrain.nn as nn, mixtrain
        >>> net = nn.Dense(2, 1, has_bias=False)
        >>> load_param_into_net(net, {"weight": mixtrain.Parameter([[3.0, 4.0]]), "more": mixtrain.Parameter(1.0)})
        ([], ['more'])
        >>> net.weight.asnumpy().tolist()
        [[3.0, 4.0]]

    Source: MindSpore, `mindspore.load_param_into_net`.
    """
    checks.boolean(_WHERE, "strict_load", strict_load)
    if checks.boolean(_WHERE, "remove_redundancy", remove_redundancy):
        raise checks.fail_value(_WHERE, "remove_redundancy must be False on one device", True, "it without")
    own = parameters_by_name(f"{_WHERE}: net", net)
    given = _given(parameter_dict)
    pairs = _pairs(own, given, strict_load)
    plan, converted = _planned(own, given, pairs, strict_load)
    checkpoint = parameter_dict if isinstance(parameter_dict, Checkpoint) and trains(net) else None
    if checkpoint is not None:
        check_facts(_WHERE, checkpoint.file, checkpoint.run_state.facts)
        plan += _planned_states(net, checkpoint)
    check_loss_scale(net, plan, parameter_dict.file if isinstance(parameter_dict, Checkpoint) else "parameter_dict")
    # Warnings may be errors of their user's, so they too come before the first value is written.
    missing = [name for name in own if name not in pairs and name not in parameter_dict]
    _warn(missing, converted, len(own))
    if checkpoint is not None:
        warn_of_another_plan(net, checkpoint.run_state.facts)
    with updating_masters([variable for variable, _ in plan]):
        for variable, value in plan:
            variable.assign(value)
    if checkpoint is not None and checkpoint.run_state.facts.get("seed") is not None:
        restore_seed_state(checkpoint.run_state.facts["seed"])
    used = set(pairs.values())
    return missing, [name for name in parameter_dict if name not in used]


def _given(parameter_dict: Any) -> dict[str, Any]:
    """Return the values of the dict; strings are no parameters."""
    checks.instance(_WHERE, "parameter_dict", parameter_dict, Mapping, "load_checkpoint(file)")
    given = {}
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not (isinstance(value, (np.ndarray, str)) or is_any_tensor(value)):
            raise checks.fail_type(
                f"{_WHERE}: parameter_dict", f"{checks.shown(name)} must be a str's Parameter", value,
                "load_checkpoint(file)",
            )
        if not isinstance(value, str):
            given[name] = value
    return given


def _pairs(own: Mapping[str, Any], given: Mapping[str, Any], strict: bool) -> dict[str, str]:
    """Return for each of the network's names that of the dict that is loaded into it."""
    pairs = {name: name for name in own if name in given}
    left = [name for name in own if name not in pairs]
    while left and not strict:
        prefix = next(_prefixes(left, given), None)
        if prefix is None:
            break
        pairs |= {name: prefix + name for name in left if prefix + name in given}
        left = [name for name in left if name not in pairs]
    return pairs


def _prefixes(left: list[str], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what stands before names of the network in the dict.

    What stands before a slot of an optimizer (``moments.``) is no prefix: the dict has names both with and without it.
    """
    for name in left:
        for longer in given:
            if longer.endswith(name):
                prefix = longer.removesuffix(name)
                if prefix and not any(other.startswith(prefix) and other[len(prefix):] in given for other in given):
                    yield prefix


def _planned(
    own: Mapping[str, Any], given: Mapping[str, Any], pairs: Mapping[str, str], strict: bool
) -> tuple[list[Assignment], list[str]]:
    """Return what is to be assigned, and the names whose format is changed for it.

    Raises:
        RuntimeError: Something does not fit.
    """
    plan, converted, wrong = [], [], []
    for name, theirs in pairs.items():
        variable, value = own[name], given[theirs]
        shape, found = tuple(variable.shape), tuple(value.shape)
        dtype, kept = dtype_of(variable), dtype_of(value)
        # MindSpore stores some tensors with axes of 1 behind; they are cut off.
        if found != shape and not (found[: len(shape)] == shape and set(found[len(shape):]) == {1}):
            wrong.append(f"{name} to have shape {shape} as in the network; got {found} in the checkpoint")
        elif dtype != kept and (strict or not _convertible(dtype, kept)):
            wrong.append(f"{name} to be {dtype.name} as in the network; got {kept.name} in the checkpoint")
        else:
            if dtype != kept:
                converted.append(name)
            plan.append((variable, keras.ops.reshape(keras.ops.cast(backend.to_tensor(value), dtype), shape)))
    if wrong:
        more = f" ({len(wrong) - 1} more do not fit.)" if len(wrong) > 1 else ""
        raise RuntimeError(
            f"{_WHERE}: expected {wrong[0]}. Write the network as it was when the checkpoint was made, or leave the "
            f"parameter out with filter_prefix.{more}"
        )
    return plan, converted


def _convertible(dtype: Any, kept: Any) -> bool:
    """Whether one format may become the other: both floats, or both signed ints."""
    if is_float(dtype) or is_float(kept):
        return is_float(dtype) and is_float(kept)
    return as_dtype(dtype).startswith("int") and as_dtype(kept).startswith("int")


def _planned_states(net: Any, checkpoint: Checkpoint) -> list[Assignment]:
    """Return the assignments of loss-scale counts and random states that a checkpoint has.

    Raises:
        CheckpointError: One has values of another kind.
    """
    arrays = {name: restored(value) for name, value in checkpoint.run_state.arrays.items()}
    states = states_by_name(net)
    fitting = {name for name in states if name in arrays and tuple(states[name].shape) == tuple(arrays[name].shape)}
    if arrays and len(fitting) < len(states):
        lacking = checks.listed(name for name in states if name not in fitting)
        warnings.warn(
            f"{_WHERE}: the checkpoint has no state for {lacking}; a resumed run differs there from the one before.",
            stacklevel=3,
        )
    for name in fitting:
        dtype, kept = dtype_of(states[name]), dtype_of(arrays[name])
        if dtype != kept and not _convertible(dtype, kept):
            raise CheckpointError(
                f"{_WHERE}: expected the state {name} of {checkpoint.file!r} to be {dtype.name} as in the network; "
                f"got {kept.name}. Write a file of save_checkpoint or ModelCheckpoint, as it was written."
            )
    return [(states[name], keras.ops.cast(arrays[name], dtype_of(states[name]))) for name in fitting]


def _warn(missing: list[str], converted: list[str], count: int) -> None:
    if missing:
        warnings.warn(
            f"{_WHERE}: {len(missing)} of {count} parameters of the network are not in the checkpoint and stay as they "
            f"were: {checks.listed(missing)}.",
            stacklevel=3,
        )
    if converted:
        warnings.warn(
            f"{_WHERE}: {len(converted)} parameters were converted to the network's format: "
            f"{checks.listed(converted)}.",
            stacklevel=3,
        )
