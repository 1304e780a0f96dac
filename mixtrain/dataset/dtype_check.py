"""The stage that checks the dtypes of rows against `column_types`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mixtrain import checks
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage
from mixtrain.dtype import as_dtype
from mixtrain.typing import DTypeLike


class DtypeCheck(Stage):
    """The rows of the parent, whose columns must have the given dtypes."""

    row_by_row = True

    def __init__(self, where: str, parent: Stage, dtypes: Sequence[DTypeLike | None]) -> None:
        super().__init__(parent.columns, parent)
        self._where = where
        self._dtypes = tuple(as_dtype(dtype) for dtype in checks.instance(
            where, "column_types", dtypes, (list, tuple), "column_types=[mixtrain.float32]"
        ))
        if len(self._dtypes) != len(self.columns):
            raise checks.fail_value(
                where, f"column_types must have {len(self.columns)} dtypes, one for each column", dtypes, "one for each"
            )

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        for row in self.parents[0].rows(pass_seed):
            for name, dtype, value in zip(self.columns, self._dtypes, row, strict=True):
                if value.dtype != dtype:
                    raise TypeError(
                        f'{self._where}: expected {dtype.name} in column "{name}", its column_types; '
                        f"got {value.dtype}. "
                        f"Write np.{dtype.name}(value) in the source."
                    )
            yield row
