"""Forks after something of the backend was used, or not; prints what training gives in the child, then in the parent.

Called as ``python -m tests.train.fork_worker KIND``.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from typing import Any

import keras
import numpy as np

import mixtrain

X = np.random.default_rng(0).standard_normal((32, 6)).astype(np.float32)
DATA = [(X[start : start + 8], X[start : start + 8].sum(1, keepdims=True)) for start in range(0, 32, 8)]


def made() -> mixtrain.Model:
    """Return a Model."""
    mixtrain.set_seed(1)
    network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    scale = mixtrain.DynamicLossScaleManager(2**10)
    return mixtrain.Model(network, "mse", "adam", amp_level="O2", loss_scale_manager=scale)


def losses(model: mixtrain.Model | None = None) -> list[float]:
    """Return the losses of a Model, of a new one without."""
    return list((model or made()).train(2, DATA, verbose=0)["loss"])


def report(queue: Any, model: mixtrain.Model | None) -> None:
    """Put losses, or an error's message."""
    try:
        queue.put(losses(model))
    except RuntimeError as error:
        queue.put(str(error))


def main(kind: str) -> None:
    """Fork and train."""
    model = None if kind == "imported" else made()
    if kind == "trained":
        losses()
    context = multiprocessing.get_context("spawn" if kind == "spawned" else "fork")
    queue = context.SimpleQueue()
    process = context.Process(target=report, args=(queue, None if kind == "spawned" else model))
    process.start()
    result = queue.get()
    process.join()
    print(json.dumps({"child": result, "parent": losses()}))


if __name__ == "__main__":
    main(sys.argv[1])
