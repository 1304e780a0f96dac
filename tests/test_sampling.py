"""The quick run has every n-th row of a sampled table, not counting rows that are marked slow."""

from __future__ import annotations

import pytest

from tests.backends import quick_every, quick_only_some


def _is_quick(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("slow") is None


@quick_every(3)
@pytest.mark.parametrize("row", range(7))
def test_every_third_row_is_quick(row: int, request: pytest.FixtureRequest) -> None:
    assert _is_quick(request) == (row in (0, 3, 6))


@quick_every(2)
@pytest.mark.parametrize("row", quick_only_some(range(6), (1, 2, 5)))
def test_slow_rows_are_passed_over(row: int, request: pytest.FixtureRequest) -> None:
    assert _is_quick(request) == (row in (1, 5))


@quick_every(2)
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("second", range(3))
def test_all_values_of_two_parameters_are_among_the_quick_rows(
    first: int, second: int, request: pytest.FixtureRequest
) -> None:
    assert _is_quick(request) == ((first + second) % 2 == 0)
