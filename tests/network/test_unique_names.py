"""Names are made unique by numbers, whatever numbers they have already."""

from __future__ import annotations

import pytest

from mixtrain.network.unique_names import unique_names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], []),
        (["a", "b"], ["a", "b"]),
        (["a", "a", "b", "a"], ["a", "a#2", "b", "a#3"]),
        (["a#2", "a", "a", "a"], ["a#2", "a", "a#3", "a#4"]),
        (["a", "a", "a#2", "a#2"], ["a", "a#2", "a#2#2", "a#2#3"]),
    ],
)
def test_a_name_that_is_taken_gets_the_lowest_free_number(names: list[str], expected: list[str]) -> None:
    assert unique_names(iter(names)) == expected
