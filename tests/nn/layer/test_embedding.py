"""Embeddings: rows, padding row, norms, sparse gradients through an optimizer, and what they refuse."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float16, float32


def test_rows_are_those_of_the_table_whatever_the_ids_shape() -> None:
    cell = nn.Embedding(5, 3)
    table = cell.embedding_table.asnumpy()
    for ids in (np.array(4), np.array([0, 4]), np.array([[1, 2], [3, 3]], np.int64)):
        assert (backend.to_numpy(cell(Tensor(ids))) == table[ids]).all()
        assert (backend.to_numpy(nn.Embedding(5, 3, True, Tensor(table))(Tensor(ids))) == table[ids]).all()


def test_table_has_the_references_name_shape_and_deviation() -> None:
    (table,) = nn.Embedding(200, 50).get_parameters()
    assert (table.name, tuple(table.shape)) == ("embedding_table", (200, 50))
    assert table.asnumpy().std() == pytest.approx(0.01, rel=0.05)


def test_padding_row_starts_as_zeros() -> None:
    table = nn.Embedding(4, 3, padding_idx=2).embedding_table.asnumpy()
    assert (table[2] == 0).all() and (table[[0, 1, 3]] != 0).all()


def test_rows_longer_than_the_norm_are_scaled_down_where_they_are_read() -> None:
    cell = nn.EmbeddingLookup(3, 2, Tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), max_norm=1.0)
    assert backend.to_numpy(cell(Tensor([0, 1, 2]))) == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0, 0]]))


@pytest.mark.parametrize("make", [nn.Momentum, nn.Adam])
def test_only_rows_that_were_read_learn(make: Any) -> None:
    cell = nn.Embedding(5, 3)
    before = cell.embedding_table.asnumpy().copy()
    optimizer = make(cell.trainable_params(), 0.1, *([0.9] if make is nn.Momentum else []))
    step = nn.TrainOneStepCell(nn.WithLossCell(cell, nn.MSELoss()), optimizer).set_train()
    step(Tensor(np.array([1, 3])), Tensor(np.ones((2, 3), np.float32)))
    moved = np.abs(cell.embedding_table.asnumpy() - before).max(1) > 0
    assert moved.tolist() == [False, True, False, True, False]


def test_to_float_reads_rows_in_half_and_keeps_the_table() -> None:
    cell = nn.Embedding(5, 3).to_float(float16)
    assert cell(Tensor([1])).dtype == float16
    assert cell.embedding_table.stored_dtype == float32


def test_representation_says_the_sizes() -> None:
    assert repr(nn.Embedding(3, 2)).startswith("Embedding(vocab_size=3, embedding_size=2, use_one_hot=False, ")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.Embedding(3, 2)(Tensor([1.0])), TypeError, "Embedding: expected ids of an int dtype; got float32"),
        (lambda: nn.Embedding(3, 2)(Tensor([3])), ValueError, "ids must be from 0 to 2; got 3. Write vocab_size=4"),
        (lambda: nn.Embedding(3, 2)(Tensor([-1])), ValueError, "ids must be from 0 to 2; got -1"),
        (lambda: nn.EmbeddingLookup(3, 2)(Tensor([7])), ValueError, "indices must be from 0 to 2; got 7"),
        (lambda: nn.Embedding(0, 2), ValueError, "vocab_size must be at least 1"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "padding_idx must be less than vocab_size=3"),
        (lambda: nn.EmbeddingLookup(3, 2, target="GPU"), ValueError, "target must be one of CPU, DEVICE"),
    ],
)
def test_what_does_not_fit_is_one_sentence(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_ids_may_come_from_a_keras_input() -> None:
    ids = keras.Input((4,), dtype="int32")
    model = keras.Model(ids, nn.Embedding(5, 3)(ids))
    assert model.output_shape == (None, 4, 3)


@pytest.mark.parametrize(("operator", "expected"), [
    ("SUM", [[-4.0, -7.0], [0.0, 0.0], [2.5, 3.0]]), ("MAX", [[2.0, 1.0], [0.0, 0.0], [2.5, 3.0]]),
    ("MEAN", [[4.0, 7.0], [0.0, 0.0], [5.0, 6.0]]),
])
def test_fields_of_features_are_joined(operator: Any, expected: Any) -> None:
    table = Tensor([[9.0, 9.0], [2.0, 1.0], [3.0, 4.0], [5.0, 6.0]])
    network = nn.MultiFieldEmbeddingLookup(4, 2, 3, param_init=table, operator=operator)
    inputs = Tensor([[1, 2, 3]]), Tensor([[1.0, -2.0, 0.5]]), Tensor([[0, 0, 2]])
    np.testing.assert_allclose(network(*inputs).asnumpy(), [expected], 1e-6)
    with pytest.raises(TypeError, match="field_ids must be int32"):
        network(*inputs[:2], Tensor([[0.0, 0.0, 2.0]]))
