"""Settings of a Cell for MindSpore's compiler and several devices, accepted and mostly without effect."""

from __future__ import annotations

import warnings
from typing import Any, Final, TypeVar

from mixtrain import checks
from mixtrain.cell.tree import CellTree

_CellT = TypeVar("_CellT", bound="CellSetup")
_RECOMPUTE: Final = (
    "use_reentrant", "output_recompute", "early_stop", "context_fn", "mp_comm_recompute",
    "parallel_optimizer_comm_recompute", "recompute_slice_activation",
)


class CellSetup(CellTree):
    """The part of a Cell with settings of compilation and distribution."""

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Keep example inputs; inputs of other shapes are accepted either way.

        Args:
            *inputs: Example inputs by position.
            **kwargs: Example inputs by name.

        Raises:
            ValueError: Both are passed.
        """
        if inputs and kwargs:
            raise checks.fail_value(
                f"{type(self).__name__}.set_inputs", "inputs must be given by position or by name, not both",
                tuple(kwargs), "set_inputs(x)",
            )
        self._example_inputs = inputs or tuple(kwargs.values())

    def get_inputs(self) -> tuple[Any, ...] | None:
        """Return the inputs of `set_inputs`; None before it is called."""
        return self.__dict__.get("_example_inputs")

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the step that calls the cell is compiled when it first runs."""

    def shard(self: _CellT, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> _CellT:
        """Return the cell unchanged: there is one device.

        Args:
            in_strategy: How the inputs would be split over devices.
            out_strategy: How the outputs would be split.
            parameter_plan: How the parameters would be split.
        """
        return self

    def set_jit_config(self, jit_config: Any) -> None:
        """Keep options of MindSpore's compiler, which have no effect here.

        Args:
            jit_config: A `JitConfig`.
        """
        object.__setattr__(self, "jit_config", jit_config)

    def set_data_parallel(self) -> None:
        """Do nothing: there is one device."""

    def set_comm_fusion(self: _CellT, fusion_type: int, recurse: bool = True) -> _CellT:
        """Return the cell unchanged: on one device no gradients are sent.

        Args:
            fusion_type: At least 0; which gradients would be sent together.
            recurse: Whether this includes the cells below.
        """
        checks.integer(f"{type(self).__name__}.set_comm_fusion", "fusion_type", fusion_type, at_least=0)
        return self

    def offload(self, backward_prefetch: Any = "Auto") -> None:
        """Warn that activations stay on the device: gradients are the same, memory is not saved.

        Args:
            backward_prefetch: Accepted for MindSpore scripts.
        """
        warnings.warn(
            f"{type(self).__name__}.offload: activations stay where they are; gradients are the same, memory is not "
            "saved.",
            stacklevel=2,
        )

    def recompute(self, **kwargs: Any) -> None:
        """Warn that activations are kept: gradients are the same, memory is not saved.

        Args:
            **kwargs: MindSpore's options.

        Raises:
            ValueError: An option is unknown.
        """
        where = f"{type(self).__name__}.recompute"
        for name in kwargs:
            checks.one_of(where, "each option", name, _RECOMPUTE)
        warnings.warn(
            f"{where}: activations are kept rather than computed again; gradients are the same, memory is not saved.",
            stacklevel=2,
        )
