"""The state of a loss-scale manager of the user's own, as plain values of a checkpoint.

`state_dict` and `load_state_dict` are used where its class has both; else its attributes, as far as they are plain:
None, bool, int, finite float, str, and lists, tuples, deques and dicts of these.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from mixtrain import backend, checks
from mixtrain.loss_scale.rule import Count, LossScaleRule, LossScaleState

_NOT_PLAIN: Final = object()
Saved = Mapping[str, Any]


def manager_facts(manager: Any) -> dict[str, Any]:
    """Return the class of a manager and its state as plain values; warn of what cannot be saved."""
    values = manager.state_dict() if _has_state_dict(manager) else vars(manager)
    plain = {name: _plain(value) for name, value in values.items() if not isinstance(value, LossScaleRule)}
    lost = [name for name, value in plain.items() if value is _NOT_PLAIN]
    if lost or not plain:
        what = checks.join_names(lost) if lost else "its state, which is not in its attributes,"
        warnings.warn(
            f"save_checkpoint: {type(manager).__name__} begins anew when a run is resumed: {what} cannot be saved. "
            "Write state_dict(self) and load_state_dict(self, state), with numbers, strings, lists and dicts.",
            stacklevel=2,
        )
    return {
        "class": type(manager).__qualname__,
        "state": {name: value for name, value in plain.items() if value is not _NOT_PLAIN},
    }


def warn_of_another_manager(manager: Any, saved: Saved | None, file: str) -> bool:
    """Warn if a checkpoint has no state for a manager; return whether it has one."""
    kind = type(manager).__qualname__
    fits = saved is not None and saved["class"] == kind and all(
        _is_state(value) for name, value in saved["state"].items()
        if isinstance(vars(manager).get(name), LossScaleState)
    )
    if not fits:
        held = "no manager of the user's own" if saved is None else f"the state of a {saved['class']!r}"
        warnings.warn(
            f"load_param_into_net: {checks.short_repr(file)} has {held}; {kind} begins anew. Write the manager with "
            "which the file was written.",
            stacklevel=4,
        )
    return fits


def restore_manager(manager: Any, saved: Saved) -> None:
    if _has_state_dict(manager):
        manager.load_state_dict(saved["state"])
        return
    for name, value in saved["state"].items():
        if name in vars(manager):
            setattr(manager, name, _restored(getattr(manager, name), value))


def _has_state_dict(manager: Any) -> bool:
    return all(callable(getattr(manager, name, None)) for name in ("state_dict", "load_state_dict"))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; `_NOT_PLAIN` where it has none."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) and abs(value) < 2.0**1000 else _NOT_PLAIN
    if isinstance(value, LossScaleState):
        return {"loss_scale": value.current_scale(), "counts": backend.to_numpy(value.counts).tolist()}
    if isinstance(value, (list, tuple, deque)):
        parts = [_plain(part) for part in value]
        return _NOT_PLAIN if _NOT_PLAIN in parts else parts
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        parts = [_plain(part) for part in value.values()]
        return _NOT_PLAIN if _NOT_PLAIN in parts else dict(zip(value, parts, strict=True))
    return _NOT_PLAIN


def _is_state(value: Any) -> bool:
    """Whether a value has the form that `_plain` gives a `LossScaleState`."""
    if not isinstance(value, dict) or set(value) != {"loss_scale", "counts"}:
        return False
    scale, counts = value["loss_scale"], value["counts"]
    return (
        isinstance(scale, float) and 0 < scale < math.inf and isinstance(counts, list) and len(counts) == len(Count)
        and all(isinstance(count, int) and 0 <= count < 2**31 for count in counts)
    )


def _restored(present: Any, value: Any) -> Any:
    """Return a saved value in the form that an attribute has."""
    if isinstance(present, LossScaleState):
        present.loss_scale.assign(np.float32(value["loss_scale"]))
        present.counts.assign(np.int32(value["counts"]))
        return present
    if isinstance(value, list):
        if isinstance(present, tuple):
            return tuple(value)
        return deque(value, present.maxlen) if isinstance(present, deque) else value
    return type(present)(value) if isinstance(present, np.generic) and value is not None else value
