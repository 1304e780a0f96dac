"""What is asked of the examples in record files, and the error that says which of it is not there."""

from __future__ import annotations

import dataclasses
from typing import Literal

Kind = Literal["bytes", "float", "int"]


class UnreadableRecord(ValueError):
    """A record is damaged, or does not hold what it should."""


@dataclasses.dataclass(frozen=True)
class ExampleColumn:
    """One column of the rows.

    Attributes:
        name: The name of the feature.
        kind: What the feature holds.
        dtype: What the rows hold: a number format, or "string" for text.
        shape: The shape of a row's value, with at most one -1; None: one dimension of any size.
    """

    name: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...] | None = None
