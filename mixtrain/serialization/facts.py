"""Checks of the facts of a checkpoint, made when a file is written and before anything in it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mixtrain import checks
from mixtrain.dtype import HALF_DTYPES
from mixtrain.errors import CheckpointError

_MAX_INT64: Final = 2**63 - 1
# The result of a check: None, or (what was expected, the invalid part).
Problem = tuple[str, Any] | None


def check_facts(where: str, path: str, facts: Mapping[str, Any]) -> None:
    """Check the facts that mixtrain knows; others are accepted as they are."""
    for name, value in facts.items():
        check = _count if name.startswith("keras_") else _CHECKS.get(name)
        problem = None if check is None else check(value)
        if problem is not None:
            expected, part = problem
            raise CheckpointError(
                f"{where}: expected the fact {name!r} of {path!r} to be {expected}; got {checks.short_repr(part)}. "
                "Write a file of save_checkpoint or ModelCheckpoint, as it was written."
            )


def _is_int(value: Any, maximum: int, minimum: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def _count(value: Any) -> Problem:
    return None if _is_int(value, _MAX_INT64) else ("an int from 0 to 2**63 - 1", value)


def _plan(value: Any) -> Problem:
    """Check a precision plan as returned by `run_state.plan_facts`, or None."""
    if value is None:
        return None
    if not isinstance(value, dict) or not {"level", "half", "reason", "rows"} <= set(value):
        return "a plan with level, half, reason and rows", value
    if not isinstance(value["level"], str) or not isinstance(value["reason"], str):
        return "a plan whose level and reason are strings", (value["level"], value["reason"])
    if value["half"] not in list(HALF_DTYPES):
        return f"a plan whose half is {' or '.join(dtype.name for dtype in HALF_DTYPES)}", value["half"]
    rows = value["rows"]
    if not isinstance(rows, list):
        return "a plan whose rows are a list", rows
    for row in rows:
        if not isinstance(row, list) or len(row) != 6 or not all(isinstance(entry, str) for entry in row):
            return "a plan whose rows are six strings each", row
    return None


def _seed(value: Any) -> Problem:
    """Check a state of random-number generators as returned by `mixtrain.seed.seed_state`, or None."""
    if value is None:
        return None
    if not isinstance(value, dict) or not {"seed", "generator", "drawing"} <= set(value):
        return "a state with seed, generator and drawing", value
    if value["seed"] is not None and not _is_int(value["seed"], _MAX_INT64):
        return "a state whose seed is an int of at least 0 or null", value["seed"]
    if not _is_generator(value["generator"]):
        return "a state whose generator is one of NumPy's PCG64", value["generator"]
    if not isinstance(value["drawing"], list):
        return "a state whose drawing is a list", value["drawing"]
    for stream in value["drawing"]:
        if not isinstance(stream, list) or len(stream) != 3 or not _is_stream(*stream):
            return "a state whose drawing is a list of operations, their seeds and two numbers each", stream
    return None


def _manager(value: Any) -> Problem:
    """Check the state of a loss-scale manager of the user's own."""
    if not isinstance(value, dict) or set(value) != {"class", "state"}:
        return "the class and state of a manager", value
    if not isinstance(value["class"], str) or not isinstance(value["state"], dict):
        return "the name of a class and a dict of values", value
    return None


def _is_generator(value: Any) -> bool:
    """Whether a value is the state of a PCG64; for others NumPy raises various errors or truncates floats."""
    if not isinstance(value, dict) or set(value) != {"bit_generator", "state", "has_uint32", "uinteger"}:
        return False
    state = value["state"]
    return (
        value["bit_generator"] == "PCG64" and isinstance(state, dict) and set(state) == {"state", "inc"}
        and all(_is_int(number, 2**128 - 1) for number in state.values())
        and _is_int(value["has_uint32"], 1) and _is_int(value["uinteger"], 2**32 - 1)
    )


def _is_stream(name: Any, seed: Any, position: Any) -> bool:
    return (
        isinstance(name, str) and _is_int(seed, _MAX_INT64, -_MAX_INT64) and isinstance(position, list)
        and len(position) == 2 and all(_is_int(number, 2**32 - 1) for number in position)
    )


_CHECKS: Final[Mapping[str, Callable[[Any], Problem]]] = {
    "manager": _manager,
    "epoch": _count, "step": _count, "batch_num": _count, "epoch_step": _count, "plan": _plan, "seed": _seed,
}
