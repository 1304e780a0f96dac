"""Searching sequences: repeated n-grams, the best path of a CTC network, what one list has and another lacks."""

from __future__ import annotations

from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import as_dtype, float32, int32, int64
from mixtrain.ops.inputs import as_floats, tensor
from mixtrain.ops.primitive import configured, primitive


def _no_repeat(state_seq: Any, log_probs: Any, ngram_size: int) -> Any:
    """Make the words that would repeat an n-gram as unlikely as float32 can say."""
    words, scores = tensor("ops.NoRepeatNGram", state_seq), tensor("ops.NoRepeatNGram", log_probs)
    length, before = words.shape[-1], ngram_size - 1
    starts = np.arange(max(length - before, 0))[:, None] + np.arange(before)
    same = keras.ops.all(
        keras.ops.take(words, starts, axis=-1) == keras.ops.expand_dims(words[..., length - before :], -2), axis=-1
    )
    follows = keras.ops.one_hot(words[..., before:], scores.shape[-1], dtype="bool")
    banned = keras.ops.any(keras.ops.logical_and(follows, keras.ops.expand_dims(same, -1)), axis=-2)
    least = keras.ops.full_like(scores, float(np.finfo(np.float32).min))
    return keras.ops.where(banned, least, scores)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[Any, Any, Any, Any]:
    """Return the best path of each sequence of a CTC network, as a sparse matrix.

    Args:
        inputs: Scores of the classes, of shape (time, batch, classes); the last class is the blank.
        sequence_length: How long each sequence is.
        merge_repeated: Whether repeated classes count once.

    Returns:
        Places (row, number) of the decoded classes, the classes, the shape of the matrix, and minus the sum of the
        largest scores of each sequence.

    Example: ``ops.ctc_greedy_decoder(scores, lengths)``. Source: MindSpore, `mindspore.ops.ctc_greedy_decoder`.
    """
    where = "ops.ctc_greedy_decoder"
    scores, lengths = as_floats(where, inputs), tensor(where, sequence_length)
    inside = keras.ops.arange(scores.shape[0], dtype=lengths.dtype)[None] < lengths[:, None]
    best = keras.ops.transpose(keras.ops.argmax(scores, axis=-1))
    kept = keras.ops.logical_and(inside, best != scores.shape[-1] - 1)
    if merge_repeated:
        changes = keras.ops.pad(best[:, 1:] != best[:, :-1], [(0, 0), (1, 0)], constant_values=True)
        kept = keras.ops.logical_and(kept, changes)
    numbers = keras.ops.cumsum(keras.ops.cast(kept, int32), axis=1)
    rows, steps = keras.ops.nonzero(kept)
    flat = rows * kept.shape[1] + steps
    places = keras.ops.stack([rows, keras.ops.take(keras.ops.cast(numbers, rows.dtype), flat) - 1], axis=-1)
    largest = keras.ops.transpose(keras.ops.max(scores, axis=-1))
    total = keras.ops.sum(keras.ops.where(inside, largest, keras.ops.zeros_like(largest)), axis=1, keepdims=True)
    shape = keras.ops.stack([keras.ops.convert_to_tensor(kept.shape[0], int32), keras.ops.max(numbers)])
    return (
        backend.to_tensor(places, int64), backend.to_tensor(keras.ops.take(best, flat), int64),
        backend.to_tensor(shape, int64), -total,
    )


def _difference(x: Any, y: Any, out_idx: Any) -> tuple[Any, Any]:
    """The elements of `x` that `y` lacks, and their places."""
    one, other = tensor("ops.ListDiff", x), tensor("ops.ListDiff", y)
    (places,) = keras.ops.nonzero(keras.ops.logical_not(keras.ops.any(one[:, None] == other[None], axis=1)))
    return keras.ops.take(one, places), backend.to_tensor(places, as_dtype(out_idx))


def _within(input_x: Any, max_num: Any, offset: Any) -> tuple[Any, Any]:
    """`input_x` - `offset` where that is from 0 to `max_num` - 1, and the places."""
    moved = tensor("ops.SubAndFilter", input_x) - offset
    (places,) = keras.ops.nonzero(keras.ops.logical_and(moved >= 0, moved < max_num))
    return keras.ops.take(moved, places), keras.ops.cast(places, int32)


def _distance(one: list[Any], other: list[Any]) -> int:
    """How many insertions, deletions and exchanges turn a sequence into another."""
    row = list(range(len(other) + 1))
    for number, word in enumerate(one, 1):
        before, row = row, [number]
        for place, against in enumerate(other):
            row.append(min(before[place + 1] + 1, row[-1] + 1, before[place] + (word != against)))
    return row[-1]


def _rows(where: str, indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    """The sequences of a sparse tensor, by all but the last of their places."""
    found: dict[tuple[int, ...], list[Any]] = {}
    places, words = (backend.to_numpy(tensor(where, one)) for one in (indices, values))
    for place, word in zip(places.tolist(), words.tolist(), strict=True):
        found.setdefault(tuple(place[:-1]), []).append(word)
    return found


def _edit_distance(
    hypothesis_indices: Any, hypothesis_values: Any, hypothesis_shape: Any, truth_indices: Any, truth_values: Any,
    truth_shape: Any, *, normalize: bool,
) -> Any:
    """The edit distance of each sequence of one sparse tensor to that of another; outside compiled functions."""
    where = "ops.EditDistance"
    ours, truth = _rows(where, hypothesis_indices, hypothesis_values), _rows(where, truth_indices, truth_values)
    shapes = [backend.to_numpy(tensor(where, one)).reshape(-1)[:-1] for one in (hypothesis_shape, truth_shape)]
    found = np.zeros(np.maximum(*shapes).tolist(), np.float32)
    for place in np.ndindex(found.shape):
        one, other = ours.get(place, []), truth.get(place, [])
        far: float = _distance(one, other)
        if normalize:
            far = far / len(other) if other else (float("inf") if one else 0.0)
        found[place] = far
    return backend.to_tensor(found, float32)


NoRepeatNGram: Final = configured("NoRepeatNGram", _no_repeat, ngram_size=1)
CTCGreedyDecoder: Final = configured("CTCGreedyDecoder", ctc_greedy_decoder, merge_repeated=True)
ListDiff: Final = configured("ListDiff", _difference, out_idx=int32)
SubAndFilter: Final = primitive("SubAndFilter", _within)
EditDistance: Final = configured("EditDistance", _edit_distance, normalize=True)
