"""Optimizer steps for sparse gradients: only the rows that have a gradient are updated."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import checks
from mixtrain.ops import updates
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import tensor, tensor_dtype
from mixtrain.ops.primitive import Primitive, as_primitive, configured
from mixtrain.ops.updates import Adam, ApplyProximalAdagrad, ftrl, read
from mixtrain.ops.writes import write
from mixtrain.typing import Tensor, TensorLike, Variable


def _dense(where: str, variable: Variable, grad: Tensor, indices: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the dense gradient for rows and their indices, and which rows have one.

    Rows of one index are added up; indices out of range are ignored.
    """
    for name, value in (("grad", grad), ("indices", indices)):
        if isinstance(value, (list, tuple)):
            raise checks.fail_type(where, f"{name} must be a tensor", value, "Tensor(...)")
    count, (rows,), index = variable.shape[0], read(where, grad), tensor(where, indices)
    if "int" not in tensor_dtype(index).name:
        raise checks.fail_type(where, "indices must be ints", tensor_dtype(index).name, "Tensor(indices, int32)")
    row = tuple(variable.shape[1:])
    if len(rows.shape) == 0 or len(index.shape) != 1 or tuple(rows.shape[1:]) != row:
        raise checks.fail_value(
            where, f"grad must have rows of shape {row} and indices one axis", (tuple(rows.shape), tuple(index.shape)),
            "such tensors",
        )
    index = keras.ops.cast(index, "int32")
    # Rows out of range go to one more segment, which is cut off.
    index = keras.ops.where(keras.ops.logical_and(index >= 0, index < count), index, count)
    dense = keras.ops.segment_sum(rows, index, num_segments=count + 1)[:count]
    touched = keras.ops.segment_sum(keras.ops.ones_like(index), index, num_segments=count + 1)[:count] > 0
    return dense, keras.ops.reshape(touched, (count,) + (1,) * (len(dense.shape) - 1))


def _write_rows(
    where: str, touched: Tensor, variables: tuple[Variable, ...], values: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Update the rows that are touched, and return the new values of all rows."""
    return tuple(
        write(variable, keras.ops.where(touched, keras.ops.cast(tensor(where, new), old.dtype), old))
        for variable, new, old in zip(variables, values, read(where, *variables), strict=True)
    )


@as_primitive
def SparseApplyAdagradV2(
    var: Variable, accum: Variable, grad: TensorLike, indices: TensorLike, *, lr: float, epsilon: float,
    use_locking: bool = False, update_slots: bool = True,
) -> tuple[Tensor, ...]:
    """`ApplyAdagradV2` of the rows that have a gradient, with the learning rate `lr`; `use_locking` is accepted.

    `epsilon` is added below the root, where `ApplyAdagradV2` adds it to the root; without `update_slots` the sums stay.
    Example: ``ops.SparseApplyAdagradV2(0.01, 1e-6)(var, accum, grad, indices)``.
    """
    where = "SparseApplyAdagradV2"
    dense, touched = _dense(where, var, grad, indices)
    value, total = read(where, var, accum)
    total = total + dense * dense if update_slots else total
    step = lr * dense / keras.ops.sqrt(total + epsilon)
    return _write_rows(where, touched, (var, accum), (value - step, total))


@as_primitive
def SparseApplyAdagrad(
    var: Variable, accum: Variable, grad: TensorLike, indices: TensorLike, *, lr: float, update_slots: bool = True,
    use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """`SparseApplyAdagradV2` without `epsilon`. Example: ``SparseApplyAdagrad(0.01)(var, accum, grad, indices)``."""
    updated: tuple[Tensor, ...] = SparseApplyAdagradV2(lr, 0.0, use_locking, update_slots)(var, accum, grad, indices)
    return updated


@as_primitive
def SparseApplyRMSProp(
    var: Variable, ms: Variable, mom: Variable, lr: TensorLike, grad: TensorLike, indices: TensorLike, *, rho: float,
    momentum: float, epsilon: float, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """`ApplyRMSProp` of the rows that have a gradient, with fixed `rho`, `momentum`, `epsilon`.

    Example: ``SparseApplyRMSProp(0.9, 0.0, 1e-6)(var, ms, mom, 0.01, grad, indices)``.
    """
    where = "SparseApplyRMSProp"
    dense, touched = _dense(where, var, grad, indices)
    value, squares, moment, rate = read(where, var, ms, mom, lr)
    squares = rho * squares + (1 - rho) * dense * dense
    moment = momentum * moment + rate * dense / keras.ops.sqrt(squares + epsilon)
    return _write_rows(where, touched, (var, ms, mom), (value - moment, squares, moment))


def _sparse_ftrl(name: str) -> type[Primitive]:
    def update(
        var: Variable, accum: Variable, linear: Variable, grad: TensorLike, indices: TensorLike, *, lr: float,
        l1: float, l2: float, lr_power: float, use_locking: bool = False,
    ) -> tuple[Tensor, ...]:
        dense, touched = _dense(name, var, grad, indices)
        values = ftrl(*read(name, var, accum, linear, dense, lr, l1, l2, lr_power))
        return _write_rows(name, touched, (var, accum, linear), values)

    return as_primitive(named(update, name, (
        "`ApplyFtrl` of the rows that have a gradient, with fixed `lr`, `l1`, `l2`, `lr_power`; `use_locking` is "
        f"accepted. Example: ``ops.{name}(0.01, 0.0, 0.0, -0.5)(var, accum, linear, grad, indices)``."
    )))


SparseApplyFtrl, FusedSparseFtrl = _sparse_ftrl("SparseApplyFtrl"), _sparse_ftrl("FusedSparseFtrl")


@as_primitive
def FusedSparseProximalAdagrad(
    var: Variable, accum: Variable, lr: TensorLike, l1: TensorLike, l2: TensorLike, grad: TensorLike,
    indices: TensorLike, *, use_locking: bool = False,
) -> tuple[Tensor, ...]:
    """`ApplyProximalAdagrad` of the rows that have a gradient; `use_locking` is accepted.

    Example: ``ops.FusedSparseProximalAdagrad()(var, accum, lr, l1, l2, grad, indices)``.
    """
    where = "FusedSparseProximalAdagrad"
    dense, touched = _dense(where, var, grad, indices)
    value, total = read(where, var, accum)
    return _write_rows(where, touched, (var, accum), ApplyProximalAdagrad()(value, total, lr, l1, l2, dense))


def _fused_adam(name: str, doc: str, *, lazy: bool) -> type[Primitive]:
    def update(
        var: Variable, m: Variable, v: Variable, beta1_power: TensorLike, beta2_power: TensorLike, lr: TensorLike,
        beta1: TensorLike, beta2: TensorLike, epsilon: TensorLike, gradient: TensorLike, indices: TensorLike, *,
        use_locking: bool = False, use_nesterov: bool = False,
    ) -> tuple[Tensor, ...]:
        dense, touched = _dense(name, var, gradient, indices)
        values = Adam(use_locking, use_nesterov)(
            *read(name, var, m, v), beta1_power, beta2_power, lr, beta1, beta2, epsilon, dense
        )
        every_row = keras.ops.ones_like(touched)
        weights, means = touched if lazy or use_nesterov else every_row, touched if lazy else every_row
        return *_write_rows(name, weights, (var,), values[:1]), *_write_rows(name, means, (m, v), values[1:])

    arguments = "var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, indices"
    return as_primitive(named(update, name, f"{doc} Example: ``ops.{name}()({arguments})``."))


FusedSparseAdam = _fused_adam("FusedSparseAdam", (
    "Adam's step of all rows; those without a gradient have a gradient of zero, so that their means decay.\n\n"
    "`use_nesterov`: whether to use Nesterov momentum, with which the weights of those rows do not change; "
    "`use_locking` is accepted."
), lazy=False)
FusedSparseLazyAdam = _fused_adam("FusedSparseLazyAdam", (
    "Adam's step of the rows that have a gradient; `use_locking` and `use_nesterov` as in `FusedSparseAdam`.\n\n"
), lazy=True)


def _turns(index: Tensor) -> Tensor:
    """Return of each index how many equal ones are before it."""
    order = keras.ops.argsort(index)  # Stable.
    ordered = keras.ops.take(index, order)
    before = keras.ops.arange(index.shape[0], dtype="int32") - keras.ops.searchsorted(ordered, ordered)
    return keras.ops.take(before, keras.ops.argsort(order))


def _of_rows(name: str, dense: Any, variables: int, inputs: str, **settings: bool) -> Any:
    """Return the class of primitives that update by the rule of `dense` the rows that have a gradient.

    Rows of one index are not added up, but are steps one after the other, as in MindSpore. Its CPU ignores
    `use_nesterov`, which is obeyed here. `inputs`: What the primitive takes, by the names of `dense`, first the
    `variables`; the indices follow the gradient's rows.
    """
    names = inputs.split()
    gradient = names[names.index("indices") - 1]

    def update(*tensors: Any, use_locking: bool, **current: bool) -> Tensor:
        del use_locking
        given = dict(zip(names, tensors, strict=True))
        rows, index = given.pop(gradient), keras.ops.cast(tensor(name, given.pop("indices")), "int32")
        values = dict(zip(given, read(name, *given.values()), strict=True))
        turns = _turns(index)

        def turn(number: Tensor, *old: Tensor) -> tuple[Tensor, ...]:
            grad, touched = _dense(name, tensors[0], rows, keras.ops.where(turns == number, index, -1))
            new = dense.compute(**values | dict(zip(names, old, strict=False)), **{gradient: grad}, **current)
            return number + 1, *(keras.ops.where(touched, *pair) for pair in zip(new, old, strict=True))

        last = keras.ops.max(turns)
        state = (keras.ops.zeros_like(last), *[values[key] for key in names[:variables]])
        new = keras.ops.while_loop(lambda number, *_: number <= last, turn, state)[1:]
        return [write(*each) for each in zip(tensors, new, strict=False)][0]

    return configured(name, update, use_locking=False, **settings)


SparseApplyMomentum = _of_rows(
    "SparseApplyMomentum", updates.ApplyMomentum, 2, "variable accumulation learning_rate gradient indices momentum",
    use_nesterov=False,
)
SparseApplyCenteredRMSProp = _of_rows(
    "SparseApplyCenteredRMSProp", updates.ApplyCenteredRMSProp, 4,
    "var mean_gradient mean_square moment learning_rate decay momentum epsilon grad indices",
)
SparseApplyAdagradDA = _of_rows(
    "SparseApplyAdagradDA", updates.ApplyAdagradDA, 3,
    "var gradient_accumulator gradient_squared_accumulator grad indices lr l1 l2 global_step",
)
SparseApplyProximalGradientDescent = _of_rows(
    "SparseApplyProximalGradientDescent", updates.ApplyProximalGradientDescent, 1, "var alpha l1 l2 delta indices"
)
