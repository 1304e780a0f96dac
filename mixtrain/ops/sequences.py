"""Operations on sequences: n-gram penalty, greedy CTC decoding, list difference and edit distance."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, float32, int32, int64
from mixtrain.ops.inputs import as_floats, tensor
from mixtrain.ops.primitive import configured, primitive
from mixtrain.typing import Tensor, TensorLike


def _no_repeat(state_seq: TensorLike, log_probs: TensorLike, ngram_size: int) -> Tensor:
    """Set the scores of words that would repeat an n-gram to the minimum of float32."""
    words, scores = tensor("ops.NoRepeatNGram", state_seq), tensor("ops.NoRepeatNGram", log_probs)
    length, prefix = words.shape[-1], ngram_size - 1
    windows = np.arange(max(length - prefix, 0))[:, None] + np.arange(prefix)
    same = keras.ops.all(
        keras.ops.take(words, windows, axis=-1) == keras.ops.expand_dims(words[..., length - prefix :], -2), axis=-1
    )
    following = keras.ops.one_hot(words[..., prefix:], scores.shape[-1], dtype="bool")
    banned = keras.ops.any(keras.ops.logical_and(following, keras.ops.expand_dims(same, -1)), axis=-2)
    minimum = keras.ops.full_like(scores, float(np.finfo(np.float32).min))
    return keras.ops.where(banned, minimum, scores)


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the best path of each sequence of a CTC network, as a sparse matrix.

    `inputs`: scores (time, batch, classes), whose last class is the blank; `sequence_length`: the length of each;
    `merge_repeated`: whether repeated classes count once. Returns indices (row, position) of the decoded classes, the
    classes, the shape of the matrix, and minus the sum of the maximum scores of each sequence. Example:
    ``ops.ctc_greedy_decoder(scores, lengths)``.
    """
    where = "ops.ctc_greedy_decoder"
    scores, lengths = as_floats(where, inputs), tensor(where, sequence_length)
    known = backend.known_value(lengths)
    if known is not None and (known < 0).any() | (known > scores.shape[0]).any():
        raise RuntimeError(str(checks.fail_value(
            where, f"sequence_length should be less than {scores.shape[0] + 1}, and not negative", known.max().item(),
            "ops.clip(sequence_length, 0, inputs.shape[0])",
        )))
    inside = keras.ops.arange(scores.shape[0], dtype=lengths.dtype)[None] < lengths[:, None]
    best = keras.ops.transpose(keras.ops.argmax(scores, axis=-1))
    mask = keras.ops.logical_and(inside, best != scores.shape[-1] - 1)
    if merge_repeated:
        changes = keras.ops.pad(best[:, 1:] != best[:, :-1], [(0, 0), (1, 0)], constant_values=True)
        mask = keras.ops.logical_and(mask, changes)
    counts = keras.ops.cumsum(keras.ops.cast(mask, int32), axis=1)
    rows, steps = keras.ops.nonzero(mask)
    flat = rows * mask.shape[1] + steps
    indices = keras.ops.stack([rows, keras.ops.take(keras.ops.cast(counts, rows.dtype), flat) - 1], axis=-1)
    maxima = keras.ops.transpose(keras.ops.max(scores, axis=-1))
    total = keras.ops.sum(keras.ops.where(inside, maxima, keras.ops.zeros_like(maxima)), axis=1, keepdims=True)
    shape = keras.ops.stack([keras.ops.convert_to_tensor(mask.shape[0], int32), keras.ops.max(counts)])
    return (
        backend.to_tensor(indices, int64), backend.to_tensor(keras.ops.take(best, flat), int64),
        backend.to_tensor(shape, int64), -total,
    )


def _difference(x: TensorLike, y: TensorLike, out_idx: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of `x` that are not in `y`, and their indices."""
    x, y = tensor("ops.ListDiff", x), tensor("ops.ListDiff", y)
    (indices,) = keras.ops.nonzero(keras.ops.logical_not(keras.ops.any(x[:, None] == y[None], axis=1)))
    return keras.ops.take(x, indices), backend.to_tensor(indices, as_dtype(out_idx))


def _within(input_x: TensorLike, max_num: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
    """`input_x` - `offset` where that is from 0 to `max_num` - 1, and the indices of these elements."""
    shifted = tensor("ops.SubAndFilter", input_x) - offset
    (indices,) = keras.ops.nonzero(keras.ops.logical_and(shifted >= 0, shifted < max_num))
    return keras.ops.take(shifted, indices), keras.ops.cast(indices, int32)


def _levenshtein(source: list[Any], target: list[Any]) -> int:
    """The number of insertions, deletions and substitutions that turn `source` into `target`."""
    row = list(range(len(target) + 1))
    for number, word in enumerate(source, 1):
        previous, row = row, [number]
        for column, other in enumerate(target):
            row.append(min(previous[column + 1] + 1, row[-1] + 1, previous[column] + (word != other)))
    return row[-1]


def _sequences(where: str, indices: Tensor, values: Tensor) -> dict[tuple[int, ...], list[Any]]:
    """The sequences along the last axis of a sparse tensor, by their other indices."""
    sequences: dict[tuple[int, ...], list[Any]] = {}
    rows, words = (backend.to_numpy(tensor(where, x)) for x in (indices, values))
    for index, word in zip(rows.tolist(), words.tolist(), strict=True):
        sequences.setdefault(tuple(index[:-1]), []).append(word)
    return sequences


def _edit_distance(
    hypothesis_indices: Tensor, hypothesis_values: Tensor, hypothesis_shape: TensorLike, truth_indices: Tensor,
    truth_values: Tensor, truth_shape: TensorLike, *, normalize: bool,
) -> Tensor:
    """The edit distance of the sequences of two sparse tensors; outside compiled functions."""
    where = "ops.EditDistance"
    hypotheses = _sequences(where, hypothesis_indices, hypothesis_values)
    truths = _sequences(where, truth_indices, truth_values)
    shapes = [backend.to_numpy(tensor(where, shape)).reshape(-1)[:-1] for shape in (hypothesis_shape, truth_shape)]
    distances = np.zeros(np.maximum(*shapes).tolist(), np.float32)
    for index in np.ndindex(distances.shape):
        hypothesis, truth = hypotheses.get(index, []), truths.get(index, [])
        distance: float = _levenshtein(hypothesis, truth)
        if normalize:
            distance = distance / len(truth) if truth else (float("inf") if hypothesis else 0.0)
        distances[index] = distance
    return backend.to_tensor(distances, float32)


NoRepeatNGram = configured("NoRepeatNGram", _no_repeat, ngram_size=1)
CTCGreedyDecoder = configured("CTCGreedyDecoder", ctc_greedy_decoder, merge_repeated=True)
ListDiff = configured("ListDiff", _difference, out_idx=int32)
SubAndFilter = primitive("SubAndFilter", _within)
EditDistance = configured("EditDistance", _edit_distance, normalize=True)
