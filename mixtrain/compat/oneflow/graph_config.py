"""`GraphConfig`: the `config` of an `nn.Graph`, with OneFlow's methods."""

from __future__ import annotations

from typing import Final, NoReturn

from mixtrain import checks
from mixtrain.dtype import DType, as_dtype, bfloat16, float16

_SUPPORTED: Final = ("enable_amp",)
# Other options of OneFlow, and what to do instead.
_WITHOUT_EFFECT: Final = {
    "set_gradient_accumulation_steps": (
        "Pass the whole batch at once, or sum the gradients of smaller ones in a loop of your own with amp.GradScaler"
    ),
    **dict.fromkeys(
        (
            "allow_fuse_add_to_output", "allow_fuse_cast_scale", "allow_fuse_model_update_ops", "enable_auto_parallel",
            "enable_choose_best_memory_allocation", "enable_compress_memory",
            "enable_cudnn_conv_heuristic_search_algo", "enable_fused_model_update_cast", "enable_multi_tensor_update",
            "enable_straighten_algorithm", "enable_zero", "set_outputs_buffer_size",
            "set_zero_redundancy_optimizer_mode",
        ),
        "Leave the line out: how operations are laid out on the device is the compiler's choice, and no number "
        "depends on it",
    ),
}


class GraphConfig:
    """The settings of a graph.

    `where`: The graph's class, for errors.

    Attributes:
        half: The half dtype that the graph's networks compute in; None for their own precision.

    Example:
        >>> config = GraphConfig("Graph")
        >>> config.enable_amp(True)
        >>> config.half
        mixtrain.float16

    Source: OneFlow, `oneflow.nn.graph.graph_config.GraphConfig`.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self.half: DType | None = None
        self.fixed = False

    def enable_amp(self, mode: bool = True, *, dtype: DType | str = float16) -> None:
        """Compute the networks of the graph in mixed precision, by the plan of level O2.

        Args:
            mode: Whether to do so.
            dtype: float16 or bfloat16.

        Raises:
            TypeError: `mode` is not a bool.
            ValueError: Another dtype, or the graph was called already.
        """
        where = f"{self._where}.config.enable_amp"
        checks.boolean(where, "mode", mode)
        half = as_dtype(dtype)
        if half not in (float16, bfloat16):
            raise checks.fail_value(where, "dtype must be float16 or bfloat16", half.name, "dtype=mixtrain.float16")
        self.check_open("config.enable_amp")
        self.half = half if mode else None

    def check_open(self, call: str) -> None:
        """Refuse to change a compiled graph.

        Raises:
            ValueError: The graph is compiled.
        """
        if self.fixed:
            raise ValueError(
                f"{self._where}.{call}: expected a graph that was not called yet; got one that is compiled. "
                f"Write self.{call}(...) in __init__."
            )

    def __getattr__(self, name: str) -> NoReturn:
        where = f"{vars(self).get('_where', 'Graph')}.config"  # A copy under construction has no attributes yet.
        if name in _WITHOUT_EFFECT:
            raise AttributeError(
                f"{where}: expected an option that means something here; got {name}. {_WITHOUT_EFFECT[name]}."
            )
        (near,) = checks.nearest(name, (*_SUPPORTED, *_WITHOUT_EFFECT))
        raise AttributeError(f"{where}: expected {' or '.join(_SUPPORTED)}; got {name}. Write self.config.{near}(...).")
