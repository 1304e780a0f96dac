"""`suggest_rules`: finds the fewest layers to keep in float32 for gradients near those of float32."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

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
from mixtrain.dtype import float32
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


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """Result of `suggest_rules`. Printed, it is code to paste.

    `paths`: The layers to keep in float32. `lines`: The same as code, with `network` as the network. `tolerance`: The
    allowed relative error, of all gradients as one vector and of what a layer adds to its outputs. `error`: The larger
    of the two without the lines. `error_with`: The error with them. `layers`: The error of each layer without them.
    `steps`: Number of steps that were trained, without and with the lines, and undone. `skipped`: Number of skipped
    steps without the lines. `skipped_with`: Number of skipped steps with them. `loss`: The loss of the last of these
    steps without the lines. `loss_with`: The loss of the last step with them.
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
    in float32 one by one, the most effective first, until the gradients are within the tolerance; layers that turn out
    not to be needed are dropped. Then some steps are trained without and with the lines, and undone.

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
        paths = search.fewest(tolerance)
        results = [(0, 0.0)] * 2
        if steps:
            batches = first_batches(feed, steps)
            results = [_train(model, batches, search.layers_at(chosen)) for chosen in ((), paths)]
        (skipped, loss), (skipped_with, loss_with) = results
        return Suggestion(
            paths, tuple(_line(networks.network, path) for path in paths), tolerance, search.error(()),
            search.error(paths), search.layer_errors(), steps, skipped, skipped_with, loss, loss_with,
        )


class _Search:
    """Measures the error of a network relative to float32, with some of its layers kept in float32."""

    def __init__(self, networks: Networks, batch: Batch) -> None:
        self._networks = networks
        self._batch = batch
        self._scale = networks.loss_scale
        self._nodes = {node.path: node for node in tree_of(networks.network).walk()}
        with networks.in_float32():
            self._reference = run_pass(networks.examined, networks.with_loss, batch, 1.0)
        self._passes: dict[tuple[str, ...], Pass] = {}

    def layers_at(self, paths: Sequence[str]) -> list[Layer]:
        return [self._nodes[path].layer for path in paths]

    def _pass(self, paths: tuple[str, ...]) -> Pass:
        networks = self._networks
        if paths not in self._passes:
            try:
                with with_to_float(self.layers_at(paths), float32):
                    networks.precision.apply()
                    # Gradients that overflow only at one scale are a matter of the scale, not of a layer.
                    self._passes[paths], self._scale = run_pass_in_range(
                        networks.examined, networks.with_loss, self._batch, self._scale
                    )
            finally:
                networks.precision.apply()
        return self._passes[paths]

    def error(self, paths: tuple[str, ...]) -> float:
        """Return the error of the gradients, or of what a layer adds to its outputs, if that is larger."""
        result = self._pass(paths)
        added = (layer.added for layer in deviating(layer_errors(result, self._reference), 0.0))
        return max(gradient_error(result, self._reference), *added, 0.0)

    def _cost(self, paths: tuple[str, ...], tolerance: float) -> tuple[float, ...]:
        """Return a sort key of rules, the best first.

        Rules within the tolerance come first, by the number of layers that they cover. Others are sorted by their
        error, then by how late the first value that is not finite comes. Last are those with whose float32 the code of
        a layer around them does not run.
        """
        covered = sum(1 for path in paths for _ in self._nodes[path].walk())
        try:
            error = self.error(paths)
        except DTYPE_ERRORS:
            return (2,)
        if error <= tolerance:
            return 0, covered, error
        return 1, error, -self._pass(paths).first_non_finite(), covered

    def fewest(self, tolerance: float) -> tuple[str, ...]:
        """Return the paths of the fewest layers found that bring the error within a tolerance, by a greedy search."""
        chosen: tuple[str, ...] = ()
        while self.error(chosen) > tolerance and len(chosen) < _MAX_RULES:
            candidates = [(*chosen, path) for path in self._candidates(chosen)]
            if not candidates:
                break
            chosen = min(candidates, key=lambda paths: self._cost(paths, tolerance))
        # Later choices may have made earlier ones unnecessary.
        for path in chosen[:-1]:
            fewer = tuple(other for other in chosen if other != path)
            if self.error(fewer) <= tolerance:
                chosen = fewer
        return chosen

    def _candidates(self, chosen: tuple[str, ...]) -> list[str]:
        """Return the layers in half precision that add most to the error; only the network itself if none is left."""
        added = {path: added for path, (_, added) in forward_errors(self._pass(chosen), self._reference).items()}
        covered = {node.path for path in chosen for node in self._nodes[path].walk()}
        rows = self._networks.precision.plan.rows
        half = [row.path for row in rows if row.compute_dtype != float32 and row.path not in covered and row.path]
        ordered = sorted(half, key=lambda path: -added.get(path, 0.0))[:_MAX_CANDIDATES]
        return ordered or ([""] if "" not in chosen else [])

    def layer_errors(self) -> tuple[LayerError, ...]:
        return layer_errors(self._pass(()), self._reference)


def _train(model: Model, batches: Sequence[Batch], layers: Sequence[Layer]) -> tuple[int, float]:
    """Train with layers kept in float32, and undo the steps; return the number of skipped steps and the last loss."""
    networks = model._networks
    with with_to_float(layers, float32), restoring(networks.step.variables()):
        networks.precision.apply()
        records = [model._compiled.stepper.step(batch).records for batch in batches]
        skipped = sum(int(step.overflow.sum()) for step in records)
        loss = float(records[-1].loss[-1])
    networks.precision.apply()
    return skipped, loss


def _line(network: Network, path: str) -> str:
    """Return the `to_float` line for a layer."""
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
        return f"{code}.to_float(mixtrain.float32)"
    return f"mixtrain.to_float({code}, mixtrain.float32)"


def _attribute_of(layer: Layer, name: str, child: Layer) -> str:
    """Return the attribute of a layer that holds a child, or the child's name if there is none."""
    return next((key for key, value in vars(layer).items() if value is child), name)
