"""Time `Model.predict` on a small network against its compiled call alone, one NumPy batch per call.

    python -m benchmarks.prediction
    KERAS_BACKEND=jax python -m benchmarks.prediction --print-only

The compiled call alone gets its batch as a tensor: JAX may read a NumPy argument of a compiled function after the call
has returned, when the next batch may already be written into the array.
"""

from __future__ import annotations

from typing import Any, Final

import keras
import numpy as np

import mixtrain
from benchmarks.call_pairs import Call, CallPairs
from benchmarks.networks import in_cells, in_keras
from benchmarks.workloads import MLP


def pair_of(network: Any, level: str = "O0") -> tuple[Call, Call]:
    """Return a call of `Model.predict` on a network, and the compiled call that it runs."""
    batch = np.random.default_rng(0).standard_normal((MLP.batch, *MLP.shape)).astype(np.float32)
    model = mixtrain.Model(network, amp_level=level, cast_model_type=mixtrain.bfloat16)
    model.predict(batch)
    compiled = model._compiled.predicting.compiled()
    return lambda: model.predict(batch), lambda: compiled(keras.ops.convert_to_tensor(batch))


def calls() -> dict[str, tuple[Call, Call]]:
    """Return, by network, the call of `Model.predict` and the compiled call alone."""
    return {
        "a Keras model": pair_of(in_keras.mlp(MLP)),
        "a Keras model, O2 bfloat16": pair_of(in_keras.mlp(MLP), "O2"),
        "a Cell": pair_of(in_cells.mlp(mixtrain.nn, MLP)),
        "a Cell, O2 bfloat16": pair_of(in_cells.mlp(mixtrain.nn, MLP), "O2"),
    }


PAIRS: Final = CallPairs(
    "prediction", "network", MLP.title, "Model.predict", "the compiled call", 1.1, calls
)


if __name__ == "__main__":
    PAIRS.main(__doc__.splitlines()[0])
