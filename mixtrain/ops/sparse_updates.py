"""Optimizer steps for sparse gradients: only the rows that have a gradient are updated."""

from __future__ import annotations

import keras

from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.updates import Adam, ApplyProximalAdagrad, Locking, ftrl, read, write
from mixtrain.typing import Tensor, TensorLike, Variable


class _Rows(Primitive):
    """A step whose gradient is given as rows and their indices; rows of one index are added up."""

    def _dense(self, variable: Variable, grad: Tensor, indices: TensorLike) -> tuple[Tensor, Tensor]:
        """Return the dense gradient, and which rows have one; indices out of range are ignored."""
        count, (rows,) = variable.shape[0], read(self.name, grad)
        index = keras.ops.cast(tensor(self.name, indices), "int32")
        # Rows out of range go to one more segment, which is cut off.
        index = keras.ops.where(keras.ops.logical_and(index >= 0, index < count), index, count)
        dense = keras.ops.segment_sum(rows, index, num_segments=count + 1)[:count]
        touched = keras.ops.segment_sum(keras.ops.ones_like(index), index, num_segments=count + 1)[:count] > 0
        return dense, keras.ops.reshape(touched, (count,) + (1,) * (len(dense.shape) - 1))

    def _write_rows(
        self, touched: Tensor, variables: tuple[Variable, ...], values: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """Update the rows that are touched, and return the new values of all rows."""
        return tuple(
            write(variable, keras.ops.where(touched, keras.ops.cast(tensor(self.name, new), old.dtype), old))
            for variable, new, old in zip(variables, values, read(self.name, *variables), strict=True)
        )


class SparseApplyAdagradV2(_Rows):
    """`ApplyAdagradV2` of the rows that have a gradient, with the learning rate `lr`; `use_locking` is accepted.

    `epsilon` is added below the root, where `ApplyAdagradV2` adds it to the root; without `update_slots` the sums stay.
    Example: ``ops.SparseApplyAdagradV2(0.01, 1e-6)(var, accum, grad, indices)``.
    """

    def __init__(self, lr: float, epsilon: float, use_locking: bool = False, update_slots: bool = True) -> None:
        super().__init__()
        self.lr, self.epsilon, self.use_locking, self.update_slots = lr, epsilon, use_locking, update_slots

    def __call__(self, var: Variable, accum: Variable, grad: TensorLike, indices: TensorLike) -> tuple[Tensor, ...]:
        dense, touched = self._dense(var, grad, indices)
        value, total = read(self.name, var, accum)
        total = total + dense * dense if self.update_slots else total
        step = self.lr * dense / keras.ops.sqrt(total + self.epsilon)
        return self._write_rows(touched, (var, accum), (value - step, total))


class SparseApplyFtrl(_Rows):
    """`ApplyFtrl` of the rows that have a gradient, with fixed `lr`, `l1`, `l2`, `lr_power`; `use_locking` is accepted.

    Example: ``ops.SparseApplyFtrl(0.01, 0.0, 0.0, -0.5)(var, accum, linear, grad, indices)``.
    """

    def __init__(self, lr: float, l1: float, l2: float, lr_power: float, use_locking: bool = False) -> None:
        super().__init__()
        self.lr, self.l1, self.l2, self.lr_power, self.use_locking = lr, l1, l2, lr_power, use_locking

    def __call__(
        self, var: Variable, accum: Variable, linear: Variable, grad: TensorLike, indices: TensorLike
    ) -> tuple[Tensor, ...]:
        dense, touched = self._dense(var, grad, indices)
        values = ftrl(*read(self.name, var, accum, linear, dense, self.lr, self.l1, self.l2, self.lr_power))
        return self._write_rows(touched, (var, accum, linear), values)


class FusedSparseFtrl(SparseApplyFtrl):
    """`SparseApplyFtrl`. Example: ``ops.FusedSparseFtrl(0.01, 0.0, 0.0, -0.5)(var, accum, linear, grad, indices)``."""


class FusedSparseProximalAdagrad(_Rows, Locking):
    """`ApplyProximalAdagrad` of the rows that have a gradient; `use_locking` is accepted.

    Example: ``ops.FusedSparseProximalAdagrad()(var, accum, lr, l1, l2, grad, indices)``.
    """

    def __call__(
        self, var: Variable, accum: Variable, lr: TensorLike, l1: TensorLike, l2: TensorLike, grad: TensorLike,
        indices: TensorLike,
    ) -> tuple[Tensor, ...]:
        dense, touched = self._dense(var, grad, indices)
        value, total = read(self.name, var, accum)
        return self._write_rows(touched, (var, accum), ApplyProximalAdagrad()(value, total, lr, l1, l2, dense))


class FusedSparseAdam(_Rows):
    """Adam's step of all rows; those without a gradient have a gradient of zero, so that their means decay.

    `use_nesterov`: whether to use Nesterov momentum, with which the weights of those rows do not change; `use_locking`
    is accepted. Example:
    ``ops.FusedSparseAdam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, indices)``.
    """

    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None:
        super().__init__()
        self.use_locking, self.use_nesterov = use_locking, use_nesterov

    def _stepped(self, touched: Tensor) -> tuple[Tensor, Tensor]:
        """Return which rows of the weight are updated, and which rows of the means."""
        everything = keras.ops.ones_like(touched)
        return touched if self.use_nesterov else everything, everything

    def __call__(
        self, var: Variable, m: Variable, v: Variable, beta1_power: TensorLike, beta2_power: TensorLike, lr: TensorLike,
        beta1: TensorLike, beta2: TensorLike, epsilon: TensorLike, gradient: TensorLike, indices: TensorLike,
    ) -> tuple[Tensor, ...]:
        dense, touched = self._dense(var, gradient, indices)
        value, mean, square = read(self.name, var, m, v)
        values = Adam(self.use_locking, self.use_nesterov)(
            value, mean, square, beta1_power, beta2_power, lr, beta1, beta2, epsilon, dense
        )
        weights, means = self._stepped(touched)
        return (*self._write_rows(weights, (var,), values[:1]), *self._write_rows(means, (m, v), values[1:]))


class FusedSparseLazyAdam(FusedSparseAdam):
    """Adam's step of the rows that have a gradient; `use_locking` and `use_nesterov` as in `FusedSparseAdam`.

    Example: ``ops.FusedSparseLazyAdam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, at)``.
    """

    def _stepped(self, touched: Tensor) -> tuple[Tensor, Tensor]:
        return touched, touched
