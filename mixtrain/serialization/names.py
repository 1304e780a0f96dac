"""Names of the variables of a network, a train cell or an optimizer, the same in every process."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras

from mixtrain import checks
from mixtrain.boundary import UserTensor
from mixtrain.network.marks import REST
from mixtrain.network.unique_names import unique_names
from mixtrain.network.walk import children_of, is_cell, is_layer, is_optimizer_cell, wrapped_layer
from mixtrain.step.train_step import TrainStep, held_step
from mixtrain.typing import Layer, Network, Tensor, Variable

Named = Iterator[tuple[str, Any]]


def parameters_by_name(where: str, network: Network) -> dict[str, Variable]:
    """Return the parameters and other variables of a network by name, each once.

    Names are those of MindSpore: the name of a Parameter, and for Keras variables the path from the network with dots,
    in which a layer without a name from the user is named after its class. For a train cell, the optimizer's variables
    and ``scale_sense`` are included.
    """
    if not is_layer(network):
        raise checks.fail_type(where, "it must be a Cell or a built Keras model", network, _suggestion(network))
    if isinstance(network, keras.Layer):
        return _unique(_of_keras_layer(where, network, ""))
    if held_step(network) is None:  # The optimizer of a train cell has the names that the parameters had.
        network.ensure_unique_names()
    return _unique(_of_cell(where, network))


def states_by_name(network: Network) -> dict[str, Variable]:
    """Return the variables that are not parameters: loss-scale counts, and states of random-number generators."""
    return _unique(_keras_states(network, "") if isinstance(network, keras.Layer) else _cell_states(network))


def _suggestion(network: Network) -> str:
    if hasattr(network, "train_network"):
        return "model.train_network, or the network itself"
    if isinstance(network, keras.optimizers.Optimizer):
        return "model.train_network, which has the optimizer's variables too"
    return "a network, or model.train_network"


def _unique(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return each variable once, under a unique name; the second variable of a name gets ``name#2``."""
    first: dict[int, tuple[str, Any]] = {}
    for name, variable in named:
        first.setdefault(id(variable), (name, variable))
    names = unique_names(name for name, _ in first.values())
    return {name: variable for name, (_, variable) in zip(names, first.values(), strict=True)}


def _of_cell(where: str, network: Network) -> Named:
    """Yield (name, variable) for a cell and its children; the network comes before its optimizer."""
    known: dict[int, str] = {}
    for _, cell in network.cells_and_names():
        for name, variable in _own_variables(where, cell, known):
            known.setdefault(id(variable), name)
            yield name, variable
    for _, cell in network.cells_and_names():
        step = held_step(cell)
        if step is not None:
            yield from _of_step(step, known)


def _own_variables(where: str, cell: Layer, known: dict[int, str]) -> Named:
    if (layer := wrapped_layer(cell)) is not None:
        yield from _of_keras_layer(where, layer, cell.name_prefix)
    elif is_optimizer_cell(cell):
        # Slots are named after the parameters, so they are renamed where the network has other names for those.
        new_names = {
            name: known[id(parameter)]
            for name, parameter in zip(cell.parameters.names, cell.parameters, strict=True)
            if known.get(id(parameter), name) != name
        }
        for attribute, variable in cell.own_parameters().items():
            is_parameter = isinstance(variable, UserTensor)
            name = variable.name if is_parameter else attribute
            suffix = max((old for old in new_names if name.endswith(f".{old}")), key=len, default=None)
            yield (name if suffix is None else f"{name.removesuffix(suffix)}{new_names[suffix]}"), variable
    else:
        for parameter in cell.own_parameters().values():
            yield parameter.name, parameter


def _of_step(step: TrainStep, known: dict[int, str]) -> Named:
    # An optimizer that wraps another one (as after `amp.initialize`) has it as `inner`.
    if isinstance(getattr(step.optimizer, "inner", step.optimizer), keras.optimizers.Optimizer):
        # Keras names a slot after the path of its weight: "dense_kernel_momentum".
        names = {weight.path.replace("/", "_"): known[id(weight)] for weight in step.weights if id(weight) in known}
        longest_first = sorted(names, key=len, reverse=True)
        for variable in step.driver.state_variables():
            path = next((path for path in longest_first if variable.name.startswith(f"{path}_")), None)
            name = variable.name if path is None else f"{variable.name.removeprefix(path)[1:]}.{names[path]}"
            yield name, variable
    for weight in step.weights:
        if (rest := REST.of(weight)) is not None:
            yield f"rest.{known.get(id(weight), weight.name)}", rest
    if step.window is not None:
        counts, rows, *sums = step.window.variables()
        yield from (("accumulated.counts", counts), ("accumulated.rows", rows))
        known = known | {id(variable): name for name, variable in step.histories.items()}
        for weight, total in zip(step.differentiated, sums, strict=True):
            yield f"accumulated.{known.get(id(weight), weight.name)}", total
    yield from step.histories.items()
    if step.scale is not None:
        yield "scale_sense", step.scale.variable
        for variable in step.scale.own_variables():
            if variable is not step.scale.variable:
                yield variable.name, variable


def _cell_states(network: Network) -> Named:
    for _, cell in network.cells_and_names():
        prefix = cell.name_prefix
        if (layer := wrapped_layer(cell)) is not None:
            yield from _keras_states(layer, prefix)
        step = held_step(cell)
        if step is not None and step.scale is not None:
            yield "loss_scale.counts", step.state.counts
        for name, value in vars(cell).items():
            values = value if isinstance(value, (list, tuple)) else (value,)
            for index, generator in enumerate(values):
                if isinstance(generator, keras.random.SeedGenerator):
                    yield f"{prefix}{name}" if values is not value else f"{prefix}{name}.{index}", generator.state


def _of_keras_layer(where: str, layer: keras.Layer, prefix: str) -> Named:
    if not layer.built:
        raise checks.fail_value(
            where, "a Keras layer must be built, so that it has variables", layer.name, "model.build(...) before"
        )
    return _walk_keras(layer, prefix, lambda layer: layer.weights, lambda cell: cell.parameters_and_names())


def _keras_states(layer: keras.Layer, prefix: str) -> Named:
    def states(layer: keras.Layer) -> list[Variable]:
        weights = {id(variable) for variable in layer.weights}
        return [variable for variable in layer.variables if id(variable) not in weights]

    return _walk_keras(layer, prefix, states, _cell_states)


def _walk_keras(
    layer: keras.Layer, prefix: str, of_layer: Callable[[Tensor], list[Tensor]], of_cell: Callable[[Tensor], Named]
) -> Named:
    """Yield (name, variable) for a layer and its children; a variable is named by the innermost layer that has it."""
    for cell in filter(is_cell, children_of(layer).values()):
        yield from ((f"{prefix}{path}", variable) for path, variable in of_cell(cell))
    children = _stable_children(layer)
    of_children = {id(variable) for child in children.values() for variable in of_layer(child)}
    for variable in of_layer(layer):
        if id(variable) not in of_children:
            yield f"{prefix}{variable.name}", variable
    for name, child in children.items():
        yield from _walk_keras(child, f"{prefix}{name}.", of_layer, of_cell)


def _stable_children(layer: keras.Layer) -> dict[str, Layer]:
    """Return the direct children of a layer by name; names generated by Keras are numbered again within the layer.

    Keras numbers them in the order of creation in the process, which another process need not repeat.
    """
    children: dict[str, Layer] = {}
    for child in children_of(layer).values():
        if not isinstance(child, keras.Layer):
            continue
        default = _snake_case(type(child).__name__)
        name = default if re.fullmatch(rf"{re.escape(default)}(_\d+)?", child.name) else child.name
        candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
        children[next(candidate for candidate in candidates if candidate not in children)] = child
    return children


def _snake_case(name: str) -> str:
    """Return the name of a class as in names of Keras layers: ``conv2d`` for ``Conv2D``."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
