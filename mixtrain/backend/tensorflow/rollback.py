"""Undo the variable writes of a step's forward pass where the step is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import keras
import tensorflow as tf

from mixtrain.backend.tensorflow.live_values import is_live
from mixtrain.backend.tensorflow.tensor import snapshot
from mixtrain.backend.tensorflow.variables import copies_of, initializing_eagerly
from mixtrain.typing import Tensor

# TensorFlow marks the inputs that an operation only reads by this attribute, but not those of `_READERS`.
_READ_ONLY: Final = "_read_only_resource_inputs"
# (The resource of a collective is a token that orders it relative to others.)
_READERS: Final = frozenset((
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "CollectiveReduceV2",
    "CollectiveGatherV2",
))


class TraceAgain(Exception):
    """A traced function writes unexpected variables, which the next trace expects. Nothing has run."""


class Place(NamedTuple):
    """Location of a variable's value.

    Attributes:
        handle: The variable's resource.
        dtype: The dtype of its value.
    """

    handle: Any
    dtype: Any

    def read(self) -> Tensor:
        """Read the value."""
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)

    def write(self, value: Tensor) -> None:
        """Write a value."""
        tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)


class Writes:
    """Detects which variables a function writes in a graph, and keeps their previous values.

    The operations show what is written, but a value must be read before. So a write to a variable that `likely` does
    not name (one that a layer creates in its first call, a weight that a layer normalizes in place) ends the trace, and
    the next trace expects it: one object serves all traces of a function.

    Args:
        likely: Returns the variables that the function is likely to write.
        own: A name scope whose operations are left out; None for no such scope.
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]], *, own: str | None = None) -> None:
        self._likely = likely
        self._own = own
        self._unnamed: dict[int, Place] = {}

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[tuple[Place, Any]]]:
        """Run a function in a graph; return its result, and the places it writes with their previous values.

        Raises:
            TraceAgain: The function must be retraced.
        """
        graph = tf.compat.v1.get_default_graph()
        named = [place for variable in self._likely() for place in places_of(variable)]
        places = {id(place.handle): place for place in named} | self._unnamed
        values = {key: place.read() for key, place in places.items()}
        count = len(graph.get_operations())
        with initializing_eagerly():
            result = function()
        operations = graph.get_operations()[count:]
        if self._own is not None:
            operations = [operation for operation in operations if not _in_scope(operation.name, self._own)]
        written = _written(graph, operations)
        unnamed = {key: place for key, place in written.items() if key not in places}
        if unnamed:
            self._unnamed |= unnamed
            raise TraceAgain("a step writes variables that its trace did not expect: it is traced again")
        return result, [(places[key], values[key]) for key in written]


class Rollback:
    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely
        self._writes = Writes(likely)

    def run(self, function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        if tf.executing_eagerly():
            saved = [(variable, snapshot(variable)) for variable in self._likely()]
            return function(), lambda: _assign(saved)
        result, written = self._writes.of(function)

        def undo() -> None:
            for place, value in written:
                place.write(value)

        return result, undo


def _assign(values: Iterable[tuple[keras.Variable, Tensor]]) -> None:
    for variable, value in values:
        variable.assign(value)


def places_of(variable: keras.Variable) -> list[Place]:
    """Return the place of each copy of a variable's value."""
    return [Place(copy.handle, copy.dtype) for copy in copies_of(variable)]


def _written(graph: Any, operations: Iterable[Any]) -> dict[int, Place]:
    """Return the captured variables of a graph that operations write, by the identity of their resource."""
    inputs: set[int] = set()
    for operation in operations:
        inputs |= set(map(id, written_resources(operation)))
    places: dict[int, Place] = {}
    for outer, inner in graph.captures:
        if id(inner) in inputs and not is_live(outer):
            # A resource that is not a variable (a lookup table) has no dtype.
            data = outer._handle_data
            if data is not None and data.is_set and len(data.shape_and_type) == 1:
                places[id(outer)] = Place(outer, tf.as_dtype(data.shape_and_type[0].dtype))
    return places


def _in_scope(name: str, scope: str) -> bool:
    """Whether an operation's name has a scope among its parts; a scope that is entered again has a number added."""
    return any(part == scope or part.startswith(f"{scope}_") for part in name.split("/")[:-1])


def written_resources(operation: Any) -> list[Any]:
    """Return the resource tensors that an operation of a graph writes."""
    if operation.type in _READERS:
        return []
    read_only = _read_only(operation)
    inputs = enumerate(operation.inputs)
    return [tensor for index, tensor in inputs if tensor.dtype == tf.resource and index not in read_only]


def _read_only(operation: Any) -> Sequence[int]:
    try:
        return operation.get_attr(_READ_ONLY)  # type: ignore[no-any-return]
    except ValueError:
        return ()
