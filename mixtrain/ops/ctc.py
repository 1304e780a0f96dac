"""Connectionist temporal classification (CTC) losses."""

from __future__ import annotations

from typing import Final

import keras

from mixtrain import backend, checks
from mixtrain.ops.inputs import as_floats, tensor
from mixtrain.ops.labels import check_range
from mixtrain.ops.primitive import Primitive, configured
from mixtrain.typing import Tensor, TensorLike

# The log-probability of the impossible: finite, because the difference of two infinities is NaN.
_LOG_ZERO: Final = -1e30


def _forward(logs: Tensor, labels: Tensor) -> Tensor:
    """Compute the forward variables, log-probabilities of prefixes (T, N, 2 S + 1), of labels between blanks."""
    # No step of two to a blank, which would skip a label, or to a repeated label, which needs the blank before it.
    no_skip = keras.ops.concatenate(
        [keras.ops.ones_like(labels[:, :2], dtype="bool"), keras.ops.equal(labels[:, 2:], labels[:, :-2])], axis=1
    )
    emissions = [keras.ops.take_along_axis(logs[time], labels, axis=1) for time in range(logs.shape[0])]
    # A path starts with the first blank or the first label.
    start = keras.ops.arange(labels.shape[1])[None] < 2
    alpha = keras.ops.where(start, emissions[0], _LOG_ZERO)
    alphas = [alpha]
    for emission in emissions[1:]:
        by_one = keras.ops.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=_LOG_ZERO)
        by_two = keras.ops.pad(alpha[:, :-2], ((0, 0), (2, 0)), constant_values=_LOG_ZERO)
        paths = keras.ops.stack([alpha, by_one, keras.ops.where(no_skip, _LOG_ZERO, by_two)], axis=-1)
        alpha = keras.ops.logsumexp(paths, axis=-1) + emission
        alphas.append(alpha)
    return keras.ops.stack(alphas)


def ctc_loss(
    log_probs: TensorLike, targets: TensorLike, input_lengths: TensorLike, target_lengths: TensorLike, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """The CTC loss, the negative log likelihood of all alignments of the targets: ``(loss, log_alpha)``.

    Args:
        log_probs: Log-probabilities (T, N, C), or (T, C).
        targets: Class numbers (N, S), or the concatenated targets of all samples.
        input_lengths: The length of the input of each sample, up to T.
        target_lengths: The length of the target of each sample, up to S.
        blank: The class of the blank.
        reduction: "mean" (each loss divided by the length of its target), "sum" or "none".
        zero_infinity: Whether the infinite loss of a target that cannot be aligned becomes 0.

    The log-probabilities of prefixes have shape (N, T, 2 S + 1) (Graves et al., 2006).
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
        indices = keras.ops.minimum(starts[:, None] + keras.ops.arange(longest)[None], labels.shape[0] - 1)
        labels = keras.ops.take(labels, indices, axis=0)
    labels = labels[None] if len(labels.shape) == 1 else labels
    # What fills up a target may be any number, which no class has to have.
    labels = keras.ops.where(keras.ops.arange(labels.shape[1])[None] < counts[:, None], labels, blank)
    check_range(where, "each target", labels, 0, logs.shape[-1] - 1)
    blanks = keras.ops.full_like(labels, blank)
    extended = keras.ops.reshape(keras.ops.stack([blanks, labels], axis=-1), (labels.shape[0], -1))
    extended = keras.ops.concatenate([extended, blanks[:, :1]], axis=1)
    alpha = _forward(logs, extended)
    # A path ends with the last blank or the last label, which an empty target does not have.
    last = keras.ops.take_along_axis(alpha, (steps - 1)[None, :, None], axis=0)[0]
    ends = keras.ops.stack([2 * counts, keras.ops.maximum(2 * counts - 1, 0)], axis=1)
    tails = keras.ops.take_along_axis(last, ends, axis=1)
    tails = keras.ops.where(keras.ops.logical_and(counts[:, None] == 0, [[False, True]]), _LOG_ZERO, tails)
    losses = -keras.ops.logsumexp(tails, axis=1)
    impossible = losses > -_LOG_ZERO / 2
    losses = keras.ops.where(impossible, 0.0 if zero_infinity else float("inf"), losses)
    alpha = keras.ops.swapaxes(keras.ops.where(alpha < _LOG_ZERO / 2, float("-inf"), alpha), 0, 1)
    if reduction == "mean":
        return keras.ops.mean(losses / keras.ops.cast(keras.ops.maximum(counts, 1), losses.dtype)), alpha
    return (keras.ops.sum(losses) if reduction == "sum" else losses[0] if single else losses), alpha


CTCLossV2 = configured("CTCLossV2", ctc_loss, blank=0, reduction="none", zero_infinity=False)


class CTCLoss(Primitive):
    """The CTC loss (N,) of logits with sparse labels, and its gradient (T, N, C); the blank is the last class.

    `preprocess_collapse_repeated` is False, `ctc_merge_repeated` True; with `ignore_longer_outputs_than_inputs` the
    infinite loss of a target that cannot be aligned becomes 0. A call takes logits (T, N, C); sorted indices (labels,
    2) of labels, as sample and position; the labels (labels,), of which those from the blank on fill up their target;
    and the lengths of the inputs (N,) (Graves et al., 2006).
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

    def __call__(
        self, x: TensorLike, labels_indices: TensorLike, labels_values: TensorLike, sequence_length: TensorLike
    ) -> tuple[Tensor, Tensor]:
        logits = as_floats(self.name, x)
        steps, samples, classes = logits.shape
        indices = keras.ops.cast(tensor(self.name, labels_indices), "int32")
        values = keras.ops.cast(tensor(self.name, labels_values), "int32")
        labels = keras.ops.scatter(indices, values, (samples, steps))
        # As in MindSpore, labels that are no class but the blank or beyond it fill up a target.
        counts = keras.ops.scatter(indices[:, :1], keras.ops.cast(values < classes - 1, "int32"), (samples,))

        def total_loss(logits: Tensor) -> tuple[Tensor, Tensor]:
            losses, _ = ctc_loss(
                keras.ops.log_softmax(logits, axis=-1), labels, sequence_length, counts, classes - 1, "none",
                self.ignore_longer_outputs_than_inputs,
            )
            return keras.ops.sum(losses), losses

        _, losses, (gradient,) = backend.value_and_gradient(total_loss, [], [logits])
        return losses, gradient
