"""The order of a loss function's arguments, found by their names, else by the kind of network."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final, Literal

from mixtrain import checks
from mixtrain.network.walk import is_cell

LossOrder = Literal["label_first", "output_first"]
Meaning = Literal["label", "output"]

# Words in parameter names of losses in Keras, MindSpore and PyTorch, and in scripts written for them.
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

    A loss Cell and a function of `mixtrain.ops` take ``(output, label)``, as in MindSpore. For any other function the
    names of its first two parameters decide, such as ``(y_true, y_pred)``, ``(target, x)`` or ``(logits, labels)``. If
    they do not, the order is Keras's for a Keras network and MindSpore's for a Cell.

    `loss_fn`: A callable of two positional arguments. `keras_network`: Whether the network is a Keras layer or model.

    Returns: "label_first" or "output_first".

    Raises: TypeError if both names mean the label, or both the output.

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
    modules = [base.__module__ for base in type(loss_fn).__mro__] + [getattr(loss_fn, "__module__", None) or ""]
    from_mixtrain = any(module.partition(".")[0] == "mixtrain" for module in modules)
    return "label_first" if keras_network and not from_mixtrain else "output_first"


def _first_two_names(loss_fn: Any) -> tuple[str, str]:
    """Return the names of the first two positional parameters, "" for a missing one."""
    try:
        parameters = inspect.signature(loss_fn).parameters.values()
    except (TypeError, ValueError):  # Some builtins have no signature.
        return "", ""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [parameter.name for parameter in parameters if parameter.kind in kinds]
    first, second, *_ = [*named, "", ""]
    return first, second


def _meaning(name: str) -> Meaning | None:
    """Return whether a parameter's name means the label or the output; None if neither or both."""
    words = re.split(r"_+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    meanings = {_MEANINGS[word] for word in words if word in _MEANINGS}
    return meanings.pop() if len(meanings) == 1 else None
