"""How this process runs steps: compiled or eagerly, by which compiler, on which device; `set_context` sets it."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any


@dataclasses.dataclass
class Execution:
    """The settings in force.

    `graph_mode`: Whether steps are compiled, else they run eagerly. `graph_mode_is_set`: Whether a script asked for it.
    `jit_level`: "auto", "O0", "O1" or "O2". `device_target`: The requested kind of device; None for any.
    """

    graph_mode: bool = True
    graph_mode_is_set: bool = False
    jit_level: str = "auto"
    device_target: str | None = None


current = Execution()


@contextlib.contextmanager
def using(**settings: Any) -> Iterator[None]:
    """Run the code inside with some of the settings changed.

    Example: ``with execution.using(graph_mode=False): model.train(1, dataset)``.
    """
    before = {name: getattr(current, name) for name in settings}
    vars(current).update(settings)
    try:
        yield
    finally:
        vars(current).update(before)


def warn_missing_device(used: str) -> None:
    """Warn once if the requested device is not the one in use."""
    target = current.device_target
    if target is not None and target != used:
        current.device_target = None
        if target == "CPU":
            why = f'is not what Keras chose; {used} is used. Hide it before Python starts: CUDA_VISIBLE_DEVICES="".'
        else:
            why = f"is not on this machine; {used} is used instead."
        warnings.warn(f'set_context: device_target="{target}" {why}', stacklevel=3)
