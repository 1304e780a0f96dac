"""Special functions with PyTorch's arguments: `mint.special`."""

from mixtrain import ops
from mixtrain.lazy_names import serve_names
from mixtrain.mint.named import named
from mixtrain.mint.nn.functional import FUNCTIONS
from mixtrain.ops import erfc, exp2, expm1, log1p, sinc

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]

globals().update(named("mint.special", {"round": lambda input: ops.round(input)}))
log_softmax = FUNCTIONS["log_softmax"]

serve_names(__name__)
