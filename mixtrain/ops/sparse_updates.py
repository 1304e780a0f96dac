"""The steps of optimizers for gradients of some rows: the other rows are left as they are."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain.ops.inputs import tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.updates import Adam, ApplyProximalAdagrad, ftrl, read, write


class _Rows(Primitive):
    """What the steps share: rows of gradients under indices, added up where an index repeats."""

    def _dense(self, variable: Any, grad: Any, indices: Any) -> tuple[Any, Any]:
        """Return the gradient of all rows, and which of them have one; indices outside are passed over."""
        count, (rows,) = variable.shape[0], read(self.name, grad)
        at = keras.ops.cast(tensor(self.name, indices), "int32")
        at = keras.ops.where(keras.ops.logical_and(at >= 0, at < count), at, count)
        whole = keras.ops.segment_sum(rows, at, num_segments=count + 1)[:count]
        touched = keras.ops.segment_sum(keras.ops.ones_like(at), at, num_segments=count + 1)[:count] > 0
        return whole, keras.ops.reshape(touched, (count,) + (1,) * (len(whole.shape) - 1))

    def _write_rows(self, touched: Any, variables: tuple[Any, ...], found: tuple[Any, ...]) -> tuple[Any, ...]:
        """Write the rows that have a gradient, and return the whole values."""
        old = read(self.name, *variables)
        return tuple(
            write(variable, keras.ops.where(touched, keras.ops.cast(tensor(self.name, new), before.dtype), before))
            for variable, new, before in zip(variables, found, old, strict=True)
        )


class SparseApplyAdagradV2(_Rows):
    """`ApplyAdagradV2` of the rows that have a gradient.

    Args:
        lr: The learning rate.
        epsilon: Added below the root, where `ApplyAdagradV2` adds it to the root.
        use_locking: Accepted; without effect.
        update_slots: Whether the sums grow.

    Example: ``ops.SparseApplyAdagradV2(0.01, 1e-6)(var, accum, grad, indices)``.
    Source: MindSpore, `mindspore.ops.SparseApplyAdagradV2`.
    """

    def __init__(self, lr: float, epsilon: float, use_locking: bool = False, update_slots: bool = True) -> None:
        super().__init__()
        self.lr, self.epsilon, self.use_locking, self.update_slots = lr, epsilon, use_locking, update_slots

    def __call__(self, var: Any, accum: Any, grad: Any, indices: Any) -> tuple[Any, ...]:
        whole, touched = self._dense(var, grad, indices)
        value, total = read(self.name, var, accum)
        total = total + whole * whole if self.update_slots else total
        step = self.lr * whole / keras.ops.sqrt(total + self.epsilon)
        return self._write_rows(touched, (var, accum), (value - step, total))


class SparseApplyFtrl(_Rows):
    """`ApplyFtrl` of the rows that have a gradient.

    Args:
        lr: The learning rate.
        l1: Strength of the L1 penalty.
        l2: Strength of the L2 penalty.
        lr_power: Power by which the rate falls, at most 0.
        use_locking: Accepted; without effect.

    Example: ``ops.SparseApplyFtrl(0.01, 0.0, 0.0, -0.5)(var, accum, linear, grad, indices)``.
    Source: MindSpore, `mindspore.ops.SparseApplyFtrl`.
    """

    def __init__(self, lr: float, l1: float, l2: float, lr_power: float, use_locking: bool = False) -> None:
        super().__init__()
        self.lr, self.l1, self.l2, self.lr_power, self.use_locking = lr, l1, l2, lr_power, use_locking

    def __call__(self, var: Any, accum: Any, linear: Any, grad: Any, indices: Any) -> tuple[Any, ...]:
        whole, touched = self._dense(var, grad, indices)
        value, total, line = ftrl(
            *read(self.name, var, accum, linear, whole, self.lr, self.l1, self.l2, self.lr_power)
        )
        return self._write_rows(touched, (var, accum, linear), (value, total, line))


class FusedSparseFtrl(SparseApplyFtrl):
    """`SparseApplyFtrl`. Example: ``ops.FusedSparseFtrl(0.01, 0.0, 0.0, -0.5)(var, accum, linear, grad, indices)``.

    Source: MindSpore, `mindspore.ops.FusedSparseFtrl`.
    """


class FusedSparseProximalAdagrad(_Rows):
    """`ApplyProximalAdagrad` of the rows that have a gradient.

    Args:
        use_locking: Accepted; without effect.

    Example: ``ops.FusedSparseProximalAdagrad()(var, accum, lr, l1, l2, grad, indices)``.
    Source: MindSpore, `mindspore.ops.FusedSparseProximalAdagrad`.
    """

    def __init__(self, use_locking: bool = False) -> None:
        super().__init__()
        self.use_locking = use_locking

    def __call__(
        self, var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any, indices: Any
    ) -> tuple[Any, ...]:
        whole, touched = self._dense(var, grad, indices)
        value, total = read(self.name, var, accum)
        found = ApplyProximalAdagrad()(value, total, lr, l1, l2, whole)
        return self._write_rows(touched, (var, accum), found)


class FusedSparseAdam(_Rows):
    """Adam's step of all rows; those without a gradient have one of zero, so that their means decay.

    With `use_nesterov` the weights of those rows stay.

    Args:
        use_locking: Accepted; without effect.
        use_nesterov: Whether the mean looks ahead.

    Example: ``ops.FusedSparseAdam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, indices)``.
    Source: MindSpore, `mindspore.ops.FusedSparseAdam`.
    """

    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None:
        super().__init__()
        self.use_locking, self.use_nesterov = use_locking, use_nesterov

    def _stepped(self, touched: Any) -> tuple[Any, Any]:
        """Return which rows have their weight stepped, and which their means."""
        whole = keras.ops.ones_like(touched)
        return touched if self.use_nesterov else whole, whole

    def __call__(
        self, var: Any, m: Any, v: Any, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any, beta2: Any,
        epsilon: Any, gradient: Any, indices: Any,
    ) -> tuple[Any, ...]:
        whole, touched = self._dense(var, gradient, indices)
        value, mean, square = read(self.name, var, m, v)
        found = Adam(self.use_locking, self.use_nesterov)(
            value, mean, square, beta1_power, beta2_power, lr, beta1, beta2, epsilon, whole
        )
        weights, means = self._stepped(touched)
        return (*self._write_rows(weights, (var,), found[:1]), *self._write_rows(means, (m, v), found[1:]))


class FusedSparseLazyAdam(FusedSparseAdam):
    """Adam's step of the rows that have a gradient; `use_locking` and `use_nesterov` as in `FusedSparseAdam`.

    Example: ``ops.FusedSparseLazyAdam()(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, at)``.
    Source: MindSpore, `mindspore.ops.FusedSparseLazyAdam`.
    """

    def _stepped(self, touched: Any) -> tuple[Any, Any]:
        return touched, touched
