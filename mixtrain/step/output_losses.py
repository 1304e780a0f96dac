"""The `loss_fn` of a Model as one callable: a single loss, or the weighted sum of a loss for each output."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.boundary import run_users
from mixtrain.class_labels import require_classes
from mixtrain.step.loss_order import loss_order
from mixtrain.typing import LossFn, Tensor, Tree

LossCall = Callable[..., Any]
# Keras's losses by the name of the function that computes them, without underscores and in lower case.
_KERAS_CLASSES: Final[dict[str, type[keras.losses.Loss]]] = {
    name.lower(): kind
    for name, kind in vars(keras.losses).items()
    if inspect.isclass(kind) and issubclass(kind, keras.losses.Loss) and kind is not keras.losses.Loss
}
_KERAS_FUNCTIONS: Final = ["mse", "mae", "mape", "msle", "bce", "kld"] + [
    name for name, item in vars(keras.losses).items()
    if inspect.isfunction(item) and name not in ("get", "serialize", "deserialize")
]
# Losses whose labels have the shape of the outputs, where class numbers are a common mistake.
_OF_ONE_HOT: Final = (
    "categoricalcrossentropy", "categoricalfocalcrossentropy", "binarycrossentropy", "binaryfocalcrossentropy",
)


class _FunctionLoss(keras.losses.Loss):
    """A function ``(label, outputs)`` as in Keras's `compile`: ranks are aligned, values weighted and averaged."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        # The default, after the class, is no name for a scope of TensorFlow: it begins with an underscore.
        super().__init__(name="function_loss")
        self.function = function

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        if not keras.tree.is_nested(y_true) and not keras.tree.is_nested(y_pred):
            y_true, y_pred = _same_rank(y_true, y_pred)
        return self.function(y_true, y_pred)


def _same_rank(label: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Align shapes that differ by a last axis of size 1, so that (N,) labels and (N, 1) outputs do not broadcast.

    Vectors become columns; of higher ranks the axis is dropped.
    """
    ranks = len(label.shape), len(output.shape)
    if ranks[0] == ranks[1] + 1 and label.shape[-1] == 1:
        if ranks[1] == 1:
            return label, keras.ops.expand_dims(output, -1)
        return keras.ops.squeeze(label, -1), output
    if ranks[1] == ranks[0] + 1 and output.shape[-1] == 1:
        if ranks[0] == 1:
            return keras.ops.expand_dims(label, -1), output
        return label, keras.ops.squeeze(output, -1)
    return label, output


def loss_caller(
    loss_fn: LossFn, loss_weights: Any = None, output_names: Sequence[str] = (), *, keras_network: bool = False
) -> LossCall:
    """Return ``loss(outputs, label, sample_weight=None)`` for a loss, or for a loss of each output.

    `loss_fn`: A loss Cell, a Keras loss (object, function or name) or a function whose arguments are in the order that
    `loss_order` finds; for several outputs a dict of these by output name, or a list in the order of the outputs, with
    None for an output without a loss. `loss_weights`: A number, or a dict or list of numbers like `loss_fn`; None for
    1. `output_names`: Names of the outputs of a network that returns a list. `keras_network`: Whether the network is a
    Keras layer or model.

    Raises: TypeError if `loss_fn` cannot be called, a weight is not a number, or the names of a function's parameters
    contradict each other. ValueError if no Keras loss has this name.
    """
    several = isinstance(loss_fn, (dict, list, tuple))
    by_output = _is_keras(loss_fn) or keras_network and is_keras_loss(loss_fn, keras_network=True)
    if not several and loss_weights is None and not by_output:
        return _loss_call(loss_fn, keras_network)
    _check_weights(loss_weights)
    if not several and isinstance(loss_weights, (int, float)):
        unweighted = loss_caller(loss_fn, None, output_names, keras_network=keras_network)
        return _scaled(unweighted, float(loss_weights))
    return OutputLosses(loss_fn, loss_weights, output_names, keras_network=keras_network)


class OutputLosses:
    """The weighted sum of the losses of a network's outputs.

    `losses`: A dict or list of losses, or one Keras loss for every output. Dicts may be nested as the outputs are.
    `weights`: A dict or list of numbers, one number for all outputs, or None for 1. `names`: Names of the outputs of a
    network that returns a list. `keras_network`: Whether the network is a Keras layer or model.
    """

    def __init__(self, losses: Any, weights: Any, names: Sequence[str], *, keras_network: bool) -> None:
        self._loss_fn = losses
        self._weights = by_path(weights)
        self._names = list(names)
        self._losses: Any
        if isinstance(losses, dict):
            losses = by_path(losses)
            self._losses = {name: _optional_loss_call(loss, keras_network) for name, loss in losses.items()}
        elif isinstance(losses, (list, tuple)):
            self._losses = [_optional_loss_call(loss, keras_network) for loss in losses]
        else:
            self._losses = _optional_loss_call(losses, keras_network)

    def __call__(
        self, outputs: Tree, label: Tree, sample_weight: Tree | None = None, *, terms: dict[str, Any] | None = None
    ) -> Tensor:
        """Return the weighted sum of the losses.

        `outputs`: The outputs of the network. `label`: The labels of the outputs. `sample_weight`: The weights of the
        samples. `terms`: Receives the unweighted loss of each output, by Keras's name for it.
        """
        named = outputs_by_name(outputs, self._names)
        if isinstance(outputs, dict) and len(named) != len(outputs):  # Nested, so are the labels.
            label, sample_weight = by_path(label), by_path(sample_weight)
        if len(named) == 1 and isinstance(self._losses, list) and len(self._losses) > 1:
            raise checks.fail_value(
                "Model", "a list must have a loss for each output; Keras would use the first alone for the only output",
                f"{len(self._losses)} losses", "loss_fn=lambda y_true, y_pred: ..., a function that adds them",
            )
        if len(named) == 1 and isinstance(label, (list, tuple)) and len(label) > 1 and callable(self._losses):
            label = [label]  # The only loss takes a label of several parts.
        losses, weights = _for_each("loss_fn", self._losses, named), _for_each("loss_weights", self._weights, named)
        samples = _for_each("sample_weight", sample_weight, named)
        labeled = _labeled(label, named, losses)
        weighted = []
        # The order of Keras's results: that of the outputs in a list, and that of the losses where outputs have keys.
        for name in losses if isinstance(outputs, dict) else named:
            if losses.get(name) is None:
                continue
            term = losses[name](named[name], one_of_outputs("label", label, name, labeled), samples.get(name))
            if terms is not None:
                terms[f"{self._display_name(name)}_loss"] = term
            weight = weights.get(name)
            weighted.append(term if weight is None else term * weight)
        if not weighted:
            raise checks.fail_value("Model", "loss_fn must have a loss for an output", None, "loss_fn={'name': 'mse'}")
        return sum(weighted[1:], start=weighted[0])

    def _display_name(self, output: Any) -> str:
        """Return the name of an output; for an output without a name that of its loss, as Keras does."""
        if isinstance(output, str):
            return output
        loss = self._loss_fn[output] if isinstance(self._loss_fn, (list, tuple)) else self._loss_fn
        return str(getattr(loss, "name", None) or getattr(loss, "__name__", loss))


def outputs_by_name(outputs: Tree, names: Sequence[str]) -> dict[Any, Tensor]:
    """Return the outputs of a network by name, those in nested dicts by path, or by index if they have no names."""
    if isinstance(outputs, dict):
        return by_path(outputs)  # type: ignore[no-any-return]
    values = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    keys = names if len(names) == len(values) else range(len(values))
    return dict(zip(keys, values, strict=True))


def by_path(values: Any) -> Any:
    """Return nested dicts as one dict by path, as Keras names nested outputs; other values unchanged.

    Example:
        >>> by_path({"a": 1, "b": {"c": 2, "d": 3}})
        {'a': 1, 'b/c': 2, 'b/d': 3}
    """
    if not isinstance(values, dict):
        return values
    paths: dict[Any, Any] = {}
    for name, value in values.items():
        inner = by_path(value)
        paths |= {f"{name}/{path}": item for path, item in inner.items()} if isinstance(inner, dict) else {name: value}
    return paths


def one_of_outputs(what: str, values: Any, name: Any, names: Sequence[Any]) -> Any:
    """Return the value for one output from a dict by name, a list in the order of the outputs, or a single value.

    Raises: ValueError if there is no value for this output.
    """
    if isinstance(values, dict) and name in values:
        return values[name]
    if isinstance(values, (list, tuple)) and len(values) == len(names):
        return values[list(names).index(name)]
    if len(names) == 1 and not isinstance(values, (dict, list, tuple)):
        return values
    got = list(values) if isinstance(values, dict) else len(values) if isinstance(values, (list, tuple)) else 1
    raise checks.fail_value(
        "Model", f"there must be a {what} for output {name!r} of {list(names)}", got,
        f"a dict of {what}s by output name, or a list of them in the order of the outputs",
    )


def _labeled(label: Any, named: dict[Any, Any], losses: dict[Any, Any]) -> list[Any]:
    """Return the outputs that labels without names belong to: those with a loss, where there are too few for all."""
    count = len(label) if isinstance(label, (list, tuple)) else 1
    with_loss = [name for name in named if losses.get(name) is not None]
    return list(named) if label is None or isinstance(label, dict) or count != len(with_loss) else with_loss


def _for_each(what: str, values: Any, named: dict[Any, Any]) -> dict[Any, Any]:
    """Return a value for each output; a value that is not a dict or list goes to every output."""
    if isinstance(values, dict):
        unknown = [name for name in values if name not in named]
        if unknown:
            raise checks.fail_value(
                "Model", f"{what} must name outputs of the network, {list(named)}", unknown, f"{what} by those names"
            )
        return values
    if isinstance(values, (list, tuple)):
        return {name: one_of_outputs(what, values, name, list(named)) for name in named}
    return dict.fromkeys(named, values)


def _optional_loss_call(loss_fn: LossFn | None, keras_network: bool) -> LossCall | None:
    return None if loss_fn is None else _loss_call(loss_fn, keras_network)


def _loss_call(loss_fn: LossFn | None, keras_network: bool) -> LossCall:
    """Return a single loss as ``loss(outputs, label, sample_weight=None)``."""
    passed = loss_fn
    if isinstance(passed, str) and passed.lower() in ("crossentropy", "ce"):
        return _crossentropy_by_shape
    if isinstance(passed, str):
        try:
            loss_fn = keras.losses.get(passed)
        except ValueError:
            (near,) = checks.nearest(passed, _KERAS_FUNCTIONS)
            raise checks.fail_value(
                "WithLossCell", "loss_fn must be the name of one of Keras's losses", passed, f'loss_fn="{near}"'
            ) from None
    if isinstance(loss_fn, type) or not callable(loss_fn):
        raise checks.fail_type(
            "WithLossCell", "loss_fn must be a Cell, a Keras loss or a function", loss_fn, "loss_fn=nn.MSELoss()"
        )
    if not isinstance(loss_fn, keras.losses.Loss) and is_keras_loss(passed, keras_network=keras_network):
        # Keras's own functions become their classes, which know the reduction and take sample weights.
        kind = _is_keras(passed) and _KERAS_CLASSES.get(getattr(loss_fn, "__name__", "").replace("_", "").lower())
        loss_fn = kind() if kind else _FunctionLoss(loss_fn)
    if isinstance(loss_fn, keras.losses.Loss):
        return _keras_call(loss_fn)

    def call(outputs: Tree, label: Tree, sample_weight: Tree | None = None) -> Tensor:
        if sample_weight is not None:
            raise checks.fail_type(
                "Model", "sample_weight needs a Keras loss", loss_fn, 'loss_fn="mse" or keras.losses.MeanSquaredError()'
            )
        # A plain function written for a Cell is MindSpore code and gets `mixtrain.Tensor`; a loss Cell wraps by itself.
        plain = not keras_network and not hasattr(loss_fn, "construct")
        return run_users(loss_fn, (outputs, label), {}) if plain else loss_fn(outputs, label)

    return call


def _keras_call(loss: keras.losses.Loss) -> LossCall:
    """Return a Keras loss as ``loss(outputs, label)``; a sparse one refuses labels that are not class numbers."""
    sparse = isinstance(loss, keras.losses.SparseCategoricalCrossentropy)
    wants_classes = sparse or isinstance(loss, tuple(_KERAS_CLASSES[name] for name in _OF_ONE_HOT))
    settings = loss.get_config() if sparse else {}

    def call(outputs: Tree, label: Tree, sample_weight: Tree | None = None) -> Tensor:
        if wants_classes:
            _check_form(loss, outputs, label, sparse=sparse)
        # Keras ignores masked labels whatever their value, so they are not checked.
        if sparse and backend.mask_of(outputs) is None:
            classes = outputs.shape[settings.get("axis", -1)]
            require_classes("Model", label, classes, settings.get("ignore_class"), sample_weight)
        return loss(label, outputs, sample_weight)

    return call


def _check_form(loss: keras.losses.Loss, outputs: Tensor, label: Tensor, *, sparse: bool) -> None:
    """Refuse one-hot labels for a loss of class numbers, and the reverse, as far as shapes tell.

    Raises: ValueError if the labels have the other form; the error says which loss takes them.
    """
    shapes = [getattr(tensor, "shape", None) for tensor in (outputs, label)]
    if None in shapes or getattr(loss, "axis", -1) != -1:
        return
    output, got = map(tuple, shapes)  # type: ignore[arg-type]
    classes = output[-1] if output else None
    if classes is None or classes == 1:
        return
    numbers = len(got) == len(output) - 1 or len(got) == len(output) and got[-1] == 1
    if numbers if not sparse else len(got) == len(output) and got[-1] == classes:
        other = "CategoricalCrossentropy" if sparse else "SparseCategoricalCrossentropy"
        name = other.replace("C", "_c").removeprefix("_").lower()
        logits = getattr(loss, "from_logits", loss.get_config().get("from_logits"))
        write = f"keras.losses.{other}(from_logits=True)" if logits else f'loss_fn="{name}"'
        expected = f"{output[:-1]}, class numbers" if sparse else f"{output}, one-hot"
        raise ValueError(
            f"{type(loss).__name__}: expected labels {expected}, for outputs {output}; got labels {got}. "
            f"Write {write} for {'one-hot labels' if sparse else 'class numbers'}."
        )


def _crossentropy_by_shape(outputs: Tree, label: Tree, sample_weight: Tree | None = None) -> Tensor:
    """Compute the kind of cross entropy that Keras chooses by shape for the name "crossentropy"."""
    if outputs.shape[-1] == 1:
        name = "binary_crossentropy"
    elif len(label.shape) < len(outputs.shape) or label.shape[-1] == 1:
        name = "sparse_categorical_crossentropy"
    else:
        name = "categorical_crossentropy"
    return _loss_call(name, True)(outputs, label, sample_weight)


def is_keras_loss(loss_fn: Any, *, keras_network: bool) -> bool:
    """Whether every loss of a Model is a Keras loss or a function with Keras's order of arguments.

    `loss_fn`: As in `loss_caller`; None counts as Keras's. `keras_network`: Whether the network is a Keras layer or
    model.
    """
    if isinstance(loss_fn, (dict, list, tuple)):
        losses = loss_fn.values() if isinstance(loss_fn, dict) else loss_fn
        return all(is_keras_loss(loss, keras_network=keras_network) for loss in losses)
    if loss_fn is None or _is_keras(loss_fn):
        return True
    plain = callable(loss_fn) and not isinstance(loss_fn, type)
    return plain and loss_order(loss_fn, keras_network=keras_network) == "label_first"


def _is_keras(loss_fn: Any) -> bool:
    if isinstance(loss_fn, (str, keras.losses.Loss)):
        return True
    return getattr(keras.losses, getattr(loss_fn, "__name__", ""), None) is loss_fn and not isinstance(loss_fn, type)


def _scaled(loss: LossCall, weight: float) -> LossCall:
    return lambda outputs, label, sample_weight=None: loss(outputs, label, sample_weight) * weight


def _check_weights(weights: Any) -> None:
    for weight in keras.tree.flatten(weights):
        if weight is not None:
            checks.number("Model", "loss_weights", weight)
