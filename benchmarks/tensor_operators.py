"""Time operators on Tensors in PyNative mode against the same `keras.ops` calls on backend tensors.

    python -m benchmarks.tensor_operators
    KERAS_BACKEND=jax python -m benchmarks.tensor_operators --print-only

The tensors are small, so the time is that of the call, not of the arithmetic.
"""

from __future__ import annotations

from typing import Final

import keras
import numpy as np

import mixtrain
from benchmarks.call_pairs import Call, CallPairs


def calls() -> dict[str, tuple[Call, Call]]:
    """Return, by operator, the call on Tensors and the same call on backend tensors."""
    values = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)
    a, b = keras.ops.convert_to_tensor(values[0]), keras.ops.convert_to_tensor(values[1])
    x, y = mixtrain.Tensor(values[0]), mixtrain.Tensor(values[1])
    return {
        "`x + y`": (lambda: x + y, lambda: keras.ops.add(a, b)),
        "`x * y`": (lambda: x * y, lambda: keras.ops.multiply(a, b)),
        "`x @ y`": (lambda: x @ y, lambda: keras.ops.matmul(a, b)),
        "`ops.relu(x)`": (lambda: mixtrain.ops.relu(x), lambda: keras.ops.relu(a)),
        "`x.mean()`": (lambda: x.mean(), lambda: keras.ops.mean(a)),
        "`x.reshape(2, 8)`": (lambda: x.reshape(2, 8), lambda: keras.ops.reshape(a, (2, 8))),
    }


PAIRS: Final = CallPairs(
    "tensor_operators", "operator", "tensors of shape (4, 4), float32", "mixtrain.Tensor", "keras.ops", 1.5, calls
)


def main() -> None:
    """Measure in PyNative mode, and write the record and the table."""
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    PAIRS.main(str(__doc__).splitlines()[0])


if __name__ == "__main__":
    main()
