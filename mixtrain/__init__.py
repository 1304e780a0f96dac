"""Mixed-precision training for Keras that you can see and control."""

# The engine comes first: it quiets TensorFlow before Keras imports it, and says what is wrong with the backend.
from mixtrain import engine as _engine  # noqa: F401  isort: skip

from mixtrain import amp, common, context, dataset, dtype, nn, train
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.common.seed import get_seed, set_seed
from mixtrain.common.tensor import Tensor
from mixtrain.context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context
from mixtrain.dtype import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mixtrain.errors import LossScaleExhausted, MixtrainError, PrecisionRuleError, UnsupportedBackendError
from mixtrain.nn.step.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mixtrain.precision.request import to_float
from mixtrain.train.callback import Callback, LossMonitor, LossScaleMonitor, TimeMonitor
from mixtrain.train.model import Model
from mixtrain.train.run_context import RunContext
from mixtrain.version import __version__

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "Callback",
    "DynamicLossScaleManager",
    "FixedLossScaleManager",
    "LossMonitor",
    "LossScaleExhausted",
    "LossScaleManager",
    "LossScaleMonitor",
    "MixtrainError",
    "Model",
    "Parameter",
    "ParameterTuple",
    "PrecisionRuleError",
    "RunContext",
    "Tensor",
    "TimeMonitor",
    "UnsupportedBackendError",
    "__version__",
    "amp",
    "bfloat16",
    "bool_",
    "common",
    "context",
    "dataset",
    "dtype",
    "float16",
    "float32",
    "float64",
    "get_context",
    "get_seed",
    "int8",
    "int16",
    "int32",
    "int64",
    "nn",
    "set_context",
    "set_seed",
    "to_float",
    "train",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]
