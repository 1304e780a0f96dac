"""Mixed precision outside of `Model`: plans, rewritten networks, train networks and loss scaling."""

from mixtrain.amp.loss_scaler import DynamicLossScaler, LossScaler, StaticLossScaler, all_finite
from mixtrain.amp.mixed_precision import auto_mixed_precision, custom_mixed_precision, get_black_list, get_white_list
from mixtrain.amp.train_network import build_train_network
from mixtrain.compat.apex.amp_optimizer import AmpOptimizer
from mixtrain.compat.apex.initialize import initialize, master_params, scale_loss
from mixtrain.compat.pytorch.autocast import OperatorTable, autocast, is_autocast_enabled, list_operators
from mixtrain.compat.pytorch.grad_scaler import GradScaler
from mixtrain.lazy_names import serve_names
from mixtrain.loss_scale.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mixtrain.precision.apply import AppliedPlan, applied_plan, apply_plan
from mixtrain.precision.plan import PlanRow, PrecisionPlan
from mixtrain.precision.planner import plan_precision

__all__ = [
    "AmpOptimizer", "AppliedPlan", "DynamicLossScaleManager", "DynamicLossScaler", "FixedLossScaleManager",
    "GradScaler", "LossScaleManager", "LossScaler", "OperatorTable", "PlanRow", "PrecisionPlan", "StaticLossScaler",
    "all_finite", "applied_plan", "apply_plan", "auto_mixed_precision", "autocast", "build_train_network",
    "custom_mixed_precision", "get_black_list", "get_white_list", "initialize", "is_autocast_enabled", "list_operators",
    "master_params", "plan_precision", "scale_loss",
]


serve_names(__name__)
