"""`Parameter`: a Keras variable with MindSpore's names, read in the dtype of the cell that uses it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, boundary, checks, faces
from mixtrain.common.gradient_hooks import GradientHooks, HookHandle
from mixtrain.common.initializer import Initializer, initializer
from mixtrain.common.tensor import Tensor, initial_value
from mixtrain.common.tensor_methods import TensorMethods
from mixtrain.dtype import DType, as_dtype, float32, int32, is_float
from mixtrain.lazy_names import serve_names
from mixtrain.network import uncompiled
from mixtrain.network.unique_names import variable_names
from mixtrain.ops import indexing, views
from mixtrain.ops.parameter_reads import parameter_read_dtype, trial
from mixtrain.step.gradient_hooks import hooks_changed, put_hook
from mixtrain.typing import BackendTensor, DTypeLike, TensorLike, Variable

# Callers in these packages read `Parameter.value` as Keras means it.
_LIBRARIES: Final = frozenset(("jax", "keras", "mixtrain", "tensorflow"))


_unnamed = itertools.count()  # Parameters, counted as MindSpore names them.


class _Value(Tensor):
    """The value of a Parameter for scripts: called as a method, as in MindSpore, or read as a property, as in Keras.

    Attributes that a Tensor lacks are the Parameter's: TensorFlow's tape identifies a variable by its handle.
    """

    def __init__(self, parameter: Parameter) -> None:
        super().__init__(parameter)
        self._parameter = parameter

    def __call__(self) -> Tensor:
        """Return the value."""
        return Tensor(self)

    def __getattr__(self, name: str) -> Any:
        if name == "_parameter":  # Not set yet, as in a copy under construction.
            raise AttributeError(name)
        return getattr(self._parameter, name)


class Parameter(TensorMethods, keras.Variable):
    """A named variable of a network, which optimizers update where it requires a gradient.

    Args:
        default_input: Initial value: a tensor (as `initializer(...)` returns), NumPy array, list or number; an int
            is stored as int32.
        name: Its name; a cell that it is assigned to prefixes its own path (``conv1.weight``).
        requires_grad: Whether optimizers update it.
        layerwise_parallel: Accepted for MindSpore scripts; without effect on one device.
        parallel_optimizer, storage_format, device: Accepted for MindSpore scripts; without effect on one device.

    Raises:
        TypeError: `name` is not a string, or `default_input` cannot become a tensor.

    Example:
        >>> import mixtrain, numpy as np
        >>> weight = mixtrain.Parameter(np.zeros((2, 3), np.float32), name="weight")
        >>> weight.name, tuple(weight.shape), weight.dtype, weight.requires_grad
        ('weight', (2, 3), mixtrain.float32, True)
    """

    def __init__(
        self, default_input: TensorLike, name: str | None = None, requires_grad: bool = True,
        layerwise_parallel: bool = False, parallel_optimizer: bool = True, storage_format: str = "",
        device: str | None = None,
    ) -> None:
        self.name = name
        checks.boolean("Parameter", "requires_grad", requires_grad)
        if backend.is_tracing() and uncompiled.note(uncompiled.CREATES_PARAMETERS):
            raise RuntimeError("Parameter: must be created outside of a compiled function. Create the Cell before it.")
        is_int = isinstance(default_input, int) and not isinstance(default_input, bool)
        value = initial_value(default_input, int32 if is_int else None)
        self._hooks: GradientHooks | None = None
        super().__init__(
            value, trainable=requires_grad, dtype=keras.backend.standardize_dtype(value.dtype), autocast=False
        )
        self.layerwise_parallel = layerwise_parallel
        self.cache_enable = False  # MindSpore's cache of embeddings on servers, which scripts ask for.
        self.parallel_optimizer = parallel_optimizer

    @property
    def name(self) -> str:
        """The dotted path of the parameter in its network; one of its own without a name, as ``Parameter#3``."""
        return self._given_name or self._own_name

    @name.setter
    def name(self, value: str | None) -> None:
        if value is not None and not isinstance(value, str):
            raise checks.fail_value("Parameter", "name must be a str or None", value, 'name="weight"')
        self._given_name = value.strip() or None if value else None
        if self._given_name is None:
            self._own_name = f"Parameter#{next(_unnamed)}"

    @property
    def named(self) -> bool:
        """Whether the parameter has a name."""
        return self._given_name is not None

    @property
    def value(self) -> BackendTensor:  # type: ignore[override]
        """The value, in the dtype that the running cell casts its parameters to, if it does.

        Libraries get the backend tensor. Scripts, in which MindSpore's `value` is a method, get a Tensor that can also
        be called.
        """
        if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            return _Value(self)
        # Not `super()`: `TensorMethods` comes first and has a method of this name.
        value, running = keras.Variable.value.fget(self), trial()  # type: ignore[attr-defined]
        if running is not None:
            value = running.value_of(self, value)
        return value if self.dtype == self.stored_dtype else keras.ops.cast(value, self.dtype)

    @property
    def dtype(self) -> DType:
        """The dtype that the value is read in: the stored one, except inside a cell that casts."""
        stored = self.stored_dtype
        read = parameter_read_dtype()
        return read if read is not None and is_float(stored) else stored

    @property
    def stored_dtype(self) -> DType:
        """The dtype that the value is stored in."""
        stored, running = as_dtype(super().dtype), trial()
        return stored if running is None else running.dtype_of(stored)

    @property
    def requires_grad(self) -> bool:
        """Whether optimizers update the parameter."""
        return bool(self.trainable)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.trainable = checks.boolean("Parameter", "requires_grad", value)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> HookHandle:
        """Call a function with the gradient of this parameter, as a whole, where gradients are computed from now on.

        Args:
            hook: Called with the gradient, in a train step before it is divided by the loss scale; a result other
                than None replaces it. In compiled steps it is traced.

        Returns:
            A handle whose `remove` removes the hook.

        Raises:
            TypeError: `hook` cannot be called.
            RuntimeError: The parameter requires no gradient, so the hook would never run.
            ValueError: A network in graph mode, or a function under `jit`, registers it, which each trace would repeat.

        Example:
            >>> import mixtrain
            >>> w = mixtrain.Parameter(3.0, name="w")
            >>> handle = w.register_hook(lambda gradient: gradient * 10)
            >>> float(mixtrain.grad(lambda x: x * w, None, w)(mixtrain.Tensor(2.0)))
            20.0
        """
        hooks = self._hooks or GradientHooks(hooks_changed)
        if not self.requires_grad:
            raise RuntimeError(
                f"Parameter.register_hook: expected a Parameter that requires a gradient; got {self.name}, which does "
                "not. Write requires_grad=True."
            )
        if boundary.in_graph():
            raise ValueError(
                f"Parameter.register_hook: expected a call outside of networks in graph mode; got {self.name} in one. "
                "Write it before the network is called, or run in PYNATIVE_MODE."
            )
        handle = hooks.add("Parameter.register_hook", hook)
        if self._hooks is None:
            self._hooks = hooks
            put_hook(self, lambda gradient: boundary.to_backend_tensors(hooks((backend.public_tensor(gradient),))))
        return handle

    def hooks(self) -> list[Callable[[Tensor], Tensor | None]]:
        """Return the hooks of `register_hook`, in their order."""
        return [] if self._hooks is None else self._hooks.functions()

    @property
    def inited_param(self) -> None:
        """Always None: the value exists from the start, and no parameter replaces this one."""
        return None

    @property
    def data(self) -> Parameter:
        """The parameter itself, as in MindSpore."""
        return self

    def __iter__(self) -> Iterator[Tensor]:
        return iter(backend.public_tensor(self.content))

    def __len__(self) -> int:
        return len(backend.public_tensor(self.content))

    def __bool__(self) -> bool:
        return bool(backend.public_tensor(self.content))

    def __int__(self) -> int:
        return int(backend.public_tensor(self.content))

    def __float__(self) -> float:
        return float(backend.public_tensor(self.content))

    @property
    def content(self) -> BackendTensor:
        """The backend tensor of the value, as operators read it."""
        return backend.to_tensor(self)

    def __getitem__(self, index: Any) -> Tensor | BackendTensor:
        view = indexing.get_item(self.content, index)
        return view if boundary.mode() == "backend" else views.record_index(boundary.to_tensors(view), self, index)

    def __setitem__(self, index: Any, value: TensorLike) -> None:
        self.store(indexing.set_item(self.content, index, value))

    def assign(self, value: TensorLike) -> Any:
        """Set the value, of this parameter's shape; return the variable. Example: ``parameter.assign(x)``."""
        running = trial()
        if running is None:
            return super().assign(value)
        running.write(self, backend.to_tensor(value, self.stored_dtype))
        return self

    def store(self, value: BackendTensor) -> None:
        """Set the value to a backend tensor, cast to the stored dtype."""
        self.assign(keras.ops.cast(value, self.stored_dtype))

    def set_dtype(self, dtype: DTypeLike) -> Parameter:
        """Store the value in another dtype; return the parameter."""
        backend.exchange_storage(self, backend.storage_in(self, as_dtype(dtype)))
        return self

    def asnumpy(self) -> np.ndarray:
        """Return the value as a NumPy array (bfloat16 as float32)."""
        return backend.to_numpy(self)

    def set_data(self, data: TensorLike, slice_shape: bool = False) -> Parameter:
        """Replace the value.

        Args:
            data: A tensor, array or number of this parameter's shape; cast to its dtype.
            slice_shape: Accepted for MindSpore scripts; another shape is refused either way.

        Returns:
            The parameter.

        Raises:
            ValueError: The shape differs.
            TypeError: Casting would lose the kind of number (float into int).
        """
        value = Tensor(data).backend_tensor()
        shape = tuple(self.shape)
        if tuple(value.shape) != shape:
            raise checks.fail_value(
                f"Parameter {self.name}: set_data",
                f"data must have shape {shape}",
                tuple(value.shape),
                f"data.reshape({shape})",
            )
        if is_float(value.dtype) and not is_float(self.dtype):
            raise checks.fail_type(
                f"Parameter {self.name}: set_data", f"data must be {self.dtype.name}", value,
                f"data.astype({self.dtype!r})",
            )
        self.assign(keras.ops.cast(value, self.dtype))
        return self

    def assign_value(self, value: TensorLike) -> Parameter:
        """Alias of `set_data`."""
        return self.set_data(value)

    def init_data(self, *args: Any, **kwargs: Any) -> Parameter:
        """Return the parameter; unlike in MindSpore, its value exists from the start."""
        return self

    def clone(self, init: Initializer | str | TensorLike = "same") -> Parameter:
        """Return a new parameter of the same shape, dtype and name.

        Args:
            init: "same" copies the value; otherwise what `initializer` accepts ("zeros", a number, ...).
        """
        value = backend.snapshot(self) if isinstance(init, str) and init == "same" else None
        if value is None:
            value = initializer(init, tuple(self.shape), self.dtype)
        return Parameter(value, self._given_name, self.requires_grad, self.layerwise_parallel, self.parallel_optimizer)

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={tuple(self.shape)}, dtype={self.dtype}, "
            f"requires_grad={self.requires_grad})"
        )


faces.use_variables_of(Parameter)


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of parameters, which can be one attribute of a Cell.

    Example:
        >>> import mixtrain
        >>> pair = mixtrain.ParameterTuple([mixtrain.Parameter(1.0, name="a"), mixtrain.Parameter(2.0, name="b")])
        >>> [parameter.name for parameter in pair]
        ['a', 'b']
    """

    def __new__(cls, parameters: Iterable[Variable] = ()) -> ParameterTuple:
        items = tuple(parameters)
        if items and all(map(backend.is_tensor, items)):
            return items  # type: ignore[return-value]  # Results of a compiled call are rebuilt from values.
        for item in items:
            checks.instance("ParameterTuple", "each item", item, keras.Variable, "a list of Parameter")
        distinct = {id(item): item for item in items if isinstance(item, Parameter) and item.named}.values()
        names = [item.name for item in distinct]
        if len({*names}) < len(names):
            raise checks.fail_value(
                "ParameterTuple", "its Parameters must have different names", checks.join_names(names),
                'Parameter(..., name="another")',
            )
        return super().__new__(cls, items)

    def clone(self, prefix: str, init: Initializer | str | TensorLike = "same") -> ParameterTuple:
        """Return clones whose names start with ``prefix.``; optimizers create their slots this way."""
        clones = []
        for parameter, name in zip(self, variable_names(self), strict=True):
            clone = parameter.clone(init) if isinstance(parameter, Parameter) else Parameter(
                initializer(init, tuple(parameter.shape), float32)
            )
            clone.name = f"{prefix}.{name}"
            clones.append(clone)
        return ParameterTuple(clones)


serve_names(__name__)
