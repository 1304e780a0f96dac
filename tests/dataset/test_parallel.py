"""Functions applied by several threads: results in order, failures in their place."""

from __future__ import annotations

import threading
import time

import pytest

from mixtrain.dataset.parallel import adaptive_map


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_items(workers):
    def slow(group):
        time.sleep(0.002 * (group[0] % 3 == 0))
        return [2 * item for item in group]

    assert list(adaptive_map(slow, iter(range(100)), workers)) == [2 * item for item in range(100)]


@pytest.mark.parametrize("workers", [1, 3])
def test_what_comes_before_a_failure_is_given(workers):
    def divided(group):
        return [60 // (50 - item) for item in group]

    results = adaptive_map(divided, iter(range(100)), workers)
    assert [next(results) for _ in range(50)] == [60 // (50 - item) for item in range(50)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_items_before_one_that_cannot_be_read_are_worked_on():
    def items():
        yield from range(20)
        raise KeyError("no more")

    results = adaptive_map(lambda group: [-item for item in group], items(), 2)
    assert [next(results) for _ in range(20)] == [-item for item in range(20)]
    with pytest.raises(KeyError):
        next(results)


def test_slow_items_are_not_read_far_ahead():
    read = []

    def items():
        for item in range(100):
            read.append(item)
            yield item

    results = adaptive_map(lambda group: [time.sleep(0.005) for _ in group], items(), 2)
    for _ in range(6):
        next(results)
    assert len(read) <= 6 + 2 * 2


def test_what_takes_very_little_time_is_computed_where_it_is_read_and_what_takes_more_in_threads() -> None:
    def quick(group: list[int]) -> list[tuple[int, int]]:
        return [(item, threading.get_ident()) for item in group]

    def slow(group: list[int]) -> list[tuple[int, int]]:
        time.sleep(0.001 * len(group))
        return quick(group)

    for function, here in ((quick, True), (slow, False)):
        results = list(adaptive_map(function, iter(range(40)), 4))
        assert [item for item, _ in results] == list(range(40))
        assert all(thread == threading.get_ident() for _, thread in results[8:]) == here


def test_what_takes_very_little_time_is_computed_for_many_items_at_once():
    sizes = []

    def quick(group):
        sizes.append(len(group))
        return group

    assert list(adaptive_map(quick, iter(range(100)), 2)) == list(range(100))
    assert sum(sizes) == 100 and max(sizes) > 8
