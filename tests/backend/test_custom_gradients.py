"""Custom gradients of traced code: they work as long as their graph lives, and end with it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from mixtrain.backend.tensorflow.compile import graph_function
from mixtrain.backend.tensorflow.custom_gradients import _REGISTERED
from tests.backends import quick_every

pytestmark = pytest.mark.tensorflow
ONE = tf.constant([1.0, 2.0])


@tf.custom_gradient  # type: ignore[untyped-decorator]
def doubled(x: Any) -> Any:
    """Twice a tensor, with a gradient that is not that of twice a tensor."""
    return 2 * x, lambda upstream: 7 * upstream


def in_a_branch(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: doubled(x), lambda: x)


def in_a_loop(x: Any) -> Any:
    return tf.while_loop(lambda i, value: i < 2, lambda i, value: (i + 1, doubled(value)), (0, x))[1]


def names() -> set[str]:
    gc.collect()
    return set(_REGISTERED)


def gradient(function: Callable[..., Any]) -> list[float]:
    with tf.GradientTape() as tape:
        tape.watch(ONE)
        value = function(ONE)
    return tape.gradient(value, ONE).numpy().tolist()  # type: ignore[no-any-return]


@quick_every(3)
@pytest.mark.parametrize(
    ("function", "expected"), [(doubled, 7), (in_a_branch, 7), (in_a_loop, 49)], ids=["plain", "branch", "loop"]
)
def test_a_compiled_function_is_differentiated_as_long_as_it_lives_and_its_graph_ends_with_it(
    function: Callable[..., Any], expected: float
) -> None:
    before = names()
    compiled = graph_function(function)
    assert compiled(ONE) is not None
    graph = weakref.ref(compiled.get_concrete_function(ONE).graph)
    assert names() - before
    assert gradient(compiled) == gradient(graph_function(compiled)) == [expected, expected]
    del compiled
    # Names of other tests may end meanwhile, at a later collection.
    assert names() <= before and graph() is None


def test_a_function_of_the_users_outlives_the_graph_that_it_was_traced_in() -> None:
    before = names()
    users = {"function": tf.function(doubled)}
    graph_function(lambda x: users["function"](x) + 1)(ONE)
    assert len(names() - before) == 1
    assert gradient(graph_function(lambda x: 3 * users["function"](x))) == [21, 21]
    users.clear()
    assert names() <= before


def test_what_another_thread_traces_meanwhile_is_left_alone() -> None:
    before, other = names(), tf.function(doubled)

    def meanwhile(x: Any) -> Any:
        thread = threading.Thread(target=other, args=(ONE.numpy(),))
        thread.start()
        thread.join()
        return x

    graph_function(meanwhile)(ONE)
    (name,) = names() - before
    assert gradient(other) == [7, 7]
    del _REGISTERED[name]  # TensorFlow would keep it.
