"""Requirements on traced values: checked after the compiled function has run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.data_backend.jax.array_namespace import SizeUnknown, is_traced
from mixtrain.data_backend.row_part import with_subject
from mixtrain.typing import Tensor

_MAX_VALUES = 8
# The number of the message of the first failed requirement, 0 for none, and the values in it.
Failure = tuple[Any, Any]


class _Scopes(threading.local):
    scopes: tuple[_Scope, ...] = ()


class _Scope:
    """The requirements in a traced function.

    `messages`: The list to which messages are added; they are numbered from 1.

    Attributes:
        failure: The first failed requirement.
    """

    def __init__(self, messages: list[str]) -> None:
        self.messages = messages
        self.failure: Failure = (jnp.int32(0), jnp.zeros(_MAX_VALUES, jnp.int32))

    def add(self, failure: Failure) -> None:
        """Add the possible failure of a later requirement."""
        passed = self.failure[0] == 0
        number, values = (jnp.where(passed, new, old) for new, old in zip(failure, self.failure, strict=True))
        self.failure = number, values


_current = _Scopes()
_numbering = threading.Lock()


@contextlib.contextmanager
def collecting(messages: list[str]) -> Iterator[_Scope]:
    """Collect the requirements of the code that is traced inside."""
    previous, scope = _current.scopes, _Scope(messages)
    _current.scopes = (*previous, scope)
    try:
        yield scope
    finally:
        _current.scopes = previous


def require(condition: Tensor, message: str, *values: Any) -> None:
    message = with_subject(message)
    if not is_traced(condition):
        if not bool(condition):
            if is_traced(*values):
                raise SizeUnknown(message)
            raise ValueError(message.format(*(int(value) for value in values)))
        return
    if not _current.scopes:
        raise SizeUnknown(message)
    scope = _current.scopes[-1]
    with _numbering:  # Other threads may be tracing the same function.
        scope.messages.append(message)
        number = len(scope.messages)
    numbers = [jnp.asarray(value).astype(jnp.int32) for value in values]
    numbers += [jnp.int32(0)] * (_MAX_VALUES - len(numbers))
    scope.add((jnp.where(condition, 0, number).astype(jnp.int32), jnp.stack(numbers)))


def collected_in_branches(
    choose: Callable[[list[Callable[[], Any]]], Any], branches: Sequence[Callable[[], Any]]
) -> Any:
    """Return the result of the branch that `choose` runs; its requirements are added to those of the calling function.

    Raises: SizeUnknown if their results differ in size.
    """
    messages = _current.scopes[-1].messages if _current.scopes else []

    def collected(branch: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with collecting(messages) as scope:
                result = branch()
            return jax.tree.map(jnp.asarray, result), scope.failure

        return run

    runs = [collected(branch) for branch in branches]
    shapes = [jax.eval_shape(run)[0] for run in runs]
    if any(shape != shapes[0] for shape in shapes[1:]):
        raise SizeUnknown("expected results of one size and dtype")
    result, failure = choose(runs)
    if _current.scopes:
        _current.scopes[-1].add(failure)
    return result


def raise_failure(messages: Sequence[str], numbers: np.ndarray, values: np.ndarray) -> None:
    """Raise a ValueError for the first failed requirement, if there is one.

    `messages`: The messages, numbered from 1. `numbers`: The number of the message of each row or block, or 0.
    `values`: The values in each message.
    """
    failed = np.flatnonzero(numbers)
    if len(failed):
        message = messages[int(np.ravel(numbers)[failed[0]]) - 1]
        raise ValueError(message.format(*np.reshape(values, (-1, _MAX_VALUES))[failed[0]].tolist()))
