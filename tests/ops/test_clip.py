"""`clip_by_global_norm`: formats, sparse gradients, and bad arguments; the reference's values are elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, ops


def test_formats_shapes_and_none_stay_and_one_tensor_gives_one() -> None:
    half = mixtrain.Tensor([3.0], mixtrain.float16)
    first, missing, last = ops.clip_by_global_norm([half, None, mixtrain.Tensor([[4.0]])], 1)
    assert (first.dtype.name, missing, last.dtype.name, tuple(last.shape)) == ("float16", None, "float32", (1, 1))
    assert [float(first[0]), float(last[0, 0])] == pytest.approx([0.6, 0.8], rel=1e-3)
    assert backend.to_numpy(ops.clip_by_global_norm(mixtrain.Tensor([3.0, 4.0]))).tolist() == pytest.approx([0.6, 0.8])


def test_large_halves_do_not_overflow_the_norm() -> None:
    big = mixtrain.Tensor(np.full(4, 60000.0), mixtrain.float16)
    assert backend.to_numpy(ops.clip_by_global_norm((big,), 2.0)[0]).tolist() == [1.0] * 4


@pytest.mark.tensorflow
def test_rows_that_a_sparse_gradient_names_twice_count_together() -> None:
    tf = pytest.importorskip("tensorflow")
    sparse = tf.IndexedSlices(tf.constant([[3.0], [3.0]]), tf.constant([1, 1]), tf.constant([3, 1]))
    (clipped,) = ops.clip_by_global_norm((sparse,), 3.0)
    assert clipped.values.numpy().tolist() == [[1.5], [1.5]]


def test_the_norm_can_be_given() -> None:
    assert backend.to_numpy(ops.clip_by_global_norm((mixtrain.Tensor([3.0]),), 1.0, 6.0)[0]).tolist() == [0.5]


def test_the_infinity_norm_is_the_largest_element() -> None:
    clipped = ops.clip_by_norm(mixtrain.Tensor([3.0, -4.0]), 2.0, float("inf"))
    assert backend.to_numpy(clipped).tolist() == pytest.approx([1.5, -2.0], rel=1e-5)


@pytest.mark.parametrize(("norm", "error"), [(0, ValueError), (-1.0, ValueError), ("1", TypeError), (None, TypeError)])
def test_a_bad_norm_is_refused(norm: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="clip_by_global_norm: clip_norm must be"):
        ops.clip_by_global_norm((mixtrain.Tensor([3.0]),), norm)


def test_nothing_to_clip_is_refused() -> None:
    with pytest.raises(ValueError, match="clip_by_global_norm: x must hold tensors"):
        ops.clip_by_global_norm(())
