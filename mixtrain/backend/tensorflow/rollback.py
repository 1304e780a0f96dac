"""Undo the variable writes of a skipped step: of a forward pass, and of Keras's own train step."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

# TensorFlow has no public name for the class of all variables; tests/backend/test_rollback.py fails if it moves.
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from mixtrain.backend.instances import weakly_all
from mixtrain.backend.signatures import Likely, Variables
from mixtrain.backend.tensorflow.control import cond
from mixtrain.backend.tensorflow.graph_writes import READERS, Place, TraceAgain, Writes, place_of, places_of
from mixtrain.backend.tensorflow.operations import observed
from mixtrain.backend.tensorflow.storage import is_live
from mixtrain.backend.tensorflow.tensor import snapshot
from mixtrain.typing import Tensor

# By the identity of a variable's resource, which its place keeps alive: the value.
_Values = dict[int, tuple[Place, Tensor]]


class Rollback:
    def __init__(self, likely: Likely) -> None:
        self._writes = Writes(likely)
        self._eager_writes = EagerWrites(likely)

    def recorded(self) -> contextlib.AbstractContextManager[Callable[[], None]]:
        return self._eager_writes.recorded() if tf.executing_eagerly() else self._writes.restorable()


def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Likely, *, own: str,
    kept: Likely, likely: Likely, on_skip: Callable[[], None], noted: keras.Variable,
) -> Callable[..., Any]:
    """The operations show what is written: no layer need list it."""
    del noted

    eager_writes = EagerWrites(likely, kept)
    writes = Writes(lambda: [*model.non_trainable_variables, *model.metrics_variables], own=own)

    def count_of_skipped() -> Tensor:
        return sum(snapshot(counts)[-1] for counts in skipped())

    def restored_step(recorded: contextlib.AbstractContextManager[Callable[[], None]], data: Any) -> Any:
        def undo() -> None:
            on_skip()
            restore()

        before = count_of_skipped()
        with recorded as restore:
            logs = train_step(data)
        cond(count_of_skipped() > before, undo, lambda: None)
        return logs

    # A function of its own: where a trace shows an unexpected write, only this function is traced again.
    @tf.function(autograph=False, reduce_retracing=True)  # type: ignore[untyped-decorator]
    def graph_step(data: Any) -> Any:
        return restored_step(writes.restorable(), data)

    def step(data: Any) -> Any:
        if tf.executing_eagerly():
            return restored_step(eager_writes.recorded(), data)
        if _makes_metrics(model):
            # Values are saved before the step, so the metrics' variables must exist: a trace creates them.
            tf.function(train_step, autograph=False).get_concrete_function(data)
        while True:
            try:
                return graph_step(data)
            except TraceAgain:
                continue

    return step


def _makes_metrics(model: keras.Model) -> bool:
    """Whether the first step creates variables, of compiled metrics or for the losses of several outputs."""
    unbuilt = any(not getattr(metric, "built", True) for metric in model.metrics)
    return unbuilt or (len(model.metrics) == 1 and keras.tree.is_nested(model.loss))


def with_values(function: Callable[[], Any], variables: Variables, values: Sequence[Tensor]) -> list[Any]:
    del function, variables, values
    raise ValueError(
        "stateless_apply: the backend must be JAX; got TensorFlow, whose variables are written in place. "
        "Write optimizer.apply(gradients, variables)."
    )


class EagerWrites:
    """Detects which variables an eager function writes, and keeps their previous values.

    The operations are observed as they run, but a value must be read before. So all variables of the process are read:
    reading copies nothing before the variable is written. They are searched for once; of those that the function
    creates, the first value counts.

    `likely`: Returns variables that are restored in any case: another thread may write them. `own`: Returns variables
    whose writes stay.
    """

    def __init__(self, likely: Likely, own: Likely = tuple) -> None:
        self._likely, self._own = likely, own
        self._known: list[weakref.ref[Any]] | None = None

    @contextlib.contextmanager
    def recorded(self) -> Iterator[Callable[[], None]]:
        """Yield a function that, called afterwards, restores what the code inside wrote."""
        if self._known is None:
            self._known = weakly_all(BaseResourceVariable)
        likely = [place for variable in self._likely() for place in places_of(variable)]
        before: _Values = {}
        _read_new(before, (*likely, *_places_of_living(self._known)))
        written = {id(place.handle): place for place in likely}

        def restore() -> None:
            own = {id(place.handle) for variable in self._own() for place in places_of(variable)}
            for key, place in written.items():
                if key in own or is_live(place.handle):
                    continue
                if key not in before:
                    raise RuntimeError(
                        "a skipped step of eager execution: the variables that it writes must be known before it, to "
                        "be restored; got a variable that was created between two steps and that the model does not "
                        "refer to. Write it to an attribute of a layer, or compile the step."
                    )
                place.write(before[key][1])

        with _created_in(self._known, before), observed(_noting(before, written)):
            yield restore


def _read_new(values: _Values, places: Iterable[Place]) -> None:
    """Read the values of places that are not known yet and have one."""
    for place in places:
        if id(place.handle) not in values:
            with contextlib.suppress(tf.errors.FailedPreconditionError, tf.errors.NotFoundError):
                values[id(place.handle)] = place, place.read()


def _places_of_living(references: Iterable[weakref.ref[Any]]) -> Iterator[Place]:
    for variable in (reference() for reference in references):
        if variable is not None and isinstance(variable.handle, tf.__internal__.EagerTensor):
            yield Place(variable.handle, variable.dtype)


@contextlib.contextmanager
def _created_in(known: list[weakref.ref[Any]], before: _Values) -> Iterator[None]:
    """Note the first values of variables that are created inside."""

    def create(next_creator: Callable[..., Any], **options: Any) -> Any:
        variable = next_creator(**options)
        if isinstance(variable, BaseResourceVariable):
            known.append(weakref.ref(variable))
            _read_new(before, _places_of_living(known[-1:]))
        return variable

    with tf.variable_creator_scope(create):
        yield


def _noting(before: _Values, written: dict[int, Place]) -> Callable[[str, Sequence[Any], Sequence[Any]], None]:
    """Return an observer of operations that notes the resources that they may write, and the values they read."""

    def observe(kind: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        for handle in inputs:
            if handle.dtype != tf.resource:
                continue
            if kind not in READERS:
                if place := place_of(handle):
                    written[id(handle)] = place
            elif kind == "ReadVariableOp" and id(handle) not in before:
                before[id(handle)] = Place(handle, outputs[0].dtype), outputs[0]

    return observe
