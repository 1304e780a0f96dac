"""Mixed precision by hand: plans, rewritten networks, train networks, loss scaling, under MindSpore's names."""

from mixtrain.amp.mixed_precision import (
    auto_mixed_precision,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from mixtrain.amp.scaler import DynamicLossScaler, LossScaler, StaticLossScaler, all_finite
from mixtrain.amp.train_network import build_train_network
from mixtrain.nn.step.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mixtrain.precision.apply import AppliedPlan, applied_plan, apply_plan
from mixtrain.precision.plan import PlanRow, PrecisionPlan
from mixtrain.precision.planner import plan_precision

__all__ = [
    "AppliedPlan",
    "DynamicLossScaleManager",
    "DynamicLossScaler",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaler",
    "PlanRow",
    "PrecisionPlan",
    "StaticLossScaler",
    "all_finite",
    "applied_plan",
    "apply_plan",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
    "plan_precision",
]
