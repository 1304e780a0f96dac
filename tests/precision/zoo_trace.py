"""What a network's layers take and give while a step is traced, held against its plan."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import keras

from mixtrain import amp
from mixtrain.network.interpose import interpose
from tests.precision.compiled_graph import Operation, arithmetic_among

# What multiplies matrices or convolves, in a graph.
PRODUCTS = ("Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv3DBackpropInputV2", "MatMul",
            "BatchMatMulV2", "Einsum")


@dataclasses.dataclass
class Seen:
    """The float dtypes that went into a layer's `call` and came out of it; empty where it was never called."""

    calls: int = 0
    inputs: set[str] = dataclasses.field(default_factory=set)
    outputs: set[str] = dataclasses.field(default_factory=set)


@contextlib.contextmanager
def recording(plan: amp.PrecisionPlan) -> Iterator[dict[str, Seen]]:
    """Watch the layers of the plan in force; yield what was seen, by path."""
    seen = {row.path: Seen() for row in plan.rows}
    with contextlib.ExitStack() as back:
        for row in plan.rows:
            back.callback(interpose(row.target, functools.partial(_watched, seen[row.path])))
        yield seen


def _watched(found: Seen, forward: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        found.calls += 1
        found.inputs |= _floats((args, kwargs))
        outputs = forward(*args, **kwargs)
        found.outputs |= _floats(outputs)
        return outputs

    return call


def _floats(values: Any) -> set[str]:
    tensors = (value for value in keras.tree.flatten(values) if keras.ops.is_tensor(value))
    return {dtype for dtype in (keras.backend.standardize_dtype(value.dtype) for value in tensors) if "float" in dtype}


def uncalled(seen: dict[str, Seen]) -> set[str]:
    """Return the paths of the layers that the step never called."""
    return {path for path, result in seen.items() if not result.calls}


def contradicted(plan: amp.PrecisionPlan, seen: dict[str, Seen]) -> list[str]:
    """Return, in words, the rows that take or give something else than the plan says."""
    wrong = []
    for row in plan.rows:
        found = seen[row.path]
        if found.outputs - {row.output_dtype.name}:
            wrong.append(f"{row.path}: the plan gives {row.output_dtype}, given {sorted(found.outputs)}")
        # A fused normalization takes half as it comes.
        takes = {row.compute_dtype.name, row.output_dtype.name} if row.fused else {row.compute_dtype.name}
        if _casts_inputs(row.target) and found.inputs - takes:
            wrong.append(f"{row.path}: the plan computes in {row.compute_dtype}, taken {sorted(found.inputs)}")
    return wrong


def _casts_inputs(layer: Any) -> bool:
    """Whether Keras casts what a layer takes before its call.

    Models and pipelines leave that to their layers, and two augmentations, on JAX, cast as their first operation.
    """
    augmentations = (keras.layers.RandomFlip, keras.layers.RandomCrop)
    inside = isinstance(layer, (keras.Sequential, keras.layers.Pipeline, *augmentations))
    return isinstance(layer, keras.Layer) and layer.autocast and not inside and not hasattr(layer, "operations")


def stray_products(plan: amp.PrecisionPlan, nodes: list[Any]) -> tuple[int, list[str]]:
    """Return how many products of matrices and convolutions a graph has, and those that the plan contradicts."""
    products = [operation for operation in arithmetic_among(nodes) if operation.kind in PRODUCTS]
    formats: dict[str, set[str]] = {}
    for row in plan.rows:
        # Operations of a functional model have no scope of their own.
        name = row.path.split("/")[-1] if isinstance(row.target, keras.Layer) else ""
        formats.setdefault(name, set()).add(row.compute_dtype.name)
    # Keras compiles grouped convolutions as functions of their own, which know no layer's scope.
    scoped = [product for product in products if "/" in product.name]
    wrong = [product for product in scoped if product.dtype not in formats[_owner(product, formats)]]
    return len(products), [f"{product.name}: {product.kind} in {product.dtype}" for product in wrong]


def _owner(operation: Operation, names: dict[str, Any]) -> str:
    """Return the innermost layer in the scope of an operation; "" for the network itself."""
    for scope in reversed(operation.name.split("/")[:-1]):
        for name in (scope, re.sub(r"_\d+$", "", scope)):
            if name in names:
                return name
    return ""
