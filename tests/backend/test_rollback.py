"""What a function wrote is put back: what was named, what it made itself, and what belongs to the array library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend, seed
from mixtrain.backend import JitChoice, Rollback

PLAIN = JitChoice(False, "test")
COMPILED = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def undone(write: Callable[[], Any], named: Any = (), *, compiled: bool = True) -> Callable[[], Any]:
    """Return a call of a function whose writes are put back at once; it returns the function's result."""
    rollback = Rollback(lambda: named)

    def run() -> Any:
        with rollback.recorded() as undo:
            result = write()
        undo()
        return result

    call = backend.compile_function(run, choice=PLAIN) if compiled else run
    return lambda: backend.call_with_branches(call)


@COMPILED
def test_variables_that_were_named_are_as_before(compiled: bool) -> None:
    one, other = keras.Variable([1.0, 2.0]), keras.Variable(3, dtype="int32")

    def write() -> Any:
        one.assign(one * 2.0)
        other.assign(other + 1)
        return keras.ops.sum(one)

    call = undone(write, [one, other], compiled=compiled)
    assert [float(call()), float(call())] == [6.0, 6.0]
    assert (backend.to_numpy(one).tolist(), int(other)) == ([1.0, 2.0], 3)


@COMPILED
def test_what_nobody_named_is_put_back(compiled: bool) -> None:
    variable = keras.Variable(1.0)
    call = undone(lambda: variable.assign(variable + 1.0), compiled=compiled)
    call()
    call()
    assert float(variable) == 1.0


def test_a_stream_that_the_function_begins_stands_at_its_beginning() -> None:
    seed._Streams.of_operations.pop(("rollback", 7), None)
    call = undone(lambda: keras.random.normal((3,), seed=seed.stream_of("rollback", 7)))
    first, second = backend.to_numpy(call()), backend.to_numpy(call())
    assert first.tolist() == second.tolist()
    assert int(backend.to_numpy(seed.stream_of("rollback", 7).state)[1]) == 0


def test_writes_in_a_branch_are_put_back() -> None:
    variable = keras.Variable(1.0)

    def write() -> Any:
        backend.cond(variable > 0.0, lambda: variable.assign(5.0), lambda: None)
        return variable + 0.0

    assert float(undone(write)()) == 5.0
    assert float(variable) == 1.0


@pytest.mark.tensorflow
def test_writes_in_a_loop_of_the_graph_are_put_back() -> None:
    import tensorflow as tf

    variable, read = keras.Variable(1.0), keras.Variable(2.0)

    def body(index: Any) -> Any:
        variable.assign(variable * read)
        return index + 1

    def write() -> Any:
        tf.while_loop(lambda index: index < 3, body, [tf.constant(0)])
        return variable + 0.0

    assert float(undone(write)()) == 8.0
    assert (float(variable), float(read)) == (1.0, 2.0)


def test_what_a_summary_keeps_is_not_put_back() -> None:
    held = backend.LiveValue(backend.to_tensor(np.zeros(2, np.float32)))
    undone(lambda: held.put(keras.ops.ones(2)))()
    taken = held.take()
    assert taken is not None and taken[1].tolist() == [1.0, 1.0]


def test_an_eager_call_puts_back_what_it_creates_in_later_calls() -> None:
    made: list[keras.Variable] = []

    def write() -> Any:
        if not made:
            made.append(keras.Variable(1.0))
        made[0].assign(made[0] + 1.0)
        return made[0] + 0.0

    call = undone(write, compiled=False)
    call()
    first = float(made[0])  # On JAX nothing shows the first value.
    assert [float(call()), float(call())] == [first + 1.0] * 2
    assert float(made[0]) == first


@pytest.mark.tensorflow
@pytest.mark.parametrize("how", ["in place", "in a function"])
def test_eager_writes_that_read_no_value_are_put_back(how: str) -> None:
    import tensorflow as tf

    variable, later = tf.Variable(1.0), []
    add = tf.function(lambda: variable.assign_add(1.0))

    def write() -> Any:
        add() if how == "in a function" else variable.assign_add(1.0)
        later.append(tf.Variable(3.0))
        later[-1].assign_add(1.0)

    call = undone(write, compiled=False)
    call()
    call()
    assert variable.numpy() == 1.0
    assert [value.numpy() for value in later] == [3.0, 3.0]


@pytest.mark.tensorflow
def test_an_eager_call_that_writes_an_unknown_variable_is_not_undone_in_silence() -> None:
    import tensorflow as tf

    made: list[Any] = []

    def write() -> Any:
        for variable in made:
            variable.assign_add(1.0)

    call = undone(write, compiled=False)
    call()
    made.append(tf.Variable(1.0))
    with pytest.raises(RuntimeError, match="created between two steps"):
        call()


@pytest.mark.tensorflow
def test_an_eager_call_puts_back_only_what_it_writes_itself() -> None:
    import threading

    import tensorflow as tf

    variable = tf.Variable(1.0)

    def write() -> Any:
        # A thread that prepares the next batch moves the random state of the data set.
        thread = threading.Thread(target=lambda: variable.assign_add(1.0))
        thread.start()
        thread.join()

    undone(write, compiled=False)()
    assert variable.numpy() == 2.0


@pytest.mark.tensorflow
@COMPILED
def test_variables_and_generators_of_tensorflow_itself_are_put_back(compiled: bool) -> None:
    import tensorflow as tf

    variable, generator = tf.Variable(1.0), tf.random.Generator.from_seed(3)

    def write() -> Any:
        variable.assign_add(1.0)
        return generator.normal((2,))

    call = undone(write, compiled=compiled)
    assert call().numpy().tolist() == call().numpy().tolist()
    assert variable.numpy() == 1.0


@pytest.mark.tensorflow
def test_a_lookup_table_is_not_taken_for_a_variable() -> None:
    import tensorflow as tf

    keys = tf.lookup.KeyValueTensorInitializer(["a"], [4])
    table = tf.lookup.StaticHashTable(keys, default_value=0)
    assert int(undone(lambda: table.lookup(tf.constant("a")))()) == 4


@pytest.mark.tensorflow
def test_keras_own_global_generator_is_put_back_also_where_the_step_makes_it() -> None:
    keras.utils.clear_session(free_memory=False)
    call = undone(lambda: keras.random.normal((3,)))
    assert backend.to_numpy(call()).tolist() == backend.to_numpy(call()).tolist()
