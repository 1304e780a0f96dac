"""The plan of a network under the options of a train step: its level's, or one that was decided before."""

from __future__ import annotations

from typing import Any, Final

from mixtrain import checks
from mixtrain.network.walk import tree_of
from mixtrain.precision.apply import kept_plans
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planner import plan_keeping, plan_precision
from mixtrain.typing import Network

_ATTRIBUTE: Final = "_mixtrain_decided"


def decide_plan(network: Network, plan: PrecisionPlan) -> None:
    """Record the plan of a network for good, as `amp.initialize` does; a level passed later is refused."""
    object.__setattr__(network, _ATTRIBUTE, plan)


def decided_plan(network: Network) -> PrecisionPlan | None:
    return vars(network).get(_ATTRIBUTE)


def planned(where: str, network: Network, level: Any, keep_batchnorm_fp32: Any, cast_model_type: Any) -> PrecisionPlan:
    """Return a network's plan: that of `amp.initialize` if it was called, else that of the level.

    Without a level, plans that are in force on the network or on parts of it stay in force.
    """
    decided = decided_plan(network)
    by_default = isinstance(level, str) and level == "O0" and keep_batchnorm_fp32 is None and cast_model_type is None
    if not by_default and any(decided_plan(node.layer) for node in tree_of(network).walk()):
        raise checks.fail_value(
            where, "the precision of a network is decided once, and amp.initialize did", level,
            f"{where} without a level, keep_batchnorm_fp32 and cast_model_type",
        )
    if decided is not None:
        return decided
    if not by_default:
        return plan_precision(network, level, keep_batchnorm_fp32=keep_batchnorm_fp32, cast_model_type=cast_model_type)
    # Another `build_train_network` of the same network takes the place of the one before.
    kept = [plan for plan in kept_plans(network) if where == "Model" or plan.planning or plan.network is not network]
    return plan_keeping(network, [plan.planning() if plan.planning else plan.plan for plan in kept])
