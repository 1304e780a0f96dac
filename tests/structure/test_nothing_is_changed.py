"""Importing and using mixtrain changes nothing of other libraries or of the process, and Keras users see no Tensor."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.structure.scripts.process_state import Same, differences

pytestmark = pytest.mark.slow

# Keras, TensorFlow and h5py have set these in the process of the tests; a fresh process starts without them.
_SET_BY_LIBRARIES = {
    "ENABLE_RUNTIME_UPTIME_TELEMETRY", "HDF5_PLUGIN_PATH", "TF2_BEHAVIOR", "TF_CPP_MIN_LOG_LEVEL", "TPU_ML_PLATFORM",
    "TPU_ML_PLATFORM_VERSION",
}


def _run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in _SET_BY_LIBRARIES}
    done = subprocess.run(
        [sys.executable, "-m", f"tests.structure.scripts.{script}", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def test_libraries_and_process_are_as_before_after_training_and_a_mindspore_script() -> None:
    lines = _run("compare_states").stdout.splitlines()
    changes = [line for line in lines if line.startswith("changed by ")]
    assert not changes, "\n" + "\n".join(changes)
    looked_at = next(int(line.split()[-1]) for line in lines if line.startswith("looked at "))
    assert looked_at > 10_000


def test_a_model_with_a_keras_network_never_makes_a_tensor() -> None:
    lines = _run("count_tensors").stdout.splitlines()
    assert "Keras network: 0" in lines
    assert "Tensor(1.0) + 1: 2" in lines


def test_a_process_that_imports_mixtrain_first_is_like_one_that_imports_keras() -> None:
    ours, keras = _run("import_first", "mixtrain"), _run("import_first", "keras")
    result, expected = ((json.loads(item.stdout.splitlines()[-1])) for item in (ours, keras))
    changes = differences(expected, result)
    assert not changes, "\n" + "\n".join(changes)
    assert result["streams as before"] and result["files as before"]
    assert _messages(keras.stderr) <= _messages(ours.stderr)


def test_importing_mixtrain_loads_little_that_keras_has_not_and_collects_no_garbage() -> None:
    result = json.loads(_run("import_cost").stdout.splitlines()[-1])
    # JAX's own `jax.extend` is small, and h5py, SciPy, Pillow and matplotlib wait until they are used.
    assert set(result["packages"]) <= {"mixtrain", "safetensors", "jax"}
    # A few before the pause and after; some 50 without it, of which one goes through all of TensorFlow's objects.
    assert result["collections"] < 15
    assert result["collects after"]


def _messages(text: str) -> set[str]:
    """Return the lines of standard error without times and process numbers, which are padded to a width."""
    return {re.sub(r" *\d+", " 0", line) for line in text.splitlines() if line}


def test_messages_of_processes_whose_numbers_have_other_lengths_are_alike() -> None:
    assert _messages("I0000 1.5    9999 port.cc:31] on") == _messages("I0000 12.25   10003 port.cc:31] on")


class _Patched:
    def method(self) -> int:
        return 1


def test_differences_are_named() -> None:
    def state() -> dict[str, Any]:
        return {"same": 1, "method": Same(vars(_Patched)["method"])}

    before = state() | {"gone": 2, "other": [1]}
    assert differences(before, dict(before)) == []
    original = _Patched.method
    _Patched.method = lambda self: 2  # type: ignore[method-assign]
    try:
        result = differences(before, state() | {"other": [2], "new": 3})
    finally:
        _Patched.method = original  # type: ignore[method-assign]
    assert [line.partition(":")[0] for line in result] == ["method", "gone", "other", "new"]
    assert "other: was [1], is [2]" in result
