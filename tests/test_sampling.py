"""The quick run has every n-th row of a sampled table; a limited run has the tests that a seed draws."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable

import pytest

from tests import sampling
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


@quick_every(4, 1)
@pytest.mark.parametrize("row", range(6))
def test_the_first_quick_row_can_be_chosen(row: int, request: pytest.FixtureRequest) -> None:
    assert _is_quick(request) == (row in (1, 5))


@quick_every(2)
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("second", range(3))
def test_all_values_of_two_parameters_are_among_the_quick_rows(
    first: int, second: int, request: pytest.FixtureRequest
) -> None:
    assert _is_quick(request) == ((first + second) % 2 == 0)


@pytest.fixture
def run(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Return a run of three files of twelve tests, as its output."""
    for name in "abc":
        test = f"def test_{name}(n):\n    print('ran', '{name}', n)\n"
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n@pytest.mark.parametrize('n', range(12))\n{test}")

    def result(minutes: float | None, seed: str | None) -> str:
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=importlib"]
        configuration = ["-c", str(tmp_path / "none.ini"), f"--rootdir={tmp_path}"]
        pytest.main(["-q", "-s", *plugins, *configuration, str(tmp_path)], plugins=[sampling.Sampling(minutes, seed)])
        return capsys.readouterr().out

    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (tmp_path / "none.ini").write_text("[pytest]\n")
    return result


def _order(text: str) -> str:
    return "".join(re.findall(r"ran (\w)", text))


@pytest.mark.slow
def test_a_seed_draws_the_order_of_blocks_of_neighbors(run: Callable[..., str]) -> None:
    assert _order(run(None, None)) == "a" * 12 + "b" * 12 + "c" * 12
    orders = {seed: _order(run(None, seed)) for seed in "uvwxyz"}
    assert len(set(orders.values())) > 1 and _order(run(None, "u")) == orders["u"]
    for order in orders.values():
        assert sorted(order) == sorted(12 * "abc")
        assert all(f"{10 * file}" in order for file in "abc")


def test_what_the_minutes_do_not_hold_is_left_out_and_named(run: Callable[..., str]) -> None:
    text = run(0.0, "u")
    assert _order(text) == "" and "36 skipped" in text
    assert "left out: 36 tests in 3 files, of 3 files; the order is that of --sample=u" in text
    assert "test_a.py (12)" in text
    assert "left out" not in run(60.0, "u")
