"""Mixed-precision training for Keras that you can see and control.

Names are imported when they are used: a program that trains a Keras network loads nothing of MindSpore's operators,
layers and data sets.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

# First, as it raises for a Keras backend that is not supported.
from mixtrain import backend as _backend  # isort: skip

from mixtrain import faces as _faces
from mixtrain.compat.mindspore import module_paths as _module_paths
from mixtrain.lazy_names import serve_names as _serve_names

if TYPE_CHECKING:
    from mixtrain import (
        amp, common, communication, context, dataset, distribution, dtype, log, nn, ops, serialization, train,
    )
    from mixtrain import experimental, keras, mindrecord, mint, numpy, scipy  # noqa: F401  Not in `__all__`, see below.
    from mixtrain.common.accepted import (
        COMPATIBLE, LAX, STRICT, JitConfig, jit_class, lazy_inline, ms_class, mutable, no_inline, recompute,
        set_deterministic, set_recursion_limit,
    )
    from mixtrain.amp import build_train_network
    from mixtrain.compat.mindspore.convert import ckpt_to_safetensors, safetensors_to_ckpt
    from mixtrain.compat.mindspore.sharding import (
        Layout, get_algo_parameters, reset_algo_parameters, set_algo_parameters,
    )
    from mixtrain.compat.mindspore.train.data_sink import data_sink
    from mixtrain.compat.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset
    from mixtrain.common.dlpack import from_dlpack, frombuffer, to_dlpack
    from mixtrain.common.generator import Generator, get_rng_state, initial_seed, manual_seed, set_rng_state
    from mixtrain.common.jit_function import jit, ms_function
    from mixtrain.common.parameter import Parameter, ParameterTuple
    from mixtrain.common.run_check import run_check
    from mixtrain.common.tensor import Tensor, from_numpy, tensor
    from mixtrain.context import (
        GRAPH_MODE, PYNATIVE_MODE, ParallelMode, get_auto_parallel_context, get_context, get_ps_context,
        reset_auto_parallel_context, reset_ps_context, set_auto_parallel_context, set_context, set_device,
        set_ps_context,
    )
    from mixtrain.dtype import (
        bfloat16, bool_, complex64, complex128, double, dtype_to_nptype, dtype_to_pytype, float8, float8_delayed,
        float16, float32, float64, get_py_obj_dtype, half, int8, int16, int32, int64, pytype_to_dtype, single, uint8,
        uint16, uint32, uint64,
    )
    from mixtrain.errors import (
        CheckpointError, LossScaleExhausted, MixtrainError, PrecisionRuleError, UnsupportedBackendError,
    )
    from mixtrain.log import get_level, get_log_config
    from mixtrain.nn.metrics import (
        F1, MAE, MSE, ROC, Accuracy, BleuScore, ConfusionMatrix, ConfusionMatrixMetric, CosineSimilarity, Dice, Fbeta,
        HausdorffDistance, Loss, MeanSurfaceDistance, Metric, OcclusionSensitivity, Perplexity, Precision, Recall,
        RootMeanSquareDistance, Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy, auc,
        get_metric_fn, names, rearrange_inputs,
    )
    from mixtrain.loss_scale.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
    from mixtrain.ops import (  # type: ignore[no-redef]  # A module has the name of a function.
        constexpr, get_grad, grad, is_tensor, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap,
    )
    from mixtrain.ops.autograd_function import _Function  # noqa: F401  MindSpore's name for it.
    from mixtrain.ops.sparse import COOTensor, CSRTensor, RowTensor, SparseTensor
    from mixtrain.precision.plan_request import to_float
    from mixtrain.seed import get_seed, set_seed
    from mixtrain.serialization import (
        async_ckpt_thread_status, export, load, load_checkpoint, load_checkpoint_async, load_latest_checkpoint,
        load_param_into_net, save_checkpoint,
    )
    from mixtrain.train import SummaryRecord
    from mixtrain.train.callback import (
        BackupAndRestore, Callback, CheckpointConfig, EarlyStopping, History, LambdaCallback, LearningRateScheduler,
        LossMonitor, LossScaleMonitor, MetricsLogger, ModelCheckpoint, OnRequestExit, OverflowMonitor, RangeMonitor,
        ReduceLROnPlateau, SummaryCollector, TimeMonitor,
    )
    from mixtrain.train.calibration import calibrate_loss_scale
    from mixtrain.train.model import Model
    from mixtrain.train.run_context import RunContext
    from mixtrain.train.suggestion import suggest_rules
    from mixtrain.train.tuning import tune
    from mixtrain.version import __version__

# The names by the module that defines them.
_NAMES = {
    "mixtrain.amp": "build_train_network",
    "mixtrain.common.accepted": (
        "COMPATIBLE JitConfig LAX STRICT jit_class lazy_inline ms_class mutable no_inline recompute set_deterministic "
        "set_recursion_limit"
    ),
    "mixtrain.common.dlpack": "from_dlpack frombuffer to_dlpack",
    "mixtrain.common.generator": "Generator get_rng_state initial_seed manual_seed set_rng_state",
    "mixtrain.common.jit_function": "jit ms_function",
    "mixtrain.common.parameter": "Parameter ParameterTuple",
    "mixtrain.common.run_check": "run_check",
    "mixtrain.common.tensor": "Tensor from_numpy tensor",
    "mixtrain.context": (
        "GRAPH_MODE PYNATIVE_MODE ParallelMode get_auto_parallel_context get_context get_ps_context "
        "reset_auto_parallel_context reset_ps_context set_auto_parallel_context set_context set_device set_ps_context"
    ),
    "mixtrain.dtype": (
        "bfloat16 bool_ complex128 complex64 double dtype_to_nptype dtype_to_pytype float16 float32 float64 "
        "float8 float8_delayed get_py_obj_dtype "
        "half int16 int32 int64 int8 pytype_to_dtype single uint16 uint32 uint64 uint8"
    ),
    "mixtrain.errors": "CheckpointError LossScaleExhausted MixtrainError PrecisionRuleError UnsupportedBackendError",
    "mixtrain.log": "get_level get_log_config",
    "mixtrain.loss_scale.manager": "DynamicLossScaleManager FixedLossScaleManager LossScaleManager",
    "mixtrain.nn.metrics": (
        "Accuracy BleuScore ConfusionMatrix ConfusionMatrixMetric CosineSimilarity Dice F1 Fbeta HausdorffDistance "
        "Loss MAE MSE MeanSurfaceDistance Metric OcclusionSensitivity Perplexity Precision ROC Recall "
        "RootMeanSquareDistance Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy auc "
        "get_metric_fn names rearrange_inputs"
    ),
    "mixtrain.ops": "constexpr get_grad grad is_tensor jacfwd jacrev jvp value_and_grad vjp vmap",
    "mixtrain.ops.sparse": "COOTensor CSRTensor RowTensor SparseTensor",
    "mixtrain.precision.plan_request": "to_float",
    "mixtrain.seed": "get_seed set_seed",
    "mixtrain.serialization": (
        "async_ckpt_thread_status export load load_checkpoint load_checkpoint_async load_latest_checkpoint "
        "load_param_into_net save_checkpoint"
    ),
    "mixtrain.compat.mindspore.convert": "ckpt_to_safetensors safetensors_to_ckpt",
    "mixtrain.compat.mindspore.sharding": (
        "Layout get_algo_parameters reset_algo_parameters set_algo_parameters"
    ),
    "mixtrain.compat.mindspore.train.data_sink": "data_sink",
    "mixtrain.compat.mindspore.train.dataset_helper": "DatasetHelper connect_network_with_dataset",
    "mixtrain.train": "SummaryRecord",
    "mixtrain.train.calibration": "calibrate_loss_scale",
    "mixtrain.train.callback": (
        "BackupAndRestore Callback CheckpointConfig EarlyStopping History LambdaCallback LearningRateScheduler "
        "LossMonitor LossScaleMonitor MetricsLogger ModelCheckpoint OnRequestExit OverflowMonitor RangeMonitor "
        "ReduceLROnPlateau SummaryCollector TimeMonitor"
    ),
    "mixtrain.train.model": "Model",
    "mixtrain.train.run_context": "RunContext",
    "mixtrain.train.suggestion": "suggest_rules",
    "mixtrain.train.tuning": "tune",
    "mixtrain.version": "__version__",
}
_MODULES = (
    "amp", "common", "communication", "context", "dataset", "distribution", "dtype", "experimental", "keras",
    "log", "mindrecord", "mint", "nn", "numpy", "ops", "scipy", "serialization", "train",
)
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
_HOMES |= {name: f"mixtrain.{name}:" for name in _MODULES}
# MindSpore's name for it; not in `__all__`, as `from mixtrain import *` would replace Python's. For the same reason
# `keras` and `numpy` are not.
_HOMES["bool"] = "mixtrain.dtype:bool_"
_HOMES["_Function"] = "mixtrain.ops.autograd_function"

_serve_names(__name__, _HOMES)
_module_paths.install_homes()
_faces.load_with(lambda: _import_module("mixtrain.nn"))
_backend.load_public_with(lambda: _import_module("mixtrain.common.tensor"))


def __dir__() -> list[str]:
    """Return the public names. Modules of MindSpore's names, such as `mixtrain.boost`, can be used all the same."""
    return sorted([*__all__, "bool", "experimental", "keras", "mindrecord", "mint", "numpy", "scipy"])


__all__ = [
    "SparseTensor", "async_ckpt_thread_status", "from_dlpack", "frombuffer", "get_level", "get_log_config",
    "get_py_obj_dtype", "run_check", "set_deterministic", "set_recursion_limit", "to_dlpack", "COOTensor", "CSRTensor",
    "RowTensor", "constexpr", "vmap", "COMPATIBLE", "JitConfig", "LAX", "STRICT", "dtype_to_pytype", "get_grad",
    "jit_class", "lazy_inline", "ms_class", "mutable", "no_inline", "recompute", "F1", "GRAPH_MODE", "MAE", "MSE",
    "PYNATIVE_MODE", "ROC", "Accuracy", "BackupAndRestore", "BleuScore", "Callback", "CheckpointConfig",
    "CheckpointError", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice",
    "DynamicLossScaleManager", "EarlyStopping", "Fbeta", "FixedLossScaleManager", "Generator", "History",
    "LambdaCallback", "LearningRateScheduler", "Loss", "LossMonitor", "LossScaleExhausted", "LossScaleManager",
    "LossScaleMonitor", "Metric", "MetricsLogger", "MixtrainError", "Model", "ModelCheckpoint", "OnRequestExit",
    "OverflowMonitor", "ParallelMode", "Parameter", "ParameterTuple", "Perplexity", "Precision", "PrecisionRuleError",
    "Recall", "RangeMonitor", "ReduceLROnPlateau", "RunContext", "SummaryCollector", "SummaryRecord", "Tensor",
    "from_numpy", "initial_seed", "is_tensor", "manual_seed", "tensor", "TimeMonitor", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "UnsupportedBackendError", "__version__", "amp", "auc",
    "bfloat16", "bool_", "build_train_network", "calibrate_loss_scale", "common", "communication", "complex64",
    "complex128", "context", "data_sink", "dataset", "distribution", "double", "dtype", "dtype_to_nptype", "export",
    "float16", "float8", "float8_delayed",
    "float32", "float64", "get_auto_parallel_context", "get_context", "get_metric_fn", "get_ps_context",
    "get_rng_state", "get_seed", "grad", "half", "int8", "int16", "int32", "int64", "jacfwd", "jacrev", "jit", "jvp",
    "load", "load_checkpoint", "load_checkpoint_async", "load_latest_checkpoint", "load_param_into_net", "log",
    "ms_function", "names", "nn", "ops", "pytype_to_dtype", "rearrange_inputs", "reset_auto_parallel_context",
    "reset_ps_context", "save_checkpoint", "serialization", "set_auto_parallel_context", "set_context", "set_device",
    "set_ps_context", "set_rng_state", "set_seed", "single", "suggest_rules", "to_float", "train", "tune",
    "uint8", "uint16", "uint32", "uint64", "value_and_grad", "vjp", "HausdorffDistance", "MeanSurfaceDistance",
    "OcclusionSensitivity", "RootMeanSquareDistance", "ckpt_to_safetensors", "safetensors_to_ckpt",
    "DatasetHelper", "connect_network_with_dataset", "Layout", "get_algo_parameters", "reset_algo_parameters",
    "set_algo_parameters",
]
