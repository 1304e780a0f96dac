"""`suggest_rules`: finds the fewest layers that need a higher precision for gradients near those of float32."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import keras

from mixtrain import checks
from mixtrain.diagnostics.deviation import (
    TOLERANCE,
    LayerError,
    Pass,
    deviating,
    forward_errors,
    gradient_error,
    layer_errors,
    run_pass,
    run_pass_in_range,
)
from mixtrain.diagnostics.layer_calls import DTYPE_ERRORS
from mixtrain.dtype import DType, float32
from mixtrain.network.walk import children_of, is_cell, tree_of
from mixtrain.precision.plan_request import with_to_float
from mixtrain.train.model import Model
from mixtrain.train.networks import Networks
from mixtrain.train.trial import first_batches, restoring
from mixtrain.typing import Batch, DatasetLike, Layer, Network

_WHERE: Final = "suggest_rules"
# Number of layers to try for each rule: those that add most to the error.
_MAX_CANDIDATES: Final = 8
_MAX_RULES: Final = 16
# The path of a layer and the dtype to compute it in.
_Rule: TypeAlias = tuple[str, DType]


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """Result of `suggest_rules`. Printed, it is code to paste.

    `paths`: The layers of the lines, which keep them in float32, or layers that multiply in float8 in half. `lines`:
    The same as code, with `network` as the network. `tolerance`: The allowed relative error, of all gradients as one
    vector and of what a layer adds to its outputs. `error`: The larger of the two without the lines. `error_with`: The
    error with them. `layers`: The error of each layer without them. `steps`: Number of steps that were trained, without
    and with the lines, and undone. `skipped`: Number of skipped steps without the lines. `skipped_with`: Number of
    skipped steps with them. `loss`: The loss of the last of these steps without the lines. `loss_with`: The loss of the
    last step with them.
    """

    paths: tuple[str, ...]
    lines: tuple[str, ...]
    tolerance: float
    error: float
    error_with: float
    layers: tuple[LayerError, ...]
    steps: int
    skipped: int
    skipped_with: int
    loss: float
    loss_with: float

    def __str__(self) -> str:
        head = f"# gradients or outputs differ from float32's by {self.error:.2g}"
        if not self.lines:
            return f"{head}, within {self.tolerance:g}: no rule is needed"
        trained = f"# of {self.steps} steps {self.skipped} were skipped, the last loss was {self.loss:.4g}"
        return "\n".join([
            f"{head}; with these lines, before Model(...), by {self.error_with:.2g}:", *self.lines,
            f"{trained}; with the lines {self.skipped_with} and {self.loss_with:.4g}",
        ])


def suggest_rules(model: Model, dataset: DatasetLike, tolerance: float = TOLERANCE, steps: int = 50) -> Suggestion:
    """Find the fewest `to_float` lines that bring a network in half precision near float32.

    The first batch is run in float32 and under the model's plan, layer by layer, forward and backward. Layers are kept
    in float32, or layers that multiply in float8 in half, one by one, the most effective first, until the gradients are
    within the tolerance; lines that turn out not to be needed are dropped. Then some steps are trained without and with
    the lines, and undone.

    Args:
        model: A `Model` at a level of half precision; it is left unchanged.
        dataset: Batches, as for `Model.train`.
        tolerance: Maximum relative error of all gradients as one vector, and of what a layer adds to its outputs.
        steps: Number of steps to train for the comparison; 0 for none.

    Raises: TypeError if `model` is not a Model, or an argument is not a number. ValueError if the model has no
        optimizer, or the tolerance is not above 0.

    Example: ``print(mixtrain.suggest_rules(model, dataset))``.
    """
    checks.instance(_WHERE, "model", model, Model, "suggest_rules(mixtrain.Model(...), dataset)")
    checks.integer(_WHERE, "steps", steps, at_least=0, example=50)
    checks.number(_WHERE, "tolerance", tolerance, above=0, example=0.1)
    networks = model._networks
    with model._ready_for(_WHERE, dataset) as feed:
        search = _Search(networks, feed.first())
        rules = search.fewest(tolerance)
        results = [(0, 0.0)] * 2
        if steps:
            batches = first_batches(feed, steps)
            results = [_train(model, batches, search, chosen) for chosen in ((), rules)]
        (skipped, loss), (skipped_with, loss_with) = results
        return Suggestion(
            tuple(path for path, _ in rules), tuple(_line(networks.network, *rule) for rule in rules), tolerance,
            search.error(()), search.error(rules), search.layer_errors(), steps, skipped, skipped_with, loss, loss_with,
        )


class _Search:
    """Measures the error of a network relative to float32, with rules for some of its layers."""

    def __init__(self, networks: Networks, batch: Batch) -> None:
        self._networks = networks
        self._batch = batch
        self._scale = networks.loss_scale
        self._nodes = {node.path: node for node in tree_of(networks.network).walk()}
        with networks.in_float32():
            self._reference = run_pass(networks.examined, networks.with_loss, batch, 1.0)
        self._passes: dict[tuple[_Rule, ...], Pass] = {}

    @contextlib.contextmanager
    def following(self, rules: Sequence[_Rule]) -> Iterator[None]:
        """Let the layers follow rules for the duration of a context; the plan holds them once it is applied."""
        with contextlib.ExitStack() as stack:
            # Of nested layers, and of two rules for one, the last is the one that counts.
            for path, dtype in rules:
                stack.enter_context(with_to_float([self._nodes[path].layer], dtype))
            yield

    def _pass(self, rules: tuple[_Rule, ...]) -> Pass:
        networks = self._networks
        if rules not in self._passes:
            try:
                with self.following(rules):
                    networks.precision.apply()
                    # Gradients that overflow only at one scale are a matter of the scale, not of a layer.
                    self._passes[rules], self._scale = run_pass_in_range(
                        networks.examined, networks.with_loss, self._batch, self._scale
                    )
            finally:
                networks.precision.apply()
        return self._passes[rules]

    def error(self, rules: tuple[_Rule, ...]) -> float:
        """Return the error of the gradients, or of what a layer adds to its outputs, if that is larger."""
        result = self._pass(rules)
        added = (layer.added for layer in deviating(layer_errors(result, self._reference), 0.0))
        return max(gradient_error(result, self._reference), *added, 0.0)

    def _cost(self, rules: tuple[_Rule, ...], tolerance: float) -> tuple[float, ...]:
        """Return a sort key of rules, the best first.

        Rules within the tolerance come first, by the number of layers that they cover. Others are sorted by their
        error, then by how late the first value that is not finite comes. Last are those with whose float32 the code of
        a layer around them does not run.
        """
        covered = sum(1 for path, _ in rules for _ in self._nodes[path].walk())
        try:
            error = self.error(rules)
        except DTYPE_ERRORS:
            return (2,)
        if error <= tolerance:
            return 0, covered, error
        return 1, error, -self._pass(rules).first_non_finite(), covered

    def fewest(self, tolerance: float) -> tuple[_Rule, ...]:
        """Return the fewest rules found that bring the error within a tolerance, by a greedy search."""
        chosen: tuple[_Rule, ...] = ()
        while self.error(chosen) > tolerance and len(chosen) < _MAX_RULES:
            candidates = [(*(old for old in chosen if old[0] != rule[0]), rule) for rule in self._candidates(chosen)]
            if not candidates:
                break
            chosen = min(candidates, key=lambda rules: self._cost(rules, tolerance))
        # Later choices may have made earlier ones unnecessary.
        for rule in chosen[:-1]:
            fewer = tuple(other for other in chosen if other != rule)
            if self.error(fewer) <= tolerance:
                chosen = fewer
        return chosen

    def _candidates(self, chosen: tuple[_Rule, ...]) -> list[_Rule]:
        """Return rules for the layers below float32 that add most to the error; only for the network if none is left.

        A layer that multiplies in float8 is kept in half first, and in float32 if that is not enough.
        """
        added = {path: added for path, (_, added) in forward_errors(self._pass(chosen), self._reference).items()}
        covered = {node.path for path, dtype in chosen if dtype == float32 for node in self._nodes[path].walk()}
        in_half = {path for path, dtype in chosen if dtype != float32}
        rows = self._networks.precision.plan.rows
        below = [
            row for row in rows
            if (row.compute_dtype != float32 or row.float8 is not None) and row.path not in covered and row.path
        ]
        ordered = sorted(below, key=lambda row: -added.get(row.path, 0.0))[:_MAX_CANDIDATES]
        rules = [
            (row.path, float32 if row.float8 is None or row.path in in_half else row.compute_dtype) for row in ordered
        ]
        return rules or ([("", float32)] if ("", float32) not in chosen else [])

    def layer_errors(self) -> tuple[LayerError, ...]:
        return layer_errors(self._pass(()), self._reference)


def _train(
    model: Model, batches: Sequence[Batch], search: _Search, rules: Sequence[_Rule]
) -> tuple[int, float]:
    """Train by rules, and undo the steps; return the number of skipped steps and the last loss."""
    networks = model._networks
    with search.following(rules), restoring(networks.step.variables()):
        networks.precision.apply()
        records = [model._compiled.stepper.step(batch).records for batch in batches]
        skipped = sum(int(step.overflow.sum()) for step in records)
        loss = float(records[-1].loss[-1])
    networks.precision.apply()
    return skipped, loss


def _line(network: Network, path: str, dtype: DType) -> str:
    """Return the `to_float` line of a rule."""
    layer, code = network, "network"
    rest = path
    while rest:
        # The longest name first, as a name that has dots or slashes may begin with another name.
        name, child = next(
            (name, child) for name, child in sorted(children_of(layer).items(), key=lambda item: -len(item[0]))
            if rest == name or rest.startswith((f"{name}.", f"{name}/"))
        )
        if isinstance(layer, keras.Model):
            code += f'.get_layer("{name}")'
        elif name.isdigit():
            code += f"[{name}]"
        else:
            code += f".{_attribute_of(layer, name, child)}"
        layer, rest = child, rest[len(name) + 1 :]
    if is_cell(layer):
        return f"{code}.to_float(mixtrain.{dtype.name})"
    return f"mixtrain.to_float({code}, mixtrain.{dtype.name})"


def _attribute_of(layer: Layer, name: str, child: Layer) -> str:
    """Return the attribute of a layer that holds a child, or the child's name if there is none."""
    return next((key for key, value in vars(layer).items() if value is child), name)
