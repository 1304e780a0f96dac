"""Find the variable writes of a function in a graph, and keep the values before them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import keras
import tensorflow as tf

from mixtrain.backend.signatures import Likely
from mixtrain.backend.tensorflow.storage import is_live
from mixtrain.backend.tensorflow.tensor import copies_of, initializing_eagerly
from mixtrain.typing import Tensor

# TensorFlow marks the inputs that an operation only reads by this attribute, but not those of `READERS`.
_READ_ONLY: Final = "_read_only_resource_inputs"
# (The resource of a collective is a token that orders it relative to others.)
READERS: Final = frozenset((
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "CollectiveReduceV2",
    "CollectiveGatherV2",
))


class TraceAgain(Exception):
    """A traced function writes unexpected variables, which the next trace expects. Nothing has run."""


class Place(NamedTuple):
    """Location of a variable's value."""

    handle: Any  # The variable's resource.
    dtype: Any  # Of its value.

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

    `own`: A name scope whose operations are left out; None for no such scope.
    """

    def __init__(self, likely: Likely, *, own: str | None = None) -> None:
        self._likely, self._own = likely, own
        self._unnamed: dict[int, Place] = {}

    @contextlib.contextmanager
    def recorded(self) -> Iterator[list[tuple[Place, Any]]]:
        """Yield a list that receives the places that the code inside writes in a graph, with their previous values.

        Raises: TraceAgain if the function must be retraced.
        """
        written: list[tuple[Place, Any]] = []
        graph = tf.compat.v1.get_default_graph()
        named = [place for variable in self._likely() for place in places_of(variable)]
        places = {id(place.handle): place for place in named} | self._unnamed
        values = {key: place.read() for key, place in places.items()}
        count = len(graph.get_operations())
        with initializing_eagerly():
            yield written
        operations = graph.get_operations()[count:]
        if self._own is not None:
            operations = [operation for operation in operations if not _in_scope(operation.name, self._own)]
        found = _written(graph, operations)
        unnamed = {key: place for key, place in found.items() if key not in places}
        if unnamed:
            self._unnamed |= unnamed
            raise TraceAgain("a step writes variables that its trace did not expect: it is traced again")
        written += [(places[key], values[key]) for key in found]

    @contextlib.contextmanager
    def restorable(self) -> Iterator[Callable[[], None]]:
        """Yield a function that, called afterwards in the graph, restores what the code inside wrote.

        Raises: TraceAgain as `recorded`.
        """

        def restore() -> None:
            for place, value in written:
                place.write(value)

        with self.recorded() as written:
            yield restore


def places_of(variable: keras.Variable) -> list[Place]:
    """Return the place of each copy of a variable's value."""
    return [Place(copy.handle, copy.dtype) for copy in copies_of(variable)]


def place_of(resource: Any) -> Place | None:
    """Return the place of a variable's resource; None for one that is no variable (a lookup table, an iterator)."""
    data = resource._handle_data
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    return Place(resource, tf.as_dtype(data.shape_and_type[0].dtype))


def _written(graph: Any, operations: Iterable[Any]) -> dict[int, Place]:
    """Return the captured variables of a graph that operations write, by the identity of their resource."""
    inputs: set[int] = set()
    for operation in operations:
        inputs |= set(map(id, written_resources(operation)))
    places: dict[int, Place] = {}
    for outer, inner in graph.captures:
        if id(inner) in inputs and not is_live(outer) and (place := place_of(outer)):
            places[id(outer)] = place
    return places


def _in_scope(name: str, scope: str) -> bool:
    """Whether an operation's name has a scope among its parts; a scope that is entered again has a number added."""
    return any(part == scope or part.startswith(f"{scope}_") for part in name.split("/")[:-1])


def written_resources(operation: Any) -> list[Any]:
    """Return the resource tensors that an operation of a graph writes."""
    if operation.type in READERS:
        return []
    try:
        read_only = operation.get_attr(_READ_ONLY)
    except ValueError:
        read_only = ()
    inputs = enumerate(operation.inputs)
    return [tensor for index, tensor in inputs if tensor.dtype == tf.resource and index not in read_only]
