"""`load_param_into_net`: loads parameters by name into a network, all of them or none."""

from __future__ import annotations

import bisect
import functools
import itertools
import warnings
from collections.abc import Mapping
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
from mixtrain.serialization.manager_state import restore_manager, warn_of_another_manager
from mixtrain.serialization.names import parameters_by_name, states_by_name
from mixtrain.serialization.run_state import check_loss_scale, host_managers, trains, warn_of_another_plan
from mixtrain.serialization.values import dtype_of, restored
from mixtrain.typing import Network, Tensor

_WHERE: Final = "load_param_into_net"
Assignment = tuple[Any, Any]


def load_param_into_net(
    net: Network, parameter_dict: Mapping[str, Any], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Load parameters into a network, an optimizer or a train cell, by name.

    A prefix that only names of the dict have (``backbone.conv.weight``) is removed. For a train cell
    (``model.train_network``) the run state of its checkpoint is loaded too: loss-scale counts, random states and the
    seed. Everything is checked before anything is assigned; an error leaves the network unchanged.

    Args:
        net: A Cell (also an optimizer or a train cell), or a built Keras model.
        parameter_dict: The result of `load_checkpoint`, or a dict from name to Parameter, tensor or array.
        strict_load: Whether dtypes must be equal and no prefix is removed; otherwise floats and ints are converted to
            the dtypes of the network.
        remove_redundancy: False: there is one device.

    Returns: The names of the network that were not loaded, and those of the dict that were not used.

    Raises: TypeError if an argument has the wrong type. RuntimeError if a shape or dtype does not match.
        CheckpointError if the loss scale, its counts, a random state or a fact of a checkpoint is malformed.

    Example: ``load_param_into_net(network, load_checkpoint("lenet.ckpt"))``.
    """
    checks.boolean(_WHERE, "strict_load", strict_load)
    if checks.boolean(_WHERE, "remove_redundancy", remove_redundancy):
        raise checks.fail_value(_WHERE, "remove_redundancy must be False on one device", True, "it without")
    variables = parameters_by_name(f"{_WHERE}: net", net)
    parameters = _checked_parameters(parameter_dict)
    sources = _match_names(variables, parameters, strict_load)
    assignments, converted = _parameter_assignments(variables, parameters, sources, strict_load)
    checkpoint = parameter_dict if isinstance(parameter_dict, Checkpoint) and trains(net) else None
    if checkpoint is not None:
        check_facts(_WHERE, checkpoint.file, checkpoint.run_state.facts)
        assignments += _state_assignments(net, checkpoint)
    file = parameter_dict.file if isinstance(parameter_dict, Checkpoint) else "parameter_dict"
    check_loss_scale(net, assignments, file)
    # Users may turn warnings into errors, so they too come before the first assignment.
    missing = [name for name in variables if name not in sources and name not in parameter_dict]
    _warn(missing, converted, len(variables))
    managers: list[Any] = []
    if checkpoint is not None:
        facts = checkpoint.run_state.facts
        warn_of_another_plan(net, facts)
        managers = [one for one in host_managers(net) if warn_of_another_manager(one, facts.get("manager"), file)]
    for manager in managers:  # First, as it runs code of the user's, which may refuse.
        restore_manager(manager, facts["manager"])
    with updating_masters([variable for variable, _ in assignments]):
        for variable, value in assignments:
            variable.assign(_fitted(variable, value))
    if checkpoint is not None and facts.get("seed") is not None:
        restore_seed_state(facts["seed"])
    used = set(sources.values())
    return missing, [name for name in parameter_dict if name not in used]


def _checked_parameters(parameter_dict: Any) -> dict[str, Any]:
    """Check the entries of the dict, and return those that are parameters; strings are not."""
    checks.instance(_WHERE, "parameter_dict", parameter_dict, Mapping, "load_checkpoint(file)")
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not (isinstance(value, (np.ndarray, str)) or is_any_tensor(value)):
            raise checks.fail_type(
                f"{_WHERE}: parameter_dict", f"{checks.short_repr(name)} must be a str's Parameter", value,
                "load_checkpoint(file)",
            )
    return {name: value for name, value in parameter_dict.items() if not isinstance(value, str)}


def _match_names(variables: Mapping[str, Any], parameters: Mapping[str, Any], strict: bool) -> dict[str, str]:
    """Return, for each name of the network that is loaded, the name in the dict."""
    sources = {name: name for name in variables if name in parameters}
    remaining = [name for name in variables if name not in sources]
    if not remaining or strict:
        return sources
    ordered = sorted(parameters)

    @functools.cache
    def is_slot(prefix: str) -> bool:
        """Whether it is the name of an optimizer's slot (``moments.``): the dict has names both with and without it."""
        following = itertools.islice(ordered, bisect.bisect_left(ordered, prefix), None)
        with_it = itertools.takewhile(lambda name: name.startswith(prefix), following)
        return any(name[len(prefix):] in parameters for name in with_it)

    prefixes, names = _prefixes(remaining, parameters)
    for name in remaining:
        prefix = next((prefix for prefix in prefixes[name] if not is_slot(prefix)), None)
        if name not in sources and prefix is not None:
            sources |= {other: prefix + other for other in names[prefix] if other not in sources}
    return sources


def _prefixes(names: list[str], parameters: Mapping[str, Any]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the prefixes that the names have in the dict, and for each prefix the names that have it."""
    prefixes: dict[str, list[str]] = {name: [] for name in names}
    names_of: dict[str, list[str]] = {}
    lengths = sorted({len(name) for name in names})
    for key in parameters:
        for length in itertools.takewhile(lambda length: 0 < length < len(key), lengths):  # noqa: B023
            if (name := key[-length:]) in prefixes:
                prefixes[name].append(key[:-length])
                names_of.setdefault(key[:-length], []).append(name)
    return prefixes, names_of


def _parameter_assignments(
    variables: Mapping[str, Any], parameters: Mapping[str, Any], sources: Mapping[str, str], strict: bool
) -> tuple[list[Assignment], list[str]]:
    """Return the assignments of parameters, and the names whose dtype is converted."""
    assignments, converted, errors = [], [], []
    for name, source in sources.items():
        variable, value = variables[name], parameters[source]
        shape, saved_shape = tuple(variable.shape), tuple(value.shape)
        dtype, saved_dtype = dtype_of(variable), dtype_of(value)
        # MindSpore stores some tensors with trailing axes of size 1.
        squeezable = saved_shape[: len(shape)] == shape and set(saved_shape[len(shape):]) == {1}
        if saved_shape != shape and not squeezable:
            errors.append(f"{name} to have shape {shape} as in the network; got {saved_shape} in the checkpoint")
        elif dtype != saved_dtype and (strict or not _convertible(dtype, saved_dtype)):
            errors.append(f"{name} to be {dtype.name} as in the network; got {saved_dtype.name} in the checkpoint")
        else:
            if dtype != saved_dtype:
                converted.append(name)
            # An array is converted when it is assigned: all at once may not fit into the memory of a device. A tensor
            # may be that of another variable of the network.
            assignments.append((variable, value if isinstance(value, np.ndarray) else _fitted(variable, value)))
    if errors:
        more = f" ({len(errors) - 1} more do not fit.)" if len(errors) > 1 else ""
        raise RuntimeError(
            f"{_WHERE}: expected {errors[0]}. Write the network as it was when the checkpoint was made, or leave the "
            f"parameter out with filter_prefix.{more}"
        )
    return assignments, converted


def _fitted(variable: Any, value: Any) -> Tensor:
    """Return a value in the dtype and shape of a variable."""
    return keras.ops.reshape(keras.ops.cast(backend.to_tensor(value), dtype_of(variable)), tuple(variable.shape))


def _convertible(dtype: Any, saved_dtype: Any) -> bool:
    """Whether one dtype may be converted to the other: both are floats, or both are signed ints."""
    if is_float(dtype) or is_float(saved_dtype):
        return is_float(dtype) and is_float(saved_dtype)
    return as_dtype(dtype).startswith("int") and as_dtype(saved_dtype).startswith("int")


def _state_assignments(net: Network, checkpoint: Checkpoint) -> list[Assignment]:
    """Return the assignments of loss-scale counts and random states of a checkpoint."""
    arrays = {name: restored(value) for name, value in checkpoint.run_state.arrays.items()}
    states = states_by_name(net)
    matching = {name for name in states if name in arrays and tuple(states[name].shape) == tuple(arrays[name].shape)}
    if arrays and len(matching) < len(states):
        missing = checks.join_names(name for name in states if name not in matching)
        warnings.warn(
            f"{_WHERE}: the checkpoint has no state for {missing}; a resumed run differs there from the one before.",
            stacklevel=3,
        )
    for name in matching:
        dtype, saved_dtype = dtype_of(states[name]), dtype_of(arrays[name])
        if dtype != saved_dtype and not _convertible(dtype, saved_dtype):
            raise CheckpointError(
                f"{_WHERE}: expected the state {name} of {checkpoint.file!r} to be {dtype.name} as in the network; "
                f"got {saved_dtype.name}. Write a file of save_checkpoint or ModelCheckpoint, as it was written."
            )
    return [(states[name], arrays[name]) for name in matching]


def _warn(missing: list[str], converted: list[str], count: int) -> None:
    if missing:
        warnings.warn(
            f"{_WHERE}: {len(missing)} of {count} parameters of the network are not in the checkpoint and stay as they "
            f"were: {checks.join_names(missing)}.",
            stacklevel=3,
        )
    if converted:
        warnings.warn(
            f"{_WHERE}: {len(converted)} parameters were converted to the network's dtype: "
            f"{checks.join_names(converted)}.",
            stacklevel=3,
        )
