"""What `Model.predict` costs on a small network beside its compiled call alone, a NumPy batch a call.

    python -m benchmarks.prediction
    KERAS_BACKEND=jax python -m benchmarks.prediction --print-only

The compiled call alone is what the backend compiled, given the batch as a tensor: JAX would read a NumPy array given to
a compiled function while Python goes on, and perhaps writes the next batch into it.
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
    """Return a prediction of a Model of a network, and the compiled call that it comes to."""
    batch = np.random.default_rng(0).standard_normal((MLP.batch, *MLP.shape)).astype(np.float32)
    model = mixtrain.Model(network, amp_level=level, cast_model_type=mixtrain.bfloat16)
    model.predict(batch)
    compiled = model._compiled.predicting.compiled()
    return lambda: model.predict(batch), lambda: compiled(keras.ops.convert_to_tensor(batch))


def calls() -> dict[str, tuple[Call, Call]]:
    """Return, by network, a prediction and the compiled call alone."""
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
