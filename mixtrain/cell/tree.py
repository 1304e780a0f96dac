"""Parameters and child cells of a Cell, by attribute name, and the methods that list them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, TypeVar

import keras

from mixtrain import checks
from mixtrain.cell.inner_operators import inner_operator
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.network.unique_names import variable_names
from mixtrain.trace_version import layer_changed
from mixtrain.typing import Layer, Variable

# Names of PyTorch and Keras that a Cell lacks, with what to write for them.
_OF_A_MODEL: Final = "mixtrain.Model(cell, loss_fn, optimizer), which has {}"
_OTHER_NAMES: Final = {
    "parameters": "cell.get_parameters(), or cell.trainable_params() for an optimizer",
    "named_parameters": "cell.parameters_and_names()",
    **dict.fromkeys(("modules", "named_modules"), "cell.cells_and_names()"),
    **dict.fromkeys(("children", "layers"), "cell.cells()"),
    "train": f"cell.set_train() for the mode; to train {_OF_A_MODEL.format('train')}",
    "eval": f"cell.set_train(False) for the mode; to evaluate {_OF_A_MODEL.format('eval')}",
    **{name: _OF_A_MODEL.format(name) for name in ("fit", "evaluate", "predict", "summary")},
    "forward": "cell(x); a Cell defines its computation in construct",
    **dict.fromkeys(("cuda", "cpu", "to"), 'mixtrain.set_context(device_target="GPU") before the first tensor'),
    "half": "cell.to_float(mixtrain.float16)",
    "zero_grad": "nothing: gradients are not kept between steps",
}

_CellT = TypeVar("_CellT", bound="CellTree")


def name_of(cell: Layer) -> str:
    """Return the class of a cell and its path in the network for error messages: "Conv2d block.conv1"."""
    return f"{cell.cls_name} {cell.name_prefix.rstrip('.')}".rstrip()


class CellTree:
    """The tree under a Cell; `Cell` adds the computation."""

    wrap_keras_layer: ClassVar[Callable[[keras.Layer], Any]]

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._cells: dict[str, Any] = {}
        self.name_prefix = ""
        self._auto_prefix = True

    # ---- attributes -------------------------------------------------------------------------------------------
    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, keras.Layer):
            value = type(self).wrap_keras_layer(value)
        if isinstance(value, (Parameter, CellTree)):
            self._prepare_name(name)
            if isinstance(value, Parameter):
                self._store_parameter(name, value)
            else:
                self._add_cell(name, value)
        elif isinstance(value, ParameterTuple):
            self._prepare_name(name)
            distinct = [*{id(parameter): parameter for parameter in value}.values()]
            count = sum(key.startswith("Parameter$") for key in self._params)
            for parameter in distinct:
                if isinstance(parameter, Parameter) and not parameter.named:
                    count += 1
                    parameter.name = f"Parameter${count}"  # MindSpore's name, which its checkpoints have.
            self._params.update(zip(variable_names(distinct), distinct, strict=True))
            object.__setattr__(self, name, value)
        elif name in self.__dict__.get("_params", ()):
            if value is None:
                self._params[name] = None
            elif self._params[name] is None:
                raise checks.fail_type(self._where(name), "the attribute holds a Parameter", value, "a Parameter")
            else:
                self._params[name].set_data(value)
        elif name in self.__dict__.get("_cells", ()):
            if value is not None:
                raise checks.fail_type(self._where(name), "the attribute holds a Cell", value, "a Cell or None")
            self._cells[name] = None
            layer_changed(self)
        else:
            object.__setattr__(self, name, value)

    def _where(self, name: str) -> str:
        return f"{type(self).__name__}.{name}"

    def _prepare_name(self, name: str) -> None:
        """Check that the Cell is initialized, and remove a plain attribute called `name`."""
        if "_params" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}: a Cell must be initialized before it is given cells or parameters. "
                f"Write super().__init__() as the first line of {type(self).__name__}.__init__."
            )
        self.__dict__.pop(name, None)

    def _store_parameter(self, name: str, parameter: Parameter) -> None:
        if name in self._cells:
            raise KeyError(f"{self._where(name)}: the name is taken by a Cell. Write another name.")
        if not parameter.named:
            parameter.name = name
        self._params[name] = parameter

    def _add_cell(self, name: str, cell: CellTree, siblings_prefix: str | None = None) -> None:
        """Add a child, and name its parameters.

        As in MindSpore, the names of parameters start with the attribute names of those cells that had them when each
        was added to the next: a cell that is added to one that already has a parent does not get the parent's name.
        """
        if name in self._params:
            raise KeyError(f"{self._where(name)}: the name is taken by a Parameter. Write another name.")
        prefix = self._siblings_prefix() if siblings_prefix is None else siblings_prefix
        self._cells[name] = cell
        layer_changed(self)
        if self._auto_prefix:
            cell.update_parameters_name(f"{prefix}{name}.")
            cell._set_paths(f"{self.name_prefix}{name}.")

    def _siblings_prefix(self) -> str:
        """Return what the names of a new child's parameters start with, before the child's own name."""
        return ""

    def __getattr__(self, name: str) -> Any:
        for table in ("_params", "_cells"):
            entries = self.__dict__.get(table)
            if entries is not None and name in entries:
                return entries[name]
        operator = inner_operator(self, name)
        if operator is not None:
            return operator
        advice = f" Write {_OTHER_NAMES[name]}." if name in _OTHER_NAMES else ""
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'.{advice}")

    def __delattr__(self, name: str) -> None:
        for table in (self._params, self._cells):
            if name in table:
                del table[name]
                layer_changed(self)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *self._params, *self._cells})

    def insert_param_to_cell(self, param_name: str, param: Variable, check_name_contain_dot: bool = True) -> None:
        """Add a parameter under a name that may come from data.

        Args:
            param_name: The attribute name.
            param: A Parameter, or None to reserve the name.
            check_name_contain_dot: Whether a dot in the name is refused.

        Raises:
            KeyError: The name is empty, taken or contains a dot.
            TypeError: `param` is not a Parameter.
        """
        self._check_new_name("insert_param_to_cell", param_name, check_name_contain_dot)
        if param is not None:
            checks.instance("insert_param_to_cell", "param", param, Parameter, "a Parameter or None")
            self._store_parameter(param_name, param)
        else:
            self._params[param_name] = None

    def insert_child_to_cell(self, child_name: str, child_cell: Layer) -> None:
        """Add a child cell under a name that may come from data.

        Raises:
            KeyError: The name is empty, taken or contains a dot.
            TypeError: `child_cell` is neither a Cell nor a Keras layer.
        """
        self._check_new_name("insert_child_to_cell", child_name, True)
        if isinstance(child_cell, keras.Layer):
            child_cell = type(self).wrap_keras_layer(child_cell)
        checks.instance("insert_child_to_cell", "child_cell", child_cell, (CellTree, type(None)), "a Cell")
        self._cells[child_name] = child_cell
        layer_changed(self)

    def _check_new_name(self, where: str, name: Any, refuse_dot: bool) -> None:
        if not isinstance(name, str):
            raise checks.fail_type(where, "the name must be a str", name, 'a name such as "weight"')
        taken = hasattr(self, name) and name not in self._params and name not in self._cells
        if not name or (refuse_dot and "." in name) or taken:
            raise KeyError(f"{where}: the name must be free, not empty and without a dot; got {name!r}.")

    # ---- children ---------------------------------------------------------------------------------------------
    def child_layers(self) -> dict[str, Layer]:
        """Return the direct children by name; a `KerasCell` is represented by its Keras layer."""
        return {name: getattr(cell, "keras_layer", cell) for name, cell in self._cells.items() if cell is not None}

    def name_cells(self) -> dict[str, Any]:
        """Return the direct child cells by name, each once."""
        result: dict[str, Any] = OrderedDict()
        for name, cell in self._cells.items():
            if cell is not None and not any(cell is other for other in result.values()):
                result[name] = cell
        return result

    def cells(self) -> Iterable[Any]:
        """Return the direct child cells, each once."""
        return self.name_cells().values()

    def cells_and_names(self, cells: set[int] | None = None, name_prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield (path, cell) for this cell and all below it, each once, parents first."""
        seen = set() if cells is None else cells
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def apply(self: _CellT, fn: Callable[[Any], Any]) -> _CellT:
        """Call `fn` on every cell below, children first, then on this one; return the cell."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # ---- parameters -------------------------------------------------------------------------------------------
    def own_parameters(self) -> dict[str, Variable]:
        """Return this cell's own parameters by attribute name, without those of children."""
        return {name: parameter for name, parameter in self._params.items() if parameter is not None}

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield (path, parameter), own parameters first, then those of children, each once."""
        seen: set[int] = set()
        cells = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        for path, cell in cells:
            for name, parameter in cell.own_parameters().items():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Any]:
        """Yield the parameters, those of children too unless `expand` is False."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Any]:
        """Return the parameters that require a gradient."""
        self.ensure_unique_names()
        return [parameter for parameter in self.get_parameters(expand=recurse) if parameter.trainable]

    def untrainable_params(self, recurse: bool = True) -> list[Any]:
        """Return the parameters that do not require a gradient (moving statistics, frozen weights)."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if not parameter.trainable]

    def parameters_dict(self, recurse: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        self.ensure_unique_names()
        parameters = list(self.get_parameters(expand=recurse))
        return OrderedDict(zip(variable_names(parameters), parameters, strict=True))

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Set the name of every parameter to `prefix` plus its path from this cell."""
        if not isinstance(prefix, str):
            raise checks.fail_type("update_parameters_name", "prefix must be a str", prefix, 'prefix="net."')
        self._set_paths(prefix)
        for path, parameter in self.parameters_and_names(expand=recurse):
            if isinstance(parameter, Parameter):
                parameter.name = f"{prefix}{path}"

    _update_local_parameters_name = update_parameters_name  # By which reinforcement learning scripts call it.

    def _set_paths(self, prefix: str) -> None:
        """Set the path of this cell, which ends in a dot, and of those below."""
        for path, cell in self.cells_and_names():
            object.__setattr__(cell, "name_prefix", f"{prefix}{path}." if path else prefix)

    def ensure_unique_names(self) -> None:
        """Name each parameter by its path from this cell if two have the same name.

        MindSpore does so before the first call.
        """
        names = [parameter.name for parameter in self.get_parameters() if isinstance(parameter, Parameter)]
        if len(set(names)) < len(names):
            self.update_parameters_name()

    @property
    def param_prefix(self) -> str:
        """The path of this cell in the names of its parameters, such as "block.conv1"."""
        return self.name_prefix.rstrip(".")

    def init_parameters_data(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Return each parameter, mapped to itself: values exist from the start, and no parameter is replaced."""
        return {parameter: parameter for parameter in self.get_parameters()}
