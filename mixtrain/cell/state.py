"""`state_dict` and `load_state_dict` of a Cell, and its prefixes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras

from mixtrain import backend, checks
from mixtrain.cell.buffers import CellBuffers
from mixtrain.common.gradient_hooks import HookHandle
from mixtrain.typing import Variable


class UnmatchedKeys(NamedTuple):
    """The keys that `load_state_dict` could not match.

    Attributes:
        missing_keys: Parameters of the cell that the mapping lacks.
        unexpected_keys: Keys of the mapping that the cell lacks.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


class CellState(CellBuffers):
    """The part of a Cell that saves and loads its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self._state_dict_hooks: dict[int, Callable[..., Any]] = {}

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(cell, prefix, keep_vars)`` before `state_dict` of this cell reads anything.

        Returns:
            A handle whose `remove` removes the hook.
        """
        number = max(self._state_dict_hooks, default=-1) + 1
        self._state_dict_hooks[number] = hook
        return HookHandle(self._state_dict_hooks, number)

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return the parameters and buffers by path, those of shared cells under each of their paths.

        Args:
            destination: A dict to add to; None for a new one.
            prefix: Prepended to each path.
            keep_vars: Accepted for MindSpore scripts; the values are the parameters themselves either way.

        Raises:
            TypeError: `destination` is not a dict, or `prefix` is not a str.
        """
        where = f"{type(self).__name__}.state_dict"
        if destination is not None:
            checks.instance(where, "destination", destination, dict, "a dict")
        result = OrderedDict() if destination is None else destination
        checks.instance(where, "prefix", prefix, str, 'prefix="net."')
        for hook in tuple(self._state_dict_hooks.values()):
            hook(self, prefix, keep_vars)
        for name, value in {**self.own_parameters(), **self.own_buffers(persistent_only=True)}.items():
            result[prefix + name] = value
        for name, cell in self._cells.items():
            if cell is not None:
                cell.state_dict(destination=result, prefix=f"{prefix}{name}.")
        return result  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> UnmatchedKeys:
        """Set the parameters from a mapping such as `state_dict` returns; on an error, none is changed.

        Args:
            state_dict: Values by path: Parameters, tensors or arrays.
            strict: Whether the cell and the mapping must have the same paths.

        Returns:
            The paths that were not matched.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: A shape differs; or, where `strict`, a path is missing or unexpected.
        """
        where = f"{type(self).__name__}.load_state_dict"
        checks.instance(where, "state_dict", state_dict, Mapping, "the result of state_dict()")
        own = self.state_dict()
        unmatched = UnmatchedKeys(
            [key for key in own if key not in state_dict], [key for key in state_dict if key not in own]
        )
        values = {key: backend.to_tensor(state_dict[key]) for key in own if key in state_dict}
        errors = [
            f"{key} has shape {tuple(own[key].shape)} here and {tuple(value.shape)} in the mapping"
            for key, value in values.items() if tuple(value.shape) != tuple(own[key].shape)
        ]
        if strict and unmatched.missing_keys:
            errors.append(f"missing: {checks.join_names(unmatched.missing_keys)}")
        if strict and unmatched.unexpected_keys:
            errors.append(f"unexpected: {checks.join_names(unmatched.unexpected_keys)}")
        if errors:
            raise RuntimeError(
                f"{where}: expected the cell's own paths and shapes; got {'; '.join(errors[:4])}. "
                "Write strict=False to load what matches."
            )
        for key, value in values.items():
            own[key].assign(value) if isinstance(own[key], keras.Variable) else own[key].assign_value(value)
        return unmatched

    def check_names(self) -> None:
        """Raise a ValueError if two parameters have the same name."""
        seen: set[str] = set()
        for path, parameter in self.parameters_and_names():
            if parameter.name in seen:
                raise ValueError(
                    f"{type(self).__name__}.check_names: expected each parameter to have its own name; got "
                    f"{parameter.name!r} again at {path}. Write name=... with another name."
                )
            seen.add(parameter.name)

    def parameters_broadcast_dict(self, recurse: bool = True) -> dict[str, Variable] | None:
        """Return the parameters that all devices would share, by name; None if there are none."""
        shared = {
            name: parameter for name, parameter in self.parameters_dict(recurse).items()
            if not getattr(parameter, "layerwise_parallel", False)
        }
        return shared or None

    def update_cell_prefix(self) -> None:
        """Set the prefix of each cell below to its path from this cell."""
        self._set_paths("")

    def update_cell_type(self, cell_type: str) -> None:
        """Set `cell_type`, the kind of network."""
        object.__setattr__(self, "cell_type", cell_type)
