"""What a step's forward pass writes, and how to put it back where the step is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import keras
import tensorflow as tf

from mixtrain.backend.tensorflow.live_values import is_live
from mixtrain.backend.tensorflow.tensor import snapshot
from mixtrain.backend.tensorflow.variables import copies_of, variables_made_at_once

# TensorFlow marks the inputs that an operation only reads by this attribute, and these operations not at all.
_READ_ONLY: Final = "_read_only_resource_inputs"
# (The resource of a collective is a token that orders it among others.)
_READERS: Final = frozenset((
    "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "CollectiveReduceV2",
    "CollectiveGatherV2",
))


class TraceAgain(Exception):
    """A function writes variables that its trace did not expect; the next trace does. Nothing has run."""


class Place(NamedTuple):
    """Where a variable's value is.

    Attributes:
        handle: The variable's resource.
        dtype: The format of its value.
    """

    handle: Any
    dtype: Any

    def read(self) -> Any:
        """Return the value."""
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)

    def write(self, value: Any) -> None:
        """Put another value there."""
        tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)


class Writes:
    """Sees what a function writes in a graph, and the values from before.

    The operations tell what is written. A value must be read before that, so what nobody named (a variable that a layer
    makes in its first call, a weight that a layer normalizes in place) ends the trace, and the next one knows it: one
    object serves all traces of a function.

    Args:
        likely: Returns the variables that the function is likely to write.
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely
        self._unnamed: dict[int, Place] = {}

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[tuple[Place, Any]]]:
        """Run a function in a graph; return its result, and the places that it writes with their values from before.

        Raises:
            TraceAgain: The function must be traced again.
        """
        graph = tf.compat.v1.get_default_graph()
        named = [place for variable in self._likely() for place in places_of(variable)]
        places = {id(place.handle): place for place in named} | self._unnamed
        values = {key: place.read() for key, place in places.items()}
        count = len(graph.get_operations())
        with variables_made_at_once():
            result = function()
        written = _written(graph, graph.get_operations()[count:])
        unnamed = {key: place for key, place in written.items() if key not in places}
        if unnamed:
            self._unnamed |= unnamed
            raise TraceAgain("a step writes variables that its trace did not expect: it is traced again")
        return result, [(places[key], values[key]) for key in written]


class Rollback:
    """Runs a function whose writes can be taken back.

    In a function that is being compiled it is seen what is written.

    Args:
        likely: Returns the variables that the function is likely to write; outside of a compiled call, all that can be
            taken back.

    Example:
        >>> variable = keras.Variable(1.0)
        >>> _, undo = Rollback(lambda: [variable]).run(lambda: variable.assign(2.0))
        >>> undo()
        >>> float(variable)
        1.0
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None:
        self._likely = likely
        self._writes = Writes(likely)

    def run(self, function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        """Run a function.

        Args:
            function: Reads and writes variables.

        Returns:
            Its result, and what puts all that it wrote back to the values from before.

        Raises:
            TraceAgain: While a graph is made: the function must be traced again.
        """
        if tf.executing_eagerly():
            before = [(variable, snapshot(variable)) for variable in self._likely()]
            return function(), lambda: _assign(before)
        result, written = self._writes.of(function)

        def undo() -> None:
            for place, value in written:
                place.write(value)

        return result, undo


def _assign(values: Iterable[tuple[keras.Variable, Any]]) -> None:
    for variable, value in values:
        variable.assign(value)


def places_of(variable: keras.Variable) -> list[Place]:
    """Return where a variable's value is, each copy."""
    return [Place(copy.handle, copy.dtype) for copy in copies_of(variable)]


def _written(graph: Any, operations: Iterable[Any]) -> dict[int, Place]:
    """Return the variables from outside of a graph that operations write, by the identity of their resource."""
    inputs: set[int] = set()
    for operation in operations:
        inputs |= set(map(id, written_resources(operation)))
    found: dict[int, Place] = {}
    for outside, inside in graph.captures:
        if id(inside) in inputs and not is_live(outside):
            # Of a resource that is not a variable (a lookup table) TensorFlow knows no format.
            known = outside._handle_data
            if known is not None and known.is_set and len(known.shape_and_type) == 1:
                found[id(outside)] = Place(outside, tf.as_dtype(known.shape_and_type[0].dtype))
    return found


def written_resources(operation: Any) -> list[Any]:
    """Return the resources that an operation of a graph writes, tensors."""
    if operation.type in _READERS:
        return []
    kept = _read_only(operation)
    inputs = enumerate(operation.inputs)
    return [tensor for place, tensor in inputs if tensor.dtype == tf.resource and place not in kept]


def _read_only(operation: Any) -> Sequence[int]:
    try:
        return operation.get_attr(_READ_ONLY)  # type: ignore[no-any-return]
    except ValueError:
        return ()
