"""Whether all gradients are finite: each of them counts, small or large, and huge finite numbers are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import DeviceInfo
from tests.backends import ON_TENSORFLOW

SHAPES = ((3,), (), (200, 100), (2, 2), (0, 4), (4,))
FORMATS = ("float32", "float32", "float32", "float16", "float32", "bfloat16")
HUGE = {"float32": 3e38, "float16": 6e4, "bfloat16": 3e38}


@pytest.mark.parametrize("place", [0, 1, 2, 3, 5])
def test_small_and_large_gradients_of_several_formats_are_all_looked_at(place: int) -> None:
    arrays = [np.full(shape, HUGE[name], np.float32) for shape, name in zip(SHAPES, FORMATS, strict=True)]

    def finite() -> bool:
        tensors = [backend.to_tensor(array, name) for array, name in zip(arrays, FORMATS, strict=True)]
        return bool(backend.all_finite([None, *tensors, backend.to_tensor(np.array([7], np.int32))]))

    assert finite()
    for bad in (np.inf, -np.inf, np.nan):
        arrays[place][(-1,) * len(SHAPES[place])] = bad
        assert not finite()


@pytest.mark.skipif(ON_TENSORFLOW, reason="there a device has no code of its own for it")
@pytest.mark.parametrize("bad", [None, np.inf, np.nan])
def test_a_gpu_finds_the_norm_and_the_same_counts_without_a_branch(
    bad: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    draw = np.random.default_rng(0)
    gradients = [backend.to_tensor(draw.standard_normal(shape, np.float32)) for shape in ((300, 70), (5,), (2, 3, 4))]
    if bad is not None:
        gradients[2] = gradients[2].at[1, :2, 0].set(bad)

    def found(*gradients: Any) -> Any:
        _, finite, norm = backend.check_gradients(gradients, [])
        return finite, norm, backend.non_finite_counts([None, *gradients], finite)

    results = {}
    for kind in ("CPU", "GPU"):
        info = DeviceInfo(kind, kind, fast_bfloat16=False)  # type: ignore[arg-type]
        monkeypatch.setattr("mixtrain.backend.jax.gradient.describe_device", lambda info=info: info)
        program = str(jax.make_jaxpr(lambda *values: found(*values))(*gradients))
        assert ("cond[" in program) == (kind == "CPU")
        results[kind] = [np.asarray(value) for value in found(*gradients)]
    for one, other in zip(results["CPU"], results["GPU"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert results["GPU"][2].tolist() == [0, 0, 0, 0 if bad is None else 2]
