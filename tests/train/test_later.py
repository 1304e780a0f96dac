"""A value that is made late is made once, and only where somebody looks."""

from __future__ import annotations

from mixtrain.train.later import Later


def test_it_is_made_by_the_first_who_asks_and_once() -> None:
    made: list[int] = []
    later = Later(lambda: made.append(1) or len(made))
    assert made == []
    assert (later.value, later.value) == (1, 1) and made == [1]
