"""Planning: which layer computes in which dtype and by which rule, decided without touching the network."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import keras

from mixtrain import checks
from mixtrain.dtype import DType, float8_delayed, float32
from mixtrain.errors import PrecisionRuleError
from mixtrain.network.keras_own import overrides
from mixtrain.network.marks import FLOAT8_REQUEST, REQUEST
from mixtrain.network.output_calls import CallSite, output_calls
from mixtrain.network.walk import Node, tree_of, variables_of
from mixtrain.precision.cast import CastRule
from mixtrain.precision.dtypes import own_dtype, parameter_dtype_of, reason_to_stay
from mixtrain.precision.families import Family, family_of, reason_for_float32, rule_giver
from mixtrain.precision.float8_layers import has_matrix, reason_not_float8, reason_not_recommended
from mixtrain.precision.float8_state import AmaxHistories
from mixtrain.precision.levels import AmpLevel, Level, Resolved, resolve_level
from mixtrain.precision.norms import reason_not_fused
from mixtrain.precision.own_policy import chosen_policies, own_policy
from mixtrain.precision.plan import DTYPE_POLICY, LISTS, TO_FLOAT, PlanRow, PrecisionPlan
from mixtrain.precision.plan_request import Request
from mixtrain.precision.probabilities import FinalProbabilities
from mixtrain.precision.rules import Entry, LayerList, Match
from mixtrain.typing import Layer, Network

# Size of a weight matrix from which on bfloat16 pays on a CPU that multiplies it in hardware, as measured by
# `python -m benchmarks.tune_choices`.
_SMALL_PRODUCT: Final = 2**14
# The methods of a Keras model in which a user calls its layers one by one.
_STEPS: Final = ("train_step", "test_step", "predict_step", "compute_loss")


@dataclasses.dataclass(frozen=True)
class _Decision:
    """The outcome of the rules for one layer. A `dtype` of None leaves the layer as it is.

    `returns_float32`: Whether float outputs are cast to float32. `covers_below`: Whether it holds for the sublayers
    too. `float8`: The rule for products in float8 that is asked for, or None.
    """

    dtype: DType | None
    rule: str
    why: str
    returns_float32: bool = False
    covers_below: bool = False
    float8: DType | None = None


def plan_precision(
    network: Network, amp_level: AmpLevel = "O0", *, keep_batchnorm_fp32: bool | None = None,
    cast_model_type: DType | str | None = None, white_list: Sequence[Entry] | None = None,
    black_list: Sequence[Entry] | None = None,
) -> PrecisionPlan:
    """Plan which layer computes in which dtype.

    Args:
        network: A Cell, Keras layer or Keras model; a Keras one must be built.
        amp_level: "O0" leaves the network as it is; "O1" computes matrix products, convolutions and recurrent cells in
            half; "O2" everything except normalization; "O3" everything; "auto" chooses for the device. A softmax,
            sigmoid or the like that ends the network stays in float32. A Keras layer's own dtype beats the level.
        keep_batchnorm_fp32: Whether normalization is kept in float32; None for the level's rule.
        cast_model_type: float16 or bfloat16; None for the level's (float16). "float8": bfloat16, with the products of
            dense layers between the first and the last layer in float8.
        white_list: Instead of a level: compute only these in half (see `custom_mixed_precision`).
        black_list: Instead of a level: compute everything except these in half.

    Raises: ValueError if the level or the dtype is unknown. TypeError if `network` is neither a Cell nor a Keras layer.
        PrecisionRuleError if a list matches nothing, or contradicts `to_float` or the dtype of a layer that it names.

    Example: ``print(plan_precision(network, "O2"))``.

    Source: MindSpore, `mindspore.amp.auto_mixed_precision`; Micikevicius et al., 2018.
    """
    if keep_batchnorm_fp32 is not None:
        checks.boolean("plan_precision", "keep_batchnorm_fp32", keep_batchnorm_fp32)
    root = tree_of(network)
    small = amp_level == "auto" and _has_small_products(root.layer)
    resolved = resolve_level("plan_precision", amp_level, cast_model_type, small=small)
    lists: LayerList | None = None
    if white_list is not None:
        lists = LayerList("white_list", white_list, root)
    elif black_list is not None:
        lists = LayerList("black_list", black_list, root)
    planner = _Planner(root, resolved, keep_batchnorm_fp32, lists)
    level = lists.name if lists else resolved.level.name
    return PrecisionPlan(level, resolved.half, resolved.reason, tuple(planner.rows()))


def plan_keeping(network: Network, plans: Sequence[PrecisionPlan]) -> PrecisionPlan:
    """Plan a network at O0 around plans of its parts, of which the last one holds for a layer that several have.

    A `to_float` since beats their rows. The level and half are those of the network's own plan, else those of a part,
    of one whose loss is scaled by default where there is one.
    """
    kept = {id(row.target): (row, plan) for plan in plans for row in plan.rows}
    root = tree_of(network)
    planner = _Planner(root, resolve_level("plan_precision", "O0", None), None, None, kept)
    rows = tuple(planner.rows())
    sources = {id(entry[1]): entry[1] for row in rows if (entry := kept.get(id(row.target)))}
    if not sources:
        return plan_precision(network)
    source = max(sources.values(), key=lambda plan: (plan.rows[0].target is root.layer, plan.scales_loss))
    return PrecisionPlan(source.level, source.half, source.reason, rows)


def _has_small_products(network: Network) -> bool:
    """Whether all products of a network are by small matrices; False if it has no weights yet."""
    shapes = [tuple(weight.shape) for weight in variables_of(network)]
    products = [shape for shape in shapes if len(shape) > 1]
    return bool(products) and all(len(shape) == 2 and math.prod(shape) < _SMALL_PRODUCT for shape in products)


class _Planner:
    """Decides the dtype of every layer of one network.

    `resolved`: The level and the half dtype. `keep_norm`: Whether normalization is kept in float32; None for the
    level's rule. `lists`: A white or black list that replaces the level, or None. `kept`: For layers, by their ids, the
    row of another plan which holds unless `to_float` decides, and that plan.
    """

    def __init__(
        self, root: Node, resolved: Resolved, keep_norm: bool | None, lists: LayerList | None,
        kept: Mapping[int, tuple[PlanRow, PrecisionPlan]] | None = None,
    ) -> None:
        self._root = root
        self._level: Level = resolved.level
        self._half, self._float8 = resolved.half, resolved.float8
        self._keep_norm = keep_norm
        self._lists = lists
        self._kept = kept or {}
        # The ids of the layers whose dtype policy the user chose.
        self._chosen = chosen_policies(root)
        # The layers that a step of the user's may call, with the network itself.
        called = _called_by_step(root)
        self._called = set(map(id, called))
        models = [node.layer for node in root.children if isinstance(node.layer, keras.Model)] if called else []
        self._final = FinalProbabilities(root.layer, *models)
        self._decided: dict[int, tuple[Node, _Decision]] = {}
        self._outputs: dict[int, tuple[DType, bool]] = {}
        # The ids of the layers whose products the user wants in float8.
        self._asked: set[int] = set()
        # The first and the last layer with a weight matrix, by their ids.
        self._ends: dict[int, str] = {}

    def rows(self) -> Iterator[PlanRow]:
        """Yield the rows of the plan, parents first."""
        # All decisions come before the first row: the dtype of a layer's outputs depends on the layers inside it. A
        # shared layer is visited once for each path, and the last decision is kept.
        for node, decision in self._visit(self._root, None, None, None):
            self._decided[id(node.layer)] = node, decision
        weighted = [node.layer for node, _ in self._decided.values() if has_matrix(node)]
        self._ends = {id(layer): "last" for layer in weighted[-1:]} | {id(layer): "first" for layer in weighted[:1]}
        for node, decision in self._decided.values():
            yield self._row(node, decision)

    def _visit(
        self, node: Node, covering: _Decision | None, inherited: Request | None, float8: Request | None
    ) -> Iterator[tuple[Node, _Decision]]:
        """Decide for a node and all below it, under the decision and the latest `to_float` of the layers above."""
        request = _later(_later(REQUEST.of(node.layer), REQUEST.of(rule_giver(node.layer))), inherited)
        float8 = _later(_later(FLOAT8_REQUEST.of(node.layer), FLOAT8_REQUEST.of(rule_giver(node.layer))), float8)
        decision = self._decide(node, covering, request)
        if float8 is not None and (request is None or float8.stamp > request.stamp):
            decision = dataclasses.replace(decision, float8=float8.dtype, why=f"{decision.why}; {TO_FLOAT}")
            self._asked.add(id(node.layer))
        elif decision.dtype == self._half and decision.rule not in (TO_FLOAT, DTYPE_POLICY):
            decision = dataclasses.replace(decision, float8=self._float8)
        if isinstance(node.layer, keras.Operation) and not isinstance(node.layer, keras.Layer):
            if self._casts_operation(node, decision):
                yield node, decision
            return
        yield node, decision
        below = decision if decision.covers_below else covering
        for child in node.children:
            yield from self._visit(child, below, request, float8)

    def _casts_operation(self, node: Node, decision: _Decision) -> bool:
        """Whether an operation of a functional model has a row; any other computes in the dtype of its inputs."""
        if id(node.layer) in self._kept:
            return True
        if decision.dtype is None:
            return False
        listed = self._lists is not None and self._lists.entry_for(node.layer) is not None
        final = self._lists is None and self._final.computed_by(node.layer)
        return listed or final or family_of(node.layer) == "matmul"

    def _decide(self, node: Node, covering: _Decision | None, request: Request | None) -> _Decision:
        """Apply the rules to one node, the strongest first: `to_float`, a fixed or chosen dtype, then list or level."""
        family = family_of(node.layer)
        giver = rule_giver(node.layer)
        listed = (self._lists.entry_for(node.layer) or self._lists.entry_for(giver)) if self._lists else None
        if request is not None:
            self._check_contradiction(node, request.dtype, "to_float", listed)
            return _Decision(request.dtype, TO_FLOAT, f"the user requested {request.dtype.name}")
        fixed = reason_to_stay(node.layer) or (None if giver is node.layer else reason_to_stay(giver))
        if fixed is not None:
            return _Decision(None, "own dtype", fixed)
        chooser = self._chooser(node.layer)
        # O0 leaves the network as it is, so the layer's own policy is in force without a rule.
        if chooser is not None and (self._lists is not None or self._level.default != "unchanged"):
            dtype, name = own_dtype(chooser), own_policy(chooser).name
            # A class or pattern in a list gives way to a layer's own dtype; the very layer in the list contradicts it.
            if listed is not None and listed.names_layer:
                self._check_contradiction(node, dtype, f'dtype="{name}"', listed)
            why = f'the layer has dtype="{name}"'
            return _Decision(dtype, DTYPE_POLICY, why, covers_below=family == "recurrent")
        decision = self._by_level(node, family, covering) if self._lists is None else self._by_list(listed, covering)
        reason = reason_for_float32(node.layer) if decision.dtype == self._half and listed is None else None
        return decision if reason is None else _Decision(float32, decision.rule, reason, covers_below=True)

    def _chooser(self, layer: Layer) -> Layer | None:
        """Return the layer whose dtype policy, chosen by the user, a layer follows; None without such a policy."""
        if not self._chosen:
            return None
        # Keras runs a recurrent layer and its cell in one loop, whose states have a single dtype.
        cell = getattr(layer, "cell", None) if isinstance(layer, keras.layers.RNN) else None
        return next((giver for giver in (layer, rule_giver(layer), cell) if id(giver) in self._chosen), None)

    def _check_contradiction(self, node: Node, dtype: DType, rule: str, listed: Match | None) -> None:
        """Raise if a list's entry asks for another dtype than a rule of the user's for the layer."""
        if self._lists is None or listed is None:
            return
        expected = self._half if self._lists.name == "white_list" else float32
        if dtype != expected:
            undo = "do not call to_float on" if rule == TO_FLOAT else f"remove {rule} from"
            raise PrecisionRuleError(
                f"custom_mixed_precision: two rules contradict each other at {node.path or 'the network'}: "
                f"{self._lists.name} entry {listed.entry} means {expected.name}, {rule} means {dtype.name}. "
                f"Remove the entry from the list, or {undo} that layer."
            )

    def _by_list(self, listed: Match | None, covering: _Decision | None) -> _Decision:
        """Decide by a white or black list, whose entries cover the layers below them."""
        name = "" if self._lists is None else self._lists.name
        white = name == "white_list"
        if listed is not None:
            dtype = self._half if white else float32
            return _Decision(dtype, name, f"matches {listed.entry}", returns_float32=white, covers_below=True)
        if covering is not None:
            # Only the outermost layer that is covered casts its outputs back.
            return dataclasses.replace(covering, returns_float32=False)
        return _Decision(float32 if white else self._half, name, "not in the list")

    def _by_level(self, node: Node, family: Family, covering: _Decision | None) -> _Decision:
        """Decide by the row of the level: final probabilities and normalization first, then the layer's family."""
        level = self._level
        if level.default == "unchanged":
            return _Decision(None, level.name, "unchanged")
        if covering is not None:
            return dataclasses.replace(covering, returns_float32=False)
        final = self._final.reason(node.layer) if level.keeps_probabilities else None
        if final is not None:
            return _Decision(float32, level.name, final, covers_below=True)
        if family == "normalization" and level.default == "half":
            return self._normalization(level)
        if family in level.in_half:
            why = "recurrent layers compute in half" if family == "recurrent" else "matrix products compute in half"
            # A recurrent layer and its cells share the loop that runs them, so the cells follow.
            return _Decision(self._half, level.name, why, returns_float32=True, covers_below=family == "recurrent")
        return _Decision(self._half if level.default == "half" else float32, level.name, "the level's default")

    def _normalization(self, level: Level) -> _Decision:
        """Decide for a normalization in a network that computes in half; its arithmetic is float32 in any case."""
        if self._keep_norm is not None:
            rule, keep = f"keep_batchnorm_fp32={self._keep_norm}", self._keep_norm
        else:
            rule, keep = level.name, "normalization" in level.in_float32
        if keep:
            return _Decision(float32, rule, "normalization is kept in float32")
        return _Decision(float32, rule, "half in and out; its kernels compute in float32 all the same")

    def _row(self, node: Node, decision: _Decision) -> PlanRow:
        """Return the plan's row of a layer: the decision, and what is cast to carry it out."""
        layer = node.layer
        kept = self._kept_row(node, decision)
        if kept is not None:
            return dataclasses.replace(kept, path=node.path)
        output, is_cast = self._output(layer)
        cast: CastRule | None = None
        if decision.dtype is not None:
            # Parameters are stored in float32, so reading them in float32 needs no cast.
            cast = CastRule(inputs=decision.dtype, parameters=None if decision.dtype == float32 else decision.dtype)
            # The kernels of normalization take half inputs and compute in float32: a cast before them would only double
            # the memory traffic.
            if self._is_half_norm(layer, decision):
                cast = CastRule()
            if is_cast:
                cast = dataclasses.replace(cast, outputs=output)
            if id(layer) in self._called and decision.rule != TO_FLOAT:
                cast = dataclasses.replace(cast, step_outputs=float32)
        kernel = _kernel(layer)
        left_out = self._reason_not_float8(node, decision) if decision.float8 else ""
        float8 = decision.float8 if left_out is None else None
        notes = (("in separate operations: ", kernel), ("not in float8: ", left_out))
        return PlanRow(
            path=node.path, layer=type(layer).__name__, rule=decision.rule,
            why="; ".join([decision.why, *(label + reason for label, reason in notes if reason)]),
            compute_dtype=decision.dtype or own_dtype(layer), parameter_dtype=parameter_dtype_of(layer),
            output_dtype=output, cast=cast, target=layer, fused=kernel == "",
            float8=float8, histories=AmaxHistories() if float8 == float8_delayed else None,
        )

    def _reason_not_float8(self, node: Node, decision: _Decision) -> str | None:
        """Return why the products of a layer are not computed in float8; "" if it has none, None if they are."""
        reason = reason_not_float8(node.layer)
        if reason is None and decision.rule not in LISTS and id(node.layer) not in self._asked:
            end = self._ends.get(id(node.layer))
            return f"it is the {end} layer" if end is not None else reason_not_recommended(node.layer)
        return reason

    def _kept_row(self, node: Node, decision: _Decision) -> PlanRow | None:
        """Return the row of another plan that holds for a layer, or None."""
        if decision.rule == TO_FLOAT or id(node.layer) not in self._kept:
            return None
        return self._kept[id(node.layer)][0]

    def _output(self, layer: Layer) -> tuple[DType, bool]:
        """Return the dtype of a layer's float outputs, and whether they are cast to it."""
        if id(layer) not in self._outputs:
            self._outputs[id(layer)] = self._output_of(*self._decided[id(layer)])
        return self._outputs[id(layer)]

    def _output_of(self, node: Node, decision: _Decision) -> tuple[DType, bool]:
        kept = self._kept_row(node, decision)
        if kept is not None:
            return kept.output_dtype, False
        # A network returns float32, unless its user asked `to_float` of the network itself.
        if decision.returns_float32 or node is self._root and decision.dtype is not None and decision.rule != TO_FLOAT:
            return float32, True
        half_norm = self._is_half_norm(node.layer, decision)
        own = self._half if half_norm else decision.dtype or own_dtype(node.layer)
        inner = {dtype for call in output_calls(node.layer) if (dtype := self._call_dtype(call)) not in (None, own)}
        if not inner:
            return own, half_norm
        # The layers that end this one return other dtypes. A layer that is left alone passes them on; otherwise they
        # are cast to float32, so that no digit is lost.
        return (_joint_dtype(inner), False) if decision.dtype is None else (float32, True)

    def _call_dtype(self, call: CallSite) -> DType | None:
        """Return the output dtype of a call inside a network; None for the network's inputs."""
        if id(call.layer) in self._decided:
            return self._output(call.layer)[0]
        dtypes = {dtype for source in call.sources() if (dtype := self._call_dtype(source)) is not None}
        return _joint_dtype(dtypes) if dtypes else None

    def _is_half_norm(self, layer: Layer, decision: _Decision) -> bool:
        """Whether a layer normalizes in float32 between neighbors that compute in half."""
        in_half_network = self._level.default == "half" and self._lists is None
        return in_half_network and family_of(layer) == "normalization" and decision.rule not in (TO_FLOAT, DTYPE_POLICY)


def _called_by_step(root: Node) -> list[Layer]:
    """Return a Keras model, its layers and all models below if it has a step of its own, which may call each of them.

    As the network's own outputs, those that such a step gets are float32.
    """
    network = root.layer
    if not isinstance(network, keras.Model) or not any(overrides(network, method) for method in _STEPS):
        return []
    models = (node.layer for node in root.walk() if isinstance(node.layer, keras.Model))
    return [*(child.layer for child in root.children), *models]


def _joint_dtype(dtypes: set[DType]) -> DType:
    """Return the only one of some dtypes, or float32, to which Keras promotes several."""
    return next(iter(dtypes)) if len(dtypes) == 1 else float32


def _kernel(layer: Layer) -> str | None:
    """Return "" for a batch normalization that the fused kernel computes, else why it does not; None for others."""
    if not isinstance(layer, keras.layers.BatchNormalization):
        return None
    return reason_not_fused(layer) or ""


def _later(own: Request | None, inherited: Request | None) -> Request | None:
    """Return the later of two `to_float` requests: a later call on a layer above covers an earlier one below."""
    if own is None or inherited is None:
        return own or inherited
    return own if own.stamp >= inherited.stamp else inherited
