"""Types of tensors, variables, networks and nested structures, for signatures.

TensorFlow and JAX have no common class of tensors, and Keras ships no types: to a type checker most of these are
`Any`. Each is a name for one kind of value, and the place to define it more narrowly.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

# A `tf.Tensor`, a `jax.Array` or a `keras.KerasTensor`.
BackendTensor: TypeAlias = Any

# What functions compute and return: a backend tensor in library code, a `mixtrain.Tensor` in MindSpore code.
# `mixtrain.boundary` converts between them.
Tensor: TypeAlias = Any

# What functions accept as a tensor: a Tensor, a Parameter, a variable, a NumPy array, a number, or a list of numbers.
TensorLike: TypeAlias = Any

# A `mixtrain.Parameter` or a `keras.Variable`.
Variable: TypeAlias = Any

# The columns of a batch, in the order of the dataset.
Batch: TypeAlias = tuple[Tensor, ...]

# Tensors in tuples, lists and dicts, nested (a pytree).
Tree: TypeAlias = Any

# A `mixtrain.nn.Cell` or a `keras.Layer`.
Layer: TypeAlias = Any

# A `mixtrain.nn.Cell`, a `keras.Model`, or a function of Cells.
Network: TypeAlias = Any

# A `mixtrain.nn.Optimizer` or a `keras.optimizers.Optimizer`.
Optimizer: TypeAlias = Any

# A `mixtrain.dataset.Dataset`, a `tf.data.Dataset`, a `keras.utils.PyDataset`, or an iterable of batches.
DatasetLike: TypeAlias = Any

# A loss Cell, a `keras.losses.Loss`, or a function of outputs and labels.
LossFn: TypeAlias = Any

# The size of each axis; None where it is unknown (dynamic).
Shape: TypeAlias = tuple[int | None, ...]

# A `mixtrain` dtype, its name, a NumPy or backend dtype, or `bool`, `int` or `float`.
DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any]
