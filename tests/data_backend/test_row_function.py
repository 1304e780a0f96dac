"""A function of rows, compiled over blocks or run at once: the same numbers, and one sentence for what does not fit."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import data_backend
from mixtrain.dataset import vision

KEYS = np.arange(3, dtype=np.int64)
ROWS = np.arange(6, dtype=np.int64).reshape(3, 2)


def _function(function: Any, *, by_block: bool = False) -> data_backend.RowFunction:
    return data_backend.RowFunction([data_backend.RowPart(function, by_block)], parallel=2)


def _below(limit: int, value: Any) -> Any:
    data_backend.require(keras.ops.max(value) < limit, "expected at most {}; got {}.", limit - 1, keras.ops.max(value))
    return value


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64", "float16"])
def test_rows_keep_their_dtype(dtype: str) -> None:
    (result,) = _function(lambda seed, x: (x + x,))(KEYS, [ROWS.astype(dtype)])
    assert (result.dtype, result.tolist()) == (dtype, (2 * ROWS).tolist())


def test_rows_and_blocks_of_any_length_give_the_same() -> None:
    by_row, by_block = _function(lambda seed, x: (3 * x,)), _function(lambda x: (3 * x,), by_block=True)
    for count in (1, 2, 3):
        for run in (by_row, by_block):
            assert run(KEYS[:count], [ROWS[:count]])[0].tolist() == (3 * ROWS[:count]).tolist()


def test_random_numbers_come_from_the_rows_key_alone() -> None:
    row_random = data_backend.row_random

    def draw(seed: Any, x: Any) -> Any:
        return x, row_random.uniform(row_random.fold_in(seed, 3), 2.0, 5.0, (4,)), row_random.integer(seed, 1000)

    run = _function(draw)
    together, alone = run(KEYS, [ROWS]), run(KEYS[2:], [ROWS[2:]])
    at_once = data_backend.call_row(draw, (2, 0), ROWS[2])
    for column, single, once in zip(together, alone, at_once, strict=True):
        np.testing.assert_array_equal(column[2], single[0])
        np.testing.assert_array_equal(column[2], once)
    assert len({tuple(row) for row in together[1]}) == 3
    assert (together[1] >= 2).all() and (together[1] < 5).all()


@pytest.mark.tensorflow
def test_random_numbers_are_those_of_tensorflow() -> None:
    import tensorflow as tf

    def draw(seed: Any, x: Any) -> Any:
        part = data_backend.row_random.fold_in(data_backend.row_random.fold_in(seed, 3), 7)
        return data_backend.row_random.uniform(part, shape=(4,)), data_backend.row_random.uniform(seed, 2.0, 5.0)

    several, one = _function(draw)(KEYS, [ROWS])
    for key, row, number in zip(KEYS.tolist(), several, one, strict=True):
        np.testing.assert_array_equal(row, tf.random.stateless_uniform((4,), [key, 4 * 256 + 8], alg="philox"))
        np.testing.assert_array_equal(number, tf.random.stateless_uniform((), [key, 0], alg="philox") * 3.0 + 2.0)


@pytest.mark.parametrize("by_block", [False, True])
def test_what_a_row_must_hold_is_said_with_its_values(by_block: bool) -> None:
    def function(*values: Any) -> Any:
        with data_backend.error_subject("map {x}"):
            return (_below(5, values[-1]),)

    run = _function(function, by_block=by_block)
    with pytest.raises(ValueError, match=r"^map \(x\): expected at most 4; got 5\.$"):
        run(KEYS, [ROWS])
    assert run(KEYS[:2], [ROWS[:2]])[0].tolist() == ROWS[:2].tolist()
    with pytest.raises(ValueError, match="^expected at most 4; got 9"):
        data_backend.call_row(lambda seed, x: (_below(5, x),), (0, 0), np.array([9]))


@pytest.mark.slow
@pytest.mark.parametrize("in_branch", [False, True])
def test_what_a_row_must_hold_is_said_before_a_later_part_fails(in_branch: bool) -> None:
    def part(x: Any) -> Any:
        slow = keras.ops.ones((300, 300), "float32") * keras.ops.cast(x[0, 0], "float32")
        for _ in range(40):
            slow = keras.ops.matmul(slow, slow) / 300.0
        data_backend.require(keras.ops.max(slow) < 2.0, "expected a small row; got {}.", x[0, 0])
        return data_backend.images.crop(x[:, :, None], 4 - 2 * x[0, 0], 0, 2, 2)

    def function(seed: Any, x: Any) -> Any:
        if not in_branch:
            return (part(x),)
        return (data_backend.row_random.cond(x[0, 0] > 0, lambda: part(x), lambda: x[:2, :2, None]),)

    image = np.ones((1, 4, 4), np.int32)
    assert _function(function)(KEYS[:1], [image])[0].shape == (1, 2, 2, 1)
    with pytest.raises(ValueError, match="expected a small row; got 3"):
        _function(function)(KEYS[:1], [3 * image])


def test_only_the_branch_that_is_taken_must_hold_what_it_requires() -> None:
    def function(seed: Any, x: Any) -> Any:
        low = keras.ops.max(x) < 2
        return (data_backend.row_random.cond(low, lambda: x, lambda: data_backend.row_random.switch(
            keras.ops.cast(x[0] // 4, "int32"), [lambda: _below(4, x), lambda: _below(6, x)])),)

    assert _function(function)(KEYS, [ROWS])[0].tolist() == ROWS.tolist()
    with pytest.raises(ValueError, match="expected at most 5; got 7"):
        _function(function)(KEYS, [ROWS + np.array([[0], [0], [2]])])


def test_results_may_have_sizes_that_the_row_decides() -> None:
    def function(seed: Any, x: Any) -> Any:
        image = x[:, :, None]
        part = data_backend.images.crop(image, 0, 0, x[0, 0], 1)
        return part, data_backend.row_random.cond(x[0, 0] > 1, lambda: x, lambda: x[:1])

    run = _function(function)
    image = np.full((1, 3, 2), 2, np.int32)
    part, chosen = run(KEYS[:1], [image])
    assert (part.shape, chosen.shape) == ((1, 2, 1, 1), (1, 3, 2))
    part, chosen = run(KEYS[:1], [image // 2])
    assert (part.shape, chosen.shape) == ((1, 1, 1, 1), (1, 1, 2))


@pytest.mark.tensorflow
def test_rows_with_files_are_decoded_and_run_in_one_call_where_that_gives_the_same() -> None:
    def flipped(seed: Any, x: Any) -> tuple[Any, ...]:
        return (x[:, ::-1] + keras.ops.cast(data_backend.row_random.integer(seed, 9), x.dtype),)

    part = data_backend.RowPart(flipped, False, (0,))
    run = data_backend.RowFunction([part], parallel=2, files=[0])
    images = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 3), dtype=np.uint8)
    files = [vision.encode_png(image) for image in images]
    labels = [np.array(number) for number in range(3)]
    assert run.call_files(KEYS, [files, labels]) is None  # No size is known.
    expected = run(KEYS, [images, np.stack(labels)])
    results = [run.call_files(KEYS, [files, labels]) for _ in range(30)]
    assert results[0] is None and results[-1] is not None
    for result, column in zip(results[-1], expected, strict=True):
        np.testing.assert_array_equal(result, column)
    larger = vision.encode_png(np.zeros((7, 5, 3), np.uint8))
    for wrong in (larger, files[0][:20], np.zeros((2, 2), np.uint8), vision.encode_jpeg(images[0])):
        assert run.call_files(KEYS, [[*files[:2], wrong], labels]) is None
    assert run.call_files(KEYS, [files, [*labels[:2], np.array([1])]]) is None
    assert run.call_files(KEYS, [files, labels]) is not None
