"""Which argument of a plain loss function is the label: by the names of its parameters, else by the kind of network."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final, Literal

from mixtrain import checks
from mixtrain.network.walk import is_cell

LossOrder = Literal["label_first", "output_first"]
Meaning = Literal["label", "output"]

# Words of parameter names in the losses of Keras, MindSpore and PyTorch and in scripts written for them.
_MEANINGS: Final[dict[str, Meaning]] = {
    **dict.fromkeys(
        ("true", "truth", "label", "labels", "lbl", "target", "targets", "tgt", "gt", "actual", "expected"), "label"
    ),
    **dict.fromkeys(
        (
            "pred", "preds", "predicted", "prediction", "predictions", "hat", "yhat", "logit", "logits", "output",
            "outputs", "out", "input", "inputs", "prob", "probs", "probabilities", "score", "scores",
        ),
        "output",
    ),
}


def loss_order(loss_fn: Any, *, keras_network: bool) -> LossOrder:
    """Return the order in which a loss function takes the network's output and the label.

    A loss Cell, and a function of `mixtrain.ops`, takes ``(output, label)`` as in MindSpore. Any other function is
    asked for the names of its first two parameters: ``(y_true, y_pred)``, ``(target, x)``, ``(logits, labels)`` say it
    themselves. Names that say nothing leave it to the network: Keras's order for a Keras network, MindSpore's for a
    Cell.

    Args:
        loss_fn: A callable of two positional arguments.
        keras_network: Whether the network is a Keras layer or model.

    Returns:
        "label_first" or "output_first".

    Raises:
        TypeError: Both names mean the label, or both the output.

    Example:
        >>> loss_order(lambda y_true, y_pred: 0.0, keras_network=False)
        'label_first'
        >>> loss_order(lambda logits, labels: 0.0, keras_network=True)
        'output_first'

    Source: Keras, `keras.losses.Loss.call`; MindSpore, `mindspore.nn.WithLossCell`.
    """
    if is_cell(loss_fn):
        return "output_first"
    names = _first_two_names(loss_fn)
    first, second = (_meaning(name) for name in names)
    if first is not None and first == second:
        raise checks.fail_type(
            "Model", f"the names of a loss function's parameters must tell which is the label; both mean the {first}",
            f"({', '.join(names)})", "def loss(y_true, y_pred) or def loss(logits, labels)",
        )
    if "label" == first or "output" == second:
        return "label_first"
    if "output" == first or "label" == second:
        return "output_first"
    ours = any(base.__module__.partition(".")[0] == "mixtrain" for base in type(loss_fn).__mro__) or (
        (getattr(loss_fn, "__module__", None) or "").partition(".")[0] == "mixtrain"
    )
    return "label_first" if keras_network and not ours else "output_first"


def _first_two_names(loss_fn: Any) -> tuple[str, str]:
    """Return the names of the first two positional parameters; "" for one that has none."""
    try:
        parameters = inspect.signature(loss_fn).parameters.values()
    except (TypeError, ValueError):  # Some builtins have no signature.
        return "", ""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [parameter.name for parameter in parameters if parameter.kind in kinds]
    first, second, *_ = [*named, "", ""]
    return first, second


def _meaning(name: str) -> Meaning | None:
    """Return what a parameter's name says it is; None for one that says nothing, or both."""
    words = re.split(r"_+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    found = {_MEANINGS[word] for word in words if word in _MEANINGS}
    return found.pop() if len(found) == 1 else None
