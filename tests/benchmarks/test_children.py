"""The line protocol, from both sides, and which interpreter a peer gets."""

from __future__ import annotations

import io
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.child import serve
from benchmarks.children import Child, ChildFailed, Interpreters, start_child
from benchmarks.contender import Contender, as_text, from_text
from benchmarks.workloads import LENET, MLP

FAKE = """
import json, os, sys
print(json.dumps({"versions": {"fake": "1.0"}}), flush=True)
for number, line in enumerate(sys.stdin):
    if line == "fall\\n":
        print("the last words", file=sys.stderr)
        sys.exit(3)
    print(json.dumps({"seconds": number + 0.5, "peak_bytes": 7, "asked": line.strip(), "at": os.getcwd()}), flush=True)
"""


@pytest.fixture
def fake() -> Iterator[Child]:
    """A child that answers without training."""
    with Child([sys.executable, "-c", FAKE], "the fake") as child:
        yield child


def test_what_a_child_is_told_survives_the_command_line() -> None:
    request = (Contender("x", "keras", "bfloat16", jit=True, steps=3), LENET, 7)
    assert from_text(as_text(*request)) == request


@pytest.mark.slow
def test_the_childs_side_answers_each_question_with_a_line() -> None:
    done: list[str] = []

    def build() -> Any:
        done.append("build")

        def prepare() -> Any:
            done.append("prepare")
            return lambda: done.append("round")

        return prepare

    answers = io.StringIO()
    serve(build, io.StringIO("prepare\nround\nround\nforget\n"), answers)
    assert done == ["build", "prepare", "round", "round"]
    first, *others = map(json.loads, answers.getvalue().splitlines())
    assert "numpy" in first["versions"]
    assert len(others) == 4
    assert all(answer["seconds"] >= 0 and answer["peak_bytes"] > 2**20 for answer in others)


def test_the_parent_reads_versions_seconds_and_bytes(fake: Child) -> None:
    assert fake.prepare() == 0.5
    assert fake.round() == 1.5
    assert fake.ask("forget")["peak_bytes"] == 7
    assert fake.ask("round")["asked"] == "round"
    assert fake.versions == {"fake": "1.0"}


def test_a_child_runs_in_a_folder_of_its_own_that_goes_with_it(fake: Child) -> None:
    folder = fake.ask("round")["at"]
    assert folder != os.getcwd() and os.path.isdir(folder)
    fake.close()
    assert not os.path.exists(folder)


def test_a_child_runs_the_checkout_that_it_is_given(tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere.py").write_text(FAKE.replace('"1.0"', '"of the other checkout"'))
    with Child([sys.executable, "-m", "elsewhere"], "the fake", root=tmp_path) as child:
        assert child.versions == {"fake": "of the other checkout"}


def test_a_child_that_falls_is_named_with_its_last_words(fake: Child) -> None:
    with pytest.raises(ChildFailed, match=r"process of the fake ended \(3\):\nthe last words"):
        fake.ask("fall")
    with pytest.raises(ChildFailed, match="the fake"):
        fake.round()


def test_a_peer_gets_the_named_interpreter_then_the_environments_then_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCHMARKS_TORCH_PYTHON", raising=False)
    monkeypatch.setattr("benchmarks.children.importlib.util.find_spec", lambda package: None)
    assert Interpreters({"torch": None}).of("torch") is None
    monkeypatch.setattr("benchmarks.children.importlib.util.find_spec", lambda package: object())
    assert Interpreters().of("torch") == sys.executable
    monkeypatch.setenv("BENCHMARKS_TORCH_PYTHON", "theirs")
    assert Interpreters().of("torch") == "theirs"
    assert Interpreters({"torch": "mine"}).of("torch") == "mine"
    assert Interpreters().of(None) == sys.executable


@pytest.mark.slow
def test_a_real_child_trains_and_what_it_prints_does_not_reach_the_protocol() -> None:
    contender = Contender("mixtrain O0", "mixtrain", scaling="none")
    with start_child(contender, MLP, 1, sys.executable) as child:
        assert "mixtrain" in child.versions and "tensorflow" in child.versions
        before = child.ask("forget")["peak_bytes"]
        assert child.prepare() > 0 and child.round() > 0
        assert child.ask("round")["peak_bytes"] > before
