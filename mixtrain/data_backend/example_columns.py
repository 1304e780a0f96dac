"""The columns to read from examples in record files, and the error for unreadable records."""

from __future__ import annotations

import dataclasses
from typing import Literal

Kind = Literal["bytes", "float", "int"]


class UnreadableRecord(ValueError):
    """A record is damaged, or lacks an expected feature."""


@dataclasses.dataclass(frozen=True)
class ExampleColumn:
    """One column of the rows.

    Attributes:
        name: The name of the feature.
        kind: The kind of the feature's values.
        dtype: The dtype of the values in rows, "string" for text.
        shape: The shape of a row's value, with at most one -1; None: one dimension of any size.
    """

    name: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...] | None = None
