"""`Embedding`, `EmbeddingLookup` and `MultiFieldEmbeddingLookup`: lookup in a learned table."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.common.initializer import InitializerLike, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32, is_float
from mixtrain.lazy_names import serve_names
from mixtrain.nn.layer.clip_by_norm import clip_by_norm
from mixtrain.ops.parameter_reads import parameter_read_dtype, parameters_read_as
from mixtrain.typing import DTypeLike, Tensor


class _Table(Cell):
    """Base class of embeddings: checks of the indices, and the lookup."""

    _noun: ClassVar[str] = "ids"

    def __init__(self, vocab_size: int, embedding_size: int) -> None:
        super().__init__()
        self.vocab_size = checks.integer(self.cls_name, "vocab_size", vocab_size, at_least=1)
        self.embedding_size = checks.integer(self.cls_name, "embedding_size", embedding_size, at_least=1)

    def _ids(self, ids: Tensor) -> Tensor:
        """Convert indices, which may be Python or NumPy values, to an int tensor; check their range when eager."""
        ids = backend.to_tensor(ids)
        dtype = as_dtype(ids.dtype)
        if is_float(dtype) or dtype == "bool":
            raise TypeError(
                f"{name_of(self)}: expected {self._noun} of an int dtype; got {dtype.name}. "
                "Write mixtrain.Tensor(ids, mixtrain.int32)."
            )
        if not backend.is_tracing() and 0 not in tuple(ids.shape):
            array = backend.to_numpy(ids)
            if array.min() < 0 or array.max() >= self.vocab_size:
                raise checks.fail_value(
                    name_of(self), f"{self._noun} must be from 0 to {self.vocab_size - 1}",
                    int(array.min() if array.min() < 0 else array.max()), f"vocab_size={int(array.max()) + 1}",
                )
        return ids

    def _rows(self, ids: Tensor) -> Tensor:
        # Cast the rows instead of the table: they are fewer, and the gradient of the table stays sparse.
        dtype = parameter_read_dtype()
        with parameters_read_as(None):
            rows = keras.ops.take(self.embedding_table.value, ids, axis=0)
        return rows if dtype is None else keras.ops.cast(rows, dtype)


class Embedding(_Table):
    """Map each index to a learned vector.

    Args:
        vocab_size: Number of rows of the table.
        embedding_size: Size of each row.
        use_one_hot: Whether the lookup is a matrix product with one-hot rows, which is faster on some devices.
        embedding_table: Initial table, anything that `initializer` accepts; by default normal of deviation 0.01.
        dtype: Dtype of the one-hot rows; the table is float32.
        padding_idx: Index of a row that is initialized with zeros.

    Inputs: ids, ints in [0, vocab_size), of any shape.
    Returns: The rows, of shape (*ids.shape, embedding_size).
    Raises: ValueError: An argument is out of range, or an id is (checked outside compiled functions only).

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> tuple(nn.Embedding(10, 4)(mixtrain.Tensor([[1, 2, 3]])).shape)
        (1, 3, 4)
    """

    def __init__(
        self, vocab_size: int, embedding_size: int, use_one_hot: bool = False,
        embedding_table: InitializerLike = "normal", dtype: DTypeLike = float32, padding_idx: int | None = None,
    ) -> None:
        super().__init__(vocab_size, embedding_size)
        self.use_one_hot = checks.boolean(self.cls_name, "use_one_hot", use_one_hot)
        self.dtype = as_dtype(dtype)
        table = initializer(embedding_table, (self.vocab_size, self.embedding_size))
        self.padding_idx = padding_idx
        if padding_idx is not None:
            checks.integer(self.cls_name, "padding_idx", padding_idx, at_least=0)
            if padding_idx >= self.vocab_size:
                raise checks.fail_value(
                    self.cls_name, f"padding_idx must be less than vocab_size={vocab_size}", padding_idx,
                    "padding_idx=0",
                )
            array = np.array(backend.to_numpy(table))
            array[padding_idx] = 0
            table = backend.to_tensor(array, table.dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        """Look up the rows of `ids`."""
        ids = self._ids(ids)
        if not self.use_one_hot:
            return self._rows(ids)
        table = self.embedding_table.value
        return keras.ops.matmul(keras.ops.one_hot(ids, self.vocab_size, dtype=table.dtype), table)

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class EmbeddingLookup(_Table):
    """Map each index to a learned vector: `Embedding` with different arguments.

    Args:
        vocab_size, embedding_size: As in `Embedding`.
        param_init: Initial table, anything that `initializer` accepts.
        target, slice_mode, manual_shapes: How the table would be sharded over devices; without effect. `target` is
            "CPU" or "DEVICE".
        max_norm: Maximum norm of a row, to which longer rows are scaled down when read; None for no limit.
        sparse: Accepted, without effect; gradients are always sparse.
        dtype: Dtype of the table.

    Inputs: indices, ints in [0, vocab_size), of any shape.
    Returns: The rows, of shape (*indices.shape, embedding_size).
    Raises: ValueError: An argument is out of range, or an index is (checked outside compiled functions only).

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> tuple(nn.EmbeddingLookup(10, 4)(mixtrain.Tensor([[1, 2, 3]])).shape)
        (1, 3, 4)
    """

    BATCH_SLICE: ClassVar[str] = "batch_slice"
    FIELD_SLICE: ClassVar[str] = "field_slice"
    TABLE_ROW_SLICE: ClassVar[str] = "table_row_slice"
    TABLE_COLUMN_SLICE: ClassVar[str] = "table_column_slice"
    _noun: ClassVar[str] = "indices"

    def __init__(
        self, vocab_size: int, embedding_size: int, param_init: InitializerLike = "normal",
        target: Literal["CPU", "DEVICE"] = "CPU", slice_mode: str = "batch_slice", manual_shapes: Any = None,
        max_norm: float | None = None, sparse: bool = True, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(vocab_size, embedding_size)
        where = self.cls_name
        self.target = checks.one_of(where, "target", target, ("CPU", "DEVICE"))
        self.sparse = checks.boolean(where, "sparse", sparse)
        self.slice_mode, self.manual_shapes = slice_mode, manual_shapes
        self.max_norm = None if max_norm is None else checks.number(where, "max_norm", max_norm, above=0)
        table = initializer(param_init, (self.vocab_size, self.embedding_size), dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, indices: Tensor) -> Tensor:
        """Look up the rows of `indices`."""
        rows = self._rows(self._ids(indices))
        return rows if self.max_norm is None else clip_by_norm(rows, self.max_norm, -1)


class MultiFieldEmbeddingLookup(EmbeddingLookup):
    """Look up the features of each row, weigh them, and join those of one field.

    Args:
        vocab_size, embedding_size, param_init, target, slice_mode, max_norm, sparse, dtype: As in `EmbeddingLookup`.
        field_size: Number of fields.
        feature_num_list: How the table would be sharded over devices; without effect.
        operator: "SUM", "MAX", or "MEAN": the sum divided by that of the weights.

    Inputs: input_indices, ints in [0, vocab_size), input_values, the weights, and field_ids, ints in [0, field_size),
        each of shape (batch, features).
    Returns: Shape (batch, field_size, embedding_size); 0 for a field without features.
    Raises: ValueError: An argument is out of range. TypeError: The field ids are no integers.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> table = nn.MultiFieldEmbeddingLookup(9, 1, 2, param_init="ones")
        >>> ids, values, fields = mixtrain.Tensor([[1, 2]]), mixtrain.Tensor([[0.5, 3.0]]), mixtrain.Tensor([[1, 1]])
        >>> table(ids, values, fields).asnumpy().tolist()
        [[[0.0], [3.5]]]
    """

    OPERATOR_SUM: ClassVar[str] = "SUM"
    OPERATOR_MEAN: ClassVar[str] = "MEAN"
    OPERATOR_MAX: ClassVar[str] = "MAX"

    def __init__(
        self, vocab_size: int, embedding_size: int, field_size: int, param_init: InitializerLike = "normal",
        target: Literal["CPU", "DEVICE"] = "CPU", slice_mode: str = "batch_slice", feature_num_list: Any = None,
        max_norm: float | None = None, sparse: bool = True, operator: Literal["SUM", "MAX", "MEAN"] = "SUM",
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__(
            vocab_size, embedding_size, param_init, target, slice_mode, feature_num_list, max_norm, sparse, dtype
        )
        self.field_size = checks.integer(self.cls_name, "field_size", field_size, at_least=1)
        self.operator = checks.one_of(self.cls_name, "operator", operator, ("SUM", "MAX", "MEAN"))

    def construct(  # type: ignore[override]
        self, input_indices: Tensor, input_values: Tensor, field_ids: Tensor
    ) -> Tensor:
        """Return the vector of each field."""
        for name, value in (("indices", input_indices), ("values", input_values), ("field_ids", field_ids)):
            if len(value.shape) != 2:
                raise checks.fail_value(
                    self.cls_name, f"{name} must have shape (rows, features)", tuple(value.shape), f"{name}[None]"
                )
        rows = super().construct(input_indices)
        values = keras.ops.cast(backend.to_tensor(input_values), rows.dtype)
        rows = rows * values[..., None]
        fields = backend.to_tensor(field_ids)
        if keras.backend.standardize_dtype(fields.dtype) not in ("int32", "int64"):
            raise checks.fail_type(self.cls_name, "field_ids must be int32", field_ids, "field_ids.astype(int32)")
        member = keras.ops.one_hot(keras.ops.cast(fields, "int32"), self.field_size, dtype=rows.dtype)
        if self.operator == "MAX":
            inside = member[..., None] > 0
            largest = keras.ops.max(keras.ops.where(inside, rows[:, :, None], -math.inf), axis=1)
            return keras.ops.where(keras.ops.any(inside, axis=1), largest, 0.0)
        total = keras.ops.einsum("bfs,bfe->bse", member, rows)
        if self.operator == "SUM":
            return total
        return keras.ops.divide_no_nan(total, keras.ops.einsum("bfs,bf->bs", member, values)[..., None])


serve_names(__name__)
