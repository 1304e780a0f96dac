"""Names that scripts import from MindSpore's inner modules, and that nothing else here has."""

from __future__ import annotations

import builtins
import collections
import contextlib
from collections.abc import Callable
from typing import Any, Final

import keras
import ml_dtypes

from mixtrain import boundary, checks, context, dataset  # noqa: F401  `dataset` of MindSpore has `context`, too.
from mixtrain.cell.cell import Cell
from mixtrain.common.accepted import no_inline
from mixtrain.common.generator import default_generator  # noqa: F401
from mixtrain.common.jit_function import trace_call
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.dataset import Dataset
from mixtrain.dtype import float32, int32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops import Primitive
from mixtrain.ops.sparse import RowTensor
from mixtrain.seed import get_seed
from mixtrain.typing import Tree

__all__ = ["cell_attr_register"]

# ---- dataset: classes of operations, for annotations of functions that return a dataset ---------------------------
BatchDataset = ConcatDataset = FilterDataset = MapDataset = PaddedBatchDataset = ProjectDataset = Dataset
RenameDataset = RepeatDataset = ShuffleDataset = SkipDataset = TakeDataset = ZipDataset = Dataset
ds: Final = dataset
INT32_MAX: Final = 2**31 - 1

# ---- cells --------------------------------------------------------------------------------------------------------
# A decorator of `__init__`, for MindSpore's compiler.
cell_attr_register: Final = no_inline


class _VirtualDatasetCell(Cell):
    """Call a network: with data parallelism there is nothing to distribute by operator."""

    def __init__(self, backbone: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs)


# ---- dtypes -------------------------------------------------------------------------------------------------------
int, long, float = int32, int64, float32
np_bfloat16: Final = ml_dtypes.bfloat16


# ---- parameters and operators -------------------------------------------------------------------------------------
def _update_param(param: Parameter, new_param: Tensor, strict_load: bool = False) -> None:
    """Set the values of a parameter; with `strict_load` the dtypes must be equal."""
    if strict_load and param.dtype != new_param.dtype:
        raise checks.fail_type(
            "_update_param", f"{param.name} must be of dtype {param.dtype}", new_param.dtype, "strict_load=False"
        )
    param.set_data(new_param.astype(param.dtype))


class _Registry(collections.UserDict[Any, Any]):
    """Functions by primitive, which MindSpore's interpreter calls; nothing here does."""

    def register(self, prim: Any) -> Callable[[Any], Any]:
        """Return a decorator that keeps a function for a primitive."""
        return lambda function: self.setdefault(prim, function)


vm_impl_registry: Final = _Registry()


def _get_cache_prim(cls: type[Primitive]) -> type[Primitive]:
    """Return the class of a primitive: creating one costs nothing here."""
    return cls


RowTensorInner = RowTensor


def _grad_scale_map(scale: Tensor, inputs: Tree) -> Tree:
    """Return tensors multiplied by a scale, each in its dtype, for loss scalers of scripts."""
    return keras.tree.map_structure(lambda x: x * scale.astype(x.dtype), inputs)


def _grad_unscale_map(scale: Tensor, inputs: Tree) -> Tree:
    """Return tensors divided by a scale, each in its dtype."""
    return keras.tree.map_structure(lambda x: x * (1 / scale).astype(x.dtype), inputs)


class _no_grad(contextlib.ContextDecorator):
    """A block, or a function, whose results are constants to whoever differentiates.

    Example:
        >>> import mixtrain
        >>> def product(x):
        ...     with mixtrain._no_grad():
        ...         scale = x * x
        ...     return scale * x
        >>> mixtrain.grad(product)(mixtrain.Tensor([3.0])).asnumpy().tolist()
        [9.0]
    """

    def __init__(self) -> None:
        self._entered: list[contextlib.AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        self._entered.append(boundary.without_gradients())
        self._entered[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


def _is_parameter_generated(param_name: str) -> bool:
    """Whether a name is that of a Parameter that has none."""
    return isinstance(param_name, str) and param_name.startswith("Parameter#")


# ---- random numbers and execution ---------------------------------------------------------------------------------
def _get_graph_seed(op_seed: builtins.int | None, kernel_name: str) -> tuple[builtins.int, builtins.int]:
    """Return the process's seed and the operator's, 0 for none."""
    return get_seed() or 0, op_seed or 0


def enable_security() -> bool:
    """Return False: no build of mixtrain leaves out what writes files."""
    return False


def threads_num(num: builtins.int) -> None:
    """Accept a number of threads, at least 1: the backend chooses its own."""
    checks.integer("threads_num", "threads_num", num, at_least=1)


class _Executor:
    """What runs operations and cells in MindSpore, which a script may wait for, or let compile a cell."""

    def sync(self) -> None:
        """Do nothing: reading a tensor waits for it."""

    def compile(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        """Trace a cell's call, so that errors show; it is compiled when it first runs."""
        trace_call(obj, *args, **kwargs)

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a cell."""
        return obj(*args, **kwargs)


_pynative_executor = _cell_graph_executor = _Executor()


serve_names(__name__)
