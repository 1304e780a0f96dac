"""The loss of connectionist temporal classification, and a greedy reading of its outputs."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.ops.inputs import as_floats, tensor
from mixtrain.ops.primitive import Primitive

# Minus infinity in logarithms, but for what differences of infinities would make of it.
_NEVER: Final = -1e30


def _forward(logs: Any, labels: Any) -> Any:
    """Return the log-probabilities of prefixes (T, N, 2 S + 1), labels between blanks included."""
    same = keras.ops.concatenate(
        [keras.ops.ones_like(labels[:, :2], dtype="bool"), keras.ops.equal(labels[:, 2:], labels[:, :-2])], axis=1
    )
    emitted = [
        keras.ops.take_along_axis(logs[time], labels, axis=1) for time in range(logs.shape[0])
    ]
    start = keras.ops.arange(labels.shape[1])[None] < 2
    alpha = keras.ops.where(start, emitted[0], _NEVER)
    found = [alpha]
    for step in emitted[1:]:
        by_one = keras.ops.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=_NEVER)
        by_two = keras.ops.pad(alpha[:, :-2], ((0, 0), (2, 0)), constant_values=_NEVER)
        ways = keras.ops.stack([alpha, by_one, keras.ops.where(same, _NEVER, by_two)], axis=-1)
        alpha = keras.ops.logsumexp(ways, axis=-1) + step
        found.append(alpha)
    return keras.ops.stack(found)


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Any, Any]:
    """Minus the log-probability of all alignments of targets with log-probabilities: ``(loss, log_alpha)``.

    Args:
        log_probs: (T, N, C), or (T, C).
        targets: Class numbers (N, S), or the targets of all samples one after the other.
        input_lengths: How many of the T count, for each sample.
        target_lengths: How many of the S count, for each sample.
        blank: The class of no label.
        reduction: "mean" (each loss divided by its target's length), "sum" or "none".
        zero_infinity: Whether a target that cannot be aligned costs 0.

    Returns:
        The loss, and the log-probabilities of prefixes (N, T, 2 S + 1).

    Source: Graves et al., 2006; MindSpore, `mindspore.ops.ctc_loss`.
    """
    where, logs = "ops.ctc_loss", as_floats("ops.ctc_loss", log_probs)
    checks.one_of(where, "reduction", reduction, ("mean", "sum", "none"))
    single = len(logs.shape) == 2
    logs = logs[:, None] if single else logs
    counts = keras.ops.reshape(keras.ops.cast(tensor(where, target_lengths), "int32"), (-1,))
    steps = keras.ops.reshape(keras.ops.cast(tensor(where, input_lengths), "int32"), (-1,))
    labels = keras.ops.cast(tensor(where, targets), "int32")
    if len(labels.shape) == 1 and not single:
        starts = keras.ops.cumsum(counts) - counts
        longest = int(max(counts))
        places = keras.ops.minimum(starts[:, None] + keras.ops.arange(longest)[None], labels.shape[0] - 1)
        labels = keras.ops.take(labels, places, axis=0)
    labels = labels[None] if len(labels.shape) == 1 else labels
    blanks = keras.ops.full_like(labels, blank)
    between = keras.ops.reshape(keras.ops.stack([blanks, labels], axis=-1), (labels.shape[0], -1))
    between = keras.ops.concatenate([between, blanks[:, :1]], axis=1)
    alpha = _forward(logs, between)
    last = keras.ops.take_along_axis(alpha, (steps - 1)[None, :, None], axis=0)[0]
    ends = keras.ops.stack([2 * counts, keras.ops.maximum(2 * counts - 1, 0)], axis=1)
    tails = keras.ops.take_along_axis(last, ends, axis=1)
    tails = keras.ops.where(keras.ops.logical_and(counts[:, None] == 0, [[False, True]]), _NEVER, tails)
    losses = -keras.ops.logsumexp(tails, axis=1)
    far = losses > -_NEVER / 2
    losses = keras.ops.where(far, 0.0 if zero_infinity else float("inf"), losses)
    alpha = keras.ops.swapaxes(keras.ops.where(alpha < _NEVER / 2, float("-inf"), alpha), 0, 1)
    if reduction == "mean":
        return keras.ops.mean(losses / keras.ops.cast(keras.ops.maximum(counts, 1), losses.dtype)), alpha
    return (keras.ops.sum(losses) if reduction == "sum" else losses[0] if single else losses), alpha


class CTCLossV2(Primitive):
    """`ctc_loss` with `blank`, `reduction` and `zero_infinity` given.

    Source: MindSpore, `mindspore.ops.CTCLossV2`.
    """

    def __init__(self, blank: int = 0, reduction: str = "none", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def __call__(self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> tuple[Any, Any]:
        return ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class CTCLoss(Primitive):
    """The loss of `ctc_loss` of scores before a softmax, with sparse labels, and its gradient; the last class is none.

    Args:
        preprocess_collapse_repeated: False, the only one.
        ctc_merge_repeated: True, the only one.
        ignore_longer_outputs_than_inputs: Whether a target that cannot be aligned costs 0.

    A call takes scores (T, N, C), places (labels, 2) of labels, as sample and number, in order; the labels (labels,);
    and how many of the T count (N,).

    Returns:
        The losses (N,), and the gradient of their sum (T, N, C).

    Source: Graves et al., 2006; MindSpore, `mindspore.ops.CTCLoss`.
    """

    def __init__(
        self, preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True,
        ignore_longer_outputs_than_inputs: bool = False,
    ) -> None:
        super().__init__()
        checks.one_of(self.name, "preprocess_collapse_repeated", preprocess_collapse_repeated, (False,))
        checks.one_of(self.name, "ctc_merge_repeated", ctc_merge_repeated, (True,))
        self.ignore_longer_outputs_than_inputs = checks.boolean(
            self.name, "ignore_longer_outputs_than_inputs", ignore_longer_outputs_than_inputs
        )

    def __call__(self, x: Any, labels_indices: Any, labels_values: Any, sequence_length: Any) -> tuple[Any, Any]:
        scores = as_floats(self.name, x)
        times, samples, classes = scores.shape
        places = keras.ops.cast(tensor(self.name, labels_indices), "int32")
        values = keras.ops.cast(tensor(self.name, labels_values), "int32")
        labels = keras.ops.scatter(places, values, (samples, times))
        counts = keras.ops.scatter(places[:, :1], keras.ops.ones_like(values), (samples,))

        def losses(scores: Any) -> tuple[Any, Any]:
            found, _ = ctc_loss(
                keras.ops.log_softmax(scores, axis=-1), labels, sequence_length, counts, classes - 1, "none",
                self.ignore_longer_outputs_than_inputs,
            )
            return keras.ops.sum(found), found

        _, found, (gradient,) = backend.value_and_gradient(losses, [], [scores])
        return found, gradient
