"""Train, evaluate and use a Keras network with Model, and print how many Tensors were made.

    python -m tests.structure.scripts.count_tensors
"""

from __future__ import annotations

from typing import Any

import mixtrain
from tests.structure.scripts import programs


def main() -> None:
    """Print the count of a Keras network's training, then that of `Tensor(1.0) + 1`."""
    count = 0

    # However a Tensor is made, `__new__` is called.
    def counting(cls: type, *_: Any, **__: Any) -> Any:
        nonlocal count
        count += 1
        return object.__new__(cls)

    mixtrain.Tensor.__new__ = counting  # type: ignore[assignment, method-assign]
    programs.train_keras_network()
    print(f"Keras network: {count}")
    count = 0
    mixtrain.Tensor(1.0) + 1
    print(f"Tensor(1.0) + 1: {count}")


if __name__ == "__main__":
    main()
