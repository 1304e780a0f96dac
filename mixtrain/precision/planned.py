"""The plan of a network under the options of a train step: its level's, or one that was decided before."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.network.marks import DECIDED
from mixtrain.network.walk import tree_of
from mixtrain.precision.apply import kept_plans
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planner import plan_keeping, plan_precision
from mixtrain.typing import Network


def planned(where: str, network: Network, level: Any, keep_batchnorm_fp32: Any, cast_model_type: Any) -> PrecisionPlan:
    """Return a network's plan: that of `amp.initialize` if it was called, else that of the level.

    That plan holds for good: a level passed later is refused. Without a level, plans that are in force on the network
    or on parts of it stay in force.
    """
    decided = DECIDED.of(network)
    by_default = isinstance(level, str) and level == "O0" and keep_batchnorm_fp32 is None and cast_model_type is None
    if not by_default and any(DECIDED.of(node.layer) for node in tree_of(network).walk()):
        raise checks.fail_value(
            where, "the precision of a network is decided once, and amp.initialize did", level,
            f"{where} without a level, keep_batchnorm_fp32 and cast_model_type",
        )
    if decided is not None:
        return decided  # type: ignore[no-any-return]
    if not by_default:
        return plan_precision(network, level, keep_batchnorm_fp32=keep_batchnorm_fp32, cast_model_type=cast_model_type)
    # Another `build_train_network` of the same network takes the place of the one before.
    kept = [plan for plan in kept_plans(network) if where == "Model" or plan.planning or plan.network is not network]
    return plan_keeping(network, [plan.planning() if plan.planning else plan.plan for plan in kept])
