"""Reasons why a function or a step cannot be compiled, noted while it is traced; it runs uncompiled then."""

from __future__ import annotations

import ast
import contextvars
import inspect
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mixtrain import backend
from mixtrain.network.walk import is_layer

CREATES_PARAMETERS: Final = ("creates Parameters", "Create the Cell before the function, and call it there.")
READS_VALUES: Final = ("reads a Tensor's values", "Call asnumpy and the like outside of the function.")
KEEPS_STATE: Final = (
    "reads `state` of an optimizer, where a compiled step would keep no values",
    "Create Parameters in the optimizer's __init__, and assign them.",
)
DECIDES: Final = (
    "lets a tensor decide in code that is not compiled, as `in`, all() and sorted() do",
    "Write ops.select(condition, one, other), or x.all().",
)
FAILS: Final = (
    "fails where a tensor decides, as a check that raises does",
    "Check outside of the function, or let PyNative mode do it.",
)

SETS_ATTRIBUTES: Final = (
    "sets an attribute of an object that is no Cell, which a compiled function would do once",
    "Return the value, and set the attribute outside of the function.",
)

Reason = tuple[str, str]

# While `jit` traces a function: what it does that a compiled function cannot, and what to write instead.
reasons: contextvars.ContextVar[list[Reason] | None] = contextvars.ContextVar("reasons", default=None)
# The same while a step is traced, which may create Parameters.
step_reasons: contextvars.ContextVar[list[Reason] | None] = contextvars.ContextVar("step_reasons", default=None)


def note(reason: Reason) -> bool:
    """Note a reason if `jit` is tracing; return whether it is."""
    current = reasons.get()
    if current is not None:
        current.append(reason)
    return current is not None


def note_in_steps(reason: Reason) -> None:
    """Note a reason if `jit` or a step is tracing."""
    note(reason)
    current = step_reasons.get()
    if current is not None:
        current.append(reason)


def reason_of(error: BaseException) -> Reason | None:
    """Return the reason that an error of a compiled call tells; None for an error of another kind."""
    if isinstance(error, backend.UndecidedBranch):
        return DECIDES
    return FAILS if backend.failed_on_a_path(error) else None


def sets_attributes(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function sets an attribute of an argument or of a variable around it that is no Cell and no tensor."""
    if not inspect.isfunction(function) or not function.__code__.co_names:
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return False
    stores = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    names = {node.value.id for node in stores if isinstance(node.value, ast.Name)}
    if not names:
        return False
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    around = {name: cell.cell_contents for name, cell in cells.items() if cell != types.CellType()}  # Which is empty.
    passed = inspect.signature(function).bind_partial(*args, **kwargs).arguments
    values = {**function.__globals__, **around, **passed}
    known = [values[name] for name in names if name in values]
    return not all(is_layer(value) or backend.is_tensor(value) for value in known)
