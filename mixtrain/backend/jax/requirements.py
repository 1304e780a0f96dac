"""What must hold for values that are being traced: looked at when the compiled function has run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.array_namespace import SizeUnknown, is_traced

_MAX_VALUES = 8
# The number of the first sentence that does not hold, 0 for none, and the values in it.
Found = tuple[Any, Any]


class _Spoken(threading.local):
    subject = ""
    scopes: tuple[_Scope, ...] = ()


class _Scope:
    """What was required while a function was traced.

    Args:
        sentences: Where sentences are added; they are numbered from 1.
    """

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        self.found: Found = (jnp.int32(0), jnp.zeros(_MAX_VALUES, jnp.int32))

    def add(self, found: Found) -> None:
        """Take in what was found after all before."""
        fine = self.found[0] == 0
        number, values = (jnp.where(fine, new, old) for new, old in zip(found, self.found, strict=True))
        self.found = number, values


_spoken = _Spoken()
_numbering = threading.Lock()


@contextlib.contextmanager
def speaking_of(subject: str) -> Iterator[None]:
    """Begin the sentences of `require` with a subject: what is made inside, now or compiled, is about it."""
    before = _spoken.subject
    _spoken.subject = f"{subject}: "
    try:
        yield
    finally:
        _spoken.subject = before


@contextlib.contextmanager
def gathering(sentences: list[str]) -> Iterator[_Scope]:
    """Gather what is required while a function is traced inside."""
    before, scope = _spoken.scopes, _Scope(sentences)
    _spoken.scopes = (*before, scope)
    try:
        yield scope
    finally:
        _spoken.scopes = before


def require(condition: Any, message: str, *values: Any) -> None:
    """Raise a ValueError where the condition, a bool or a tensor, is false.

    Args:
        condition: What must hold.
        message: The sentence, with ``{}`` for each value.
        values: Python numbers or tensors.
    """
    message = _spoken.subject.replace("{", "(").replace("}", ")") + message
    if not is_traced(condition):
        if not bool(condition):
            if is_traced(*values):
                raise SizeUnknown(message)
            raise ValueError(message.format(*(int(value) for value in values)))
        return
    if not _spoken.scopes:
        raise SizeUnknown(message)
    scope = _spoken.scopes[-1]
    with _numbering:  # Other threads may be tracing the same function.
        scope.sentences.append(message)
        number = len(scope.sentences)
    numbers = [jnp.asarray(value).astype(jnp.int32) for value in values]
    numbers += [jnp.int32(0)] * (_MAX_VALUES - len(numbers))
    scope.add((jnp.where(condition, 0, number).astype(jnp.int32), jnp.stack(numbers)))


def gathered_in_branches(
    choose: Callable[[list[Callable[[], Any]]], Any], branches: Sequence[Callable[[], Any]]
) -> Any:
    """Return what one of several traced functions makes; what it requires holds for the function around.

    Raises:
        SizeUnknown: Their results differ in size.
    """
    sentences = _spoken.scopes[-1].sentences if _spoken.scopes else []

    def inside(branch: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with gathering(sentences) as scope:
                result = branch()
            return jax.tree.map(jnp.asarray, result), scope.found

        return run

    runs = [inside(branch) for branch in branches]
    shapes = [jax.eval_shape(run)[0] for run in runs]
    if any(shape != shapes[0] for shape in shapes[1:]):
        raise SizeUnknown("expected results of one size and dtype")
    result, found = choose(runs)
    if _spoken.scopes:
        _spoken.scopes[-1].add(found)
    return result


def raise_found(sentences: Sequence[str], numbers: np.ndarray, values: np.ndarray) -> None:
    """Raise a ValueError with the first sentence that does not hold, if there is one.

    Args:
        sentences: The sentences that the numbers count.
        numbers: For each row or block the number of its sentence, or 0.
        values: For each of them the values in it.
    """
    wrong = np.flatnonzero(numbers)
    if len(wrong):
        sentence = sentences[int(np.ravel(numbers)[wrong[0]]) - 1]
        raise ValueError(sentence.format(*np.reshape(values, (-1, _MAX_VALUES))[wrong[0]].tolist()))
