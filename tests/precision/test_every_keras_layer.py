"""Every layer class that Keras exports, planned and trained for a step at every level: finite, as reported, undone."""

from __future__ import annotations

import functools
import inspect
import math
import os
import re
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend
from mixtrain.precision.families import FLOAT32_ONLY
from tests.backends import ON_TENSORFLOW, compiled
from tests.precision.layer_table import (
    ENTRIES,
    GROUPS,
    KERAS_FAILS,
    LEFT_OUT,
    REFUSED_ON_JAX,
    Entry,
    batch_of,
    group_of,
    network_of,
)
from tests.precision.test_zoo import outputs_of, state_of
from tests.precision.zoo_trace import contradicted, recording, uncalled

LEVELS = [
    ("O0", "float16"), *((level, half) for level in ("O1", "O2", "O3") for half in ("float16", "bfloat16")),
]
# XLA takes eight minutes of a processor for all of them.
ON_REQUEST = pytest.mark.skipif(
    not ON_TENSORFLOW and not os.environ.get("MIXTRAIN_EVERY_LAYER"), reason="on JAX with MIXTRAIN_EVERY_LAYER=1"
)
# One fused operation may compute these; these augmentations call some of theirs by chance.
AT_TIMES = re.compile(r".*attention.*/(softmax|dropout)\w*|(gru|lstm)(_\d+)?/\w+|(aug_mix|rand_augment)(_\d+)?/.*")


@functools.cache
def built(group: str) -> tuple[keras.Model, list[Entry]]:
    """Return the network of a group, the same one for every level: each leaves it as it was."""
    keras.utils.clear_session(free_memory=False)
    entries = [entry for entry in ENTRIES if group_of(entry) == group]
    return network_of(entries), entries


def faults(network: keras.Model, entries: list[Entry], level: str, half: str) -> list[str]:
    """Plan a network, train it for a step and undo the plan; return what was wrong, in words."""
    inputs, label = batch_of(entries)
    batch = (inputs if len(inputs) > 1 else inputs[0], label)
    expected, state = outputs_of(network, batch[0]), state_of(network)
    configs = [layer.get_config() for layer in network.layers]
    values = [backend.to_numpy(variable) for variable in network.variables]
    manager = None if level == "O0" else mixtrain.FixedLossScaleManager(8.0)
    model = mixtrain.Model(
        network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(1e-3), amp_level=level, cast_model_type=half,
        loss_scale_manager=manager,
    )
    plan = model.precision_report()
    # O1, whose layers are half in O2 too, is compiled quicker than the backend chooses: in float16 that is XLA.
    mixtrain.set_context(jit_level="O0" if level == "O1" else "auto")
    with recording(plan) as seen:
        history = model.train(1, [batch], verbose=0)
    result = contradicted(plan, seen)
    result += [f"{path} was not called" for path in uncalled(seen) if not AT_TIMES.fullmatch(path)]
    if not math.isfinite(history["loss"][0]) or history.get("skipped_steps", [0]) != [0]:
        result.append(f"the loss is {history['loss']}, skipped steps {history.get('skipped_steps')}")
    floats = [variable for variable in network.variables if "float" in variable.dtype]
    result += [f"{v.path} is not finite" for v in floats if not np.isfinite(backend.to_numpy(v)).all()]
    if all(np.array_equal(backend.to_numpy(v), one) for v, one in zip(network.variables, values, strict=True)):
        result.append("no weight has changed")
    applied = amp.applied_plan(network)
    assert applied is not None
    applied.undo()
    for variable, value in zip(network.variables, values, strict=True):
        variable.assign(value)
    if state_of(network) != state or [layer.get_config() for layer in network.layers] != configs:
        result.append("undone, the layers are not as they were")
    if any(not np.array_equal(*pair) for pair in zip(outputs_of(network, batch[0]), expected, strict=True)):
        result.append("undone, the network computes something else")
    return result


def by_entry(entries: list[Entry], level: str, half: str) -> dict[str, Any]:
    """Return what is wrong with each of some layers, tried alone: to name those that a shared network fails for."""
    result: dict[str, Any] = {}
    for entry in entries:
        try:
            wrong: Any = faults(network_of([entry]), [entry], level, half)
        except Exception as error:
            wrong = f"{type(error).__name__}: {str(error)[:300]}"
        if wrong:
            result[", ".join(entry.classes)] = wrong
    return result


@ON_REQUEST
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64:UserWarning")  # Keras's MixUp asks JAX for it.
@pytest.mark.parametrize(("level", "half"), LEVELS)
@pytest.mark.parametrize("group", GROUPS)
def test_a_step_is_finite_as_reported_and_undone(group: str, level: str, half: str) -> None:
    network, entries = built(group)
    try:
        result = faults(network, entries, level, half)
    except Exception as error:
        built.cache_clear()
        raise AssertionError(f"{by_entry(entries, level, half)}") from error
    assert not result, by_entry(entries, level, half) or result


def test_every_class_that_keras_exports_is_in_the_table_or_left_out_for_a_reason() -> None:
    named = {getattr(keras.layers, name) for entry in ENTRIES for name in entry.classes}
    left_out = {getattr(keras.layers, name) for name in LEFT_OUT if hasattr(keras.layers, name)}
    exported = {name: kind for name, kind in vars(keras.layers).items() if inspect.isclass(kind)}
    assert [name for name, kind in exported.items() if kind not in named | left_out] == []
    assert not named & left_out and all(LEFT_OUT.values())


# They give float32, or some of it, under Keras's mixed policies too.
GIVE_FLOAT32 = ("CategoryEncoding", "HashedCrossing", "Hashing", "MaxNumBoundingBoxes")


@pytest.mark.slow
@pytest.mark.tensorflow
def test_what_is_kept_in_float32_is_what_keras_itself_does_not_compute_in_half() -> None:
    assert {getattr(keras.layers, name) for name in (*KERAS_FAILS, *GIVE_FLOAT32)} == set(FLOAT32_ONLY)
    for entry in (entry for entry in ENTRIES if entry.classes[0] in KERAS_FAILS):
        policy, words = KERAS_FAILS[entry.classes[0]]
        for item in ("mixed_float16", "mixed_bfloat16") if policy is None else (policy,):
            keras.config.set_dtype_policy(item)
            try:
                with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
                    network = network_of([entry])
                    call = compiled(functools.partial(network, training=True))
                    call(backend.to_tensor(batch_of([entry])[0][0]))
            finally:
                keras.config.set_dtype_policy("float32")


@ON_REQUEST
@pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow compiles it")
@pytest.mark.parametrize("name", REFUSED_ON_JAX)
def test_a_layer_that_jax_does_not_compile_is_named_and_trains_in_pynative_mode(name: str) -> None:
    entries = [Entry((name,), "picture", REFUSED_ON_JAX[name])]
    message = rf"\({name}\): with the JAX backend, .*Write its work into the data set, run in PYNATIVE_MODE"
    with pytest.raises(TypeError, match=message):
        faults(network_of(entries), entries, "O2", "bfloat16")
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    assert faults(network_of(entries), entries, "O2", "bfloat16") == []
