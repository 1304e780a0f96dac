"""A compiled function called at once gives what the function gives, is traced as often, and sees its variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend

tf = pytest.importorskip("tensorflow")
DirectCall = pytest.importorskip("mixtrain.backend.tensorflow.compile").DirectCall

pytestmark = pytest.mark.tensorflow


def _compiled(function: Any) -> Any:
    return tf.function(function, autograph=False)


def test_each_signature_is_traced_once() -> None:
    compiled = _compiled(lambda x: (x * 2, x + 1))
    direct = DirectCall(compiled)
    for size in (2, 3, 2, 3, 2):
        double, more = direct(tf.range(size))
        assert double.numpy().tolist() == [2 * i for i in range(size)]
        assert more.numpy().tolist() == [i + 1 for i in range(size)]
    assert [value.numpy() for value in direct(tf.constant(1.5))] == [3.0, 2.5]
    assert backend.trace_count(compiled) == 3


def test_variables_are_read_and_written_as_they_are_at_the_call() -> None:
    total = tf.Variable(1.0)

    def add(x: Any) -> tuple[Any]:
        return (total.assign_add(x),)

    direct = DirectCall(_compiled(add))
    assert [direct(tf.constant(1.0))[0].numpy() for _ in range(3)] == [2.0, 3.0, 4.0]
    total.assign(10.0)
    assert direct(tf.constant(1.0))[0].numpy() == total.numpy() == 11.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.float32(3), 6), (3, 6), ({"x": tf.constant(3.0)}, 6), (tf.Variable(3.0), 6)],
    ids=["NumPy", "a number", "a dict", "a variable"],
)
def test_what_is_no_tensor_goes_the_functions_own_way(value: Any, expected: float) -> None:
    direct = DirectCall(_compiled(lambda x: (2 * (x["x"] if isinstance(x, dict) else x),)))
    assert [float(direct(value)[0]) for _ in range(3)] == [expected] * 3


def test_results_that_are_no_tuple_of_tensors_keep_their_form() -> None:
    direct = DirectCall(_compiled(lambda x: ({"double": 2 * x}, None)))
    for _ in range(3):
        results, nothing = direct(tf.constant(2.0))
        assert results["double"].numpy() == 4 and nothing is None


def test_inside_another_function_it_is_part_of_that() -> None:
    direct = DirectCall(_compiled(lambda x: (x * x,)))
    direct(tf.constant(3.0)), direct(tf.constant(3.0))
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = _compiled(lambda x: direct(x)[0] + 1)(x)
    assert (value.numpy(), tape.gradient(value, x).numpy()) == (10.0, 6.0)


def test_what_a_call_raises_comes_out() -> None:
    direct = DirectCall(_compiled(lambda x: (tf.gather([1.0, 2.0], x),)))
    assert [direct(tf.constant(1))[0].numpy() for _ in range(2)] == [2.0, 2.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
        direct(tf.constant(5))
    assert direct(tf.constant(0))[0].numpy() == 1.0
