"""`Cell`: MindSpore's base class of layers and networks; `construct` is its forward pass."""

from __future__ import annotations

import contextlib
import copy
import functools
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar

import keras
import numpy as np

from mixtrain import backend, checks, execution
from mixtrain.autocast.state import autocast_in_force
from mixtrain.boundary import mode, run_library, run_users, to_backend_tensors, to_tensors
from mixtrain.cell.autocast import rule_of_class, run_under, under_autocast
from mixtrain.cell.hooks import CellHooks
from mixtrain.cell.layer import CellLayer
from mixtrain.cell.setup import CellSetup
from mixtrain.cell.state import CellState
from mixtrain.cell.tree import CellTree, name_of
from mixtrain.network.marks import REQUEST
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.unique_names import unique_names
from mixtrain.ops.attributes import check_settings_of
from mixtrain.ops.custom_backward import custom_backward
from mixtrain.ops.repeated_forward import note_forward
from mixtrain.precision.cast import CastRule
from mixtrain.precision.families import Family
from mixtrain.precision.plan_request import to_float
from mixtrain.seed import next_seed, stream_states
from mixtrain.trace_version import note_layer
from mixtrain.typing import DTypeLike, Layer, Variable

_CellT = TypeVar("_CellT", bound="Cell")
_UNCHANGED = CastRule()
_LIBRARY = "mixtrain."


def _untrained_state(cell: weakref.ref[Any]) -> list[Variable]:
    """Return the variables that a call of a cell may write: those that are not trained, and random state."""
    return [*(variable for variable in referenced_variables([cell()]) if not variable.trainable), *stream_states()]


def _as_tensor(array: np.ndarray) -> Any:
    tensor = backend.to_tensor(array)
    return to_tensors(tensor) if mode() == "tensors" else tensor


@functools.cache
def _is_library_class(cls: type) -> bool:
    """Whether a class's `construct` is mixtrain's own, which computes on backend tensors."""
    return not cls.takes_tensors and cls.construct.__module__.startswith(_LIBRARY)  # type: ignore[attr-defined]


def _for_users(construct: Callable[..., Any]) -> Callable[..., Any]:
    """Return the `construct` of a library class; to code of the user that calls it, it gives Tensors."""

    @functools.wraps(construct)
    def call(*args: Any, **kwargs: Any) -> Any:
        return construct(*args, **kwargs) if mode() == "backend" else run_library(construct, args, kwargs)

    return call


class Cell(CellState, CellHooks, CellSetup):
    """A layer or network: assign cells and Parameters as attributes, and define `construct`.

    Parameters exist as soon as the constructor returns. A Cell may hold Keras layers, and called with a Keras input
    it becomes a layer of a Keras model. Any attribute name may be used.

    Args:
        auto_prefix: Whether the names of parameters below start with their cells' attribute names.
        flags: Attributes to set with `add_flags`.

    Example:
        >>> import mixtrain.nn as nn
        >>> class Net(nn.Cell):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.fc = nn.Dense(4, 2)
        ...     def construct(self, x):
        ...         return self.fc(x)
        >>> [parameter.name for parameter in Net().trainable_params()]
        ['fc.weight', 'fc.bias']
    """

    precision_family: ClassVar[Family] = "other"
    # Whether a call from outside any other cell is one compiled step (a train step).
    compiles_itself: ClassVar[bool] = False
    # Whether a `construct` of mixtrain is written for Tensors, as a user's is: it calls methods that users override.
    takes_tensors: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "construct" in vars(cls) and _is_library_class(cls):  # type: ignore[arg-type]
            cls.construct = _for_users(cls.construct)  # type: ignore[method-assign]
        check_settings_of(cls)

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._auto_prefix = bool(auto_prefix)  # Scripts pass the class here.
        self.training = False
        self.requires_grad = False
        self._planned_cast: CastRule | None = None
        self._as_keras_layer: CellLayer | None = None
        self.cell_type: str | None = None
        if flags:
            self.add_flags(**flags)

    def __deepcopy__(self, memo: dict[int, Any]) -> Cell:
        # A SeedGenerator holds a module, which cannot be copied; with its seed the copy would drop the same elements.
        for value in vars(self).values():
            if isinstance(value, keras.random.SeedGenerator):
                memo[id(value)] = keras.random.SeedGenerator(seed=next_seed())
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        vars(result).update(copy.deepcopy(vars(self), memo))
        return result

    # ---- computation ------------------------------------------------------------------------------------------
    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; a subclass defines it.

        Raises:
            AttributeError: The subclass does not.
        """
        raise AttributeError(
            f"{type(self).__name__}: a Cell must define its forward pass. Write def construct(self, x): ..."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_params" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: a Cell must be initialized before it is called. "
                f"Write super().__init__() as the first line of {type(self).__name__}.__init__."
            )
        # A symbolic input builds a functional Keras model.
        if any(isinstance(value, keras.KerasTensor) for value in keras.tree.flatten((args, kwargs))):
            return self.as_keras_layer()(*args, **kwargs)
        run = run_library if _is_library_class(type(self)) else run_users  # type: ignore[arg-type]
        try:
            outputs = run(self._call, args, kwargs)
        except Exception as error:
            checks.note_call(error, name_of(self), to_tensors(args), to_tensors(kwargs))
            raise
        # In one graph of MindSpore's, equal calls are one, whether or not `set_grad` was called.
        if (self.requires_grad or (mode() == "tensors" and execution.current.graph_mode)) and not kwargs:
            note_forward(self, args, partial(_untrained_state, weakref.ref(self)))
        return outputs

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        note_layer(self)
        args = tuple(_as_tensor(value) if isinstance(value, np.ndarray) else value for value in args)
        rule, state = self.cast_rule, autocast_in_force()
        inside: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if state is not None:
            rule, inside = under_autocast(self, state, rule, args, kwargs)
        construct = backend.branching(self.construct)
        if getattr(type(self), "bprop", None) is not None:
            construct = custom_backward(name_of(self), construct, backend.branching(self.bprop))
        with backend.name_scope(self._scope_name()), inside:
            return self._call_hooked(partial(run_under, rule, construct), args, kwargs)

    def _scope_name(self) -> str:
        return self.name_prefix.rstrip(".").rpartition(".")[2] or self.cls_name

    @property
    def cast_rule(self) -> CastRule:
        """The casts of a call of the cell: by the plan in force, else the user's `to_float`, else autocast."""
        if self._planned_cast is not None:
            return self._planned_cast
        request = REQUEST.of(self)
        if request is not None:
            return CastRule(inputs=request.dtype, parameters=request.dtype)
        state = autocast_in_force()
        return _UNCHANGED if state is None else rule_of_class(self, state)

    def to_float(self: _CellT, dst_type: DTypeLike) -> _CellT:
        """Make this cell and all below it compute in `dst_type`, at every level.

        Args:
            dst_type: float16, bfloat16 or float32.

        Returns:
            The cell.

        Raises:
            ValueError: Another dtype.
        """
        return to_float(self, dst_type)

    def as_keras_layer(self) -> CellLayer:
        """Return the Keras layer that runs this cell, for use in a Keras model; always the same one."""
        if self._as_keras_layer is None:
            # Bypass `__setattr__`, which wraps Keras layers.
            object.__setattr__(self, "_as_keras_layer", CellLayer(self))
        return self._as_keras_layer  # type: ignore[return-value]

    # ---- modes and flags --------------------------------------------------------------------------------------
    def set_train(self: _CellT, mode: bool = True) -> _CellT:
        """Switch this cell and all below it to training (True) or inference (False); return the cell."""
        checks.boolean(f"{type(self).__name__}.set_train", "mode", mode)
        for _, cell in self.cells_and_names():
            object.__setattr__(cell, "training", mode)
        return self

    @property
    def phase(self) -> str:
        """ "train" or "predict"."""
        return "train" if self.training else "predict"

    @phase.setter
    def phase(self, value: str) -> None:
        # MindSpore selects a compiled graph by its phase; here the mode does.
        checks.instance(f"{type(self).__name__}.phase", "phase", value, str, 'phase="train"')

    def set_grad(self: _CellT, requires_grad: bool = True) -> _CellT:
        """Set `requires_grad`: a gradient that repeats a call of the cell moves its state once; return the cell."""
        object.__setattr__(
            self, "requires_grad", checks.boolean(f"{type(self).__name__}.set_grad", "requires_grad", requires_grad)
        )
        return self

    def add_flags(self: _CellT, **flags: dict[str, Any] | None) -> _CellT:
        """Set attributes and record them as flags; return the cell."""
        self._flags = {**self.get_flags(), **flags}
        for name, value in flags.items():
            setattr(self, name, value)
        return self

    def add_flags_recursive(self: _CellT, **flags: dict[str, Any] | None) -> _CellT:
        """Call `add_flags` on this cell and all below it; return the cell."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """Return the flags set by `add_flags`."""
        return dict(self.__dict__.get("_flags", {}))

    # ---- representation ---------------------------------------------------------------------------------------
    @property
    def cls_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def extend_repr(self) -> str:
        """Return the text between the parentheses of the representation."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {cell!r}".replace("\n", "\n  ") for name, cell in self._cells.items()]
        extra = self.extend_repr()
        if not lines:
            return f"{self.cls_name}({extra})"
        return "\n  ".join([f"{self.cls_name}(", *([extra] if extra else []), *lines]) + "\n)"


class KerasCell(Cell):
    """A Keras layer as a cell, created when a Keras layer is assigned to a Cell's attribute.

    Attributes that a Cell lacks are the layer's (``cell.dense.kernel``).

    Args:
        layer: Any `keras.Layer`; its variables are the cell's parameters once it is built.

    Example:
        >>> import keras
        >>> KerasCell(keras.layers.Dense(3)).units
        3
    """

    def __init__(self, layer: keras.Layer) -> None:
        super().__init__()
        # Bypass `__setattr__`, which wraps Keras layers.
        object.__setattr__(self, "keras_layer", layer)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer in the mode of this cell."""
        return self.keras_layer(*to_backend_tensors(args), training=self.training, **to_backend_tensors(kwargs))

    def child_layers(self) -> dict[str, Layer]:
        """Return the layer, by its name."""
        return {self.keras_layer.name: self.keras_layer}

    def own_parameters(self) -> dict[str, Variable]:
        """Return the layer's weights by their paths (not its random-number state)."""
        # Layers of the same name in different models have variables of the same path.
        weights = self.keras_layer.weights
        return dict(zip(unique_names(variable.path for variable in weights), weights, strict=True))

    def __getattr__(self, name: str) -> Any:
        if "keras_layer" in self.__dict__ and not name.startswith("_"):
            return getattr(self.keras_layer, name)
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return repr(self.keras_layer)


CellTree.wrap_keras_layer = KerasCell
