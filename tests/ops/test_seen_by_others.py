"""NumPy, TensorFlow, JAX and Keras see their own tensors: the methods are for people who write MindSpore's names."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain as ms
from tests.engines import ON_TENSORFLOW
from tests.ops import seen_by_others

SCRIPT = pathlib.Path(seen_by_others.__file__)
VALUES = seen_by_others.VALUES


@functools.cache
def seen(*arguments: str) -> list[dict[str, Any]]:
    """Return what a process of its own prints: what is seen without TensorFlow's NumPy behaviour, then with it."""
    root = str(SCRIPT.parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=True, env=environment
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return [json.loads(line.removeprefix("FOUND ")) for line in lines]


# Some ask for facts alone, and `flip` gives back what indexing the tensor gives, a tensor, without mixtrain too.
OF_ARRAYS = sorted(set(seen_by_others.FUNCTIONS) - {"shape", "ndim", "size", "flip"})


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_numpy_treats_a_tensor_as_an_array(name: str) -> None:
    function = seen_by_others.FUNCTIONS[name]
    of_tensor, of_array = (seen_by_others.outcome(function, value) for value in (ms.Tensor(VALUES), VALUES))
    assert of_tensor == of_array


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "state"),
    [((), 0), ((), 1), (("before",), 1)] if ON_TENSORFLOW else [((), 0)],
    ids=["never on", "on after", "on before"] if ON_TENSORFLOW else ["as it is"],
)
def test_a_process_with_mixtrain_sees_what_one_without_sees(arguments: tuple[str, ...], state: int) -> None:
    without, with_mixtrain = seen()[state], seen("mixtrain", *arguments)[-1 if arguments else state]
    differing = {name for name in without if without[name] != with_mixtrain[name]}
    assert len(without) > 90 and not differing, {name: (without[name], with_mixtrain[name]) for name in differing}


@pytest.mark.tensorflow
def test_operators_outside_construct_are_tensorflow_s() -> None:
    with pytest.raises(Exception, match="cannot compute AddV2|dtype"):
        ms.Tensor(1.0, ms.float16) + ms.Tensor(1.0, ms.float32)


def test_keras_layers_and_functions_work_on_tensors_as_before() -> None:
    x = ms.Tensor(VALUES)
    assert keras.layers.Flatten()(x).shape == (2, 3)
    assert float(keras.ops.mean(x)) == pytest.approx(VALUES.mean())
    assert keras.tree.map_structure(lambda value: value, [x])[0] is x
    assert keras.Sequential([keras.layers.Dense(2)]).predict(VALUES, verbose=0).shape == (2, 2)


def test_a_parameter_is_an_array_to_numpy_too() -> None:
    parameter = ms.Parameter(VALUES)
    for name in ("mean", "sum", "max", "argmax", "sort", "cumsum", "squeeze"):
        assert (np.asarray(getattr(np, name)(parameter)) == getattr(np, name)(VALUES)).all()
        assert not type(getattr(np, name)(parameter)).__module__.startswith(("tensorflow", "jax"))
