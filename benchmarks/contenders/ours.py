"""Create and train a `Model` with a contender's level, loss scaling and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.contender import Contender, Round
from mixtrain import Callback, DynamicLossScaleManager, FixedLossScaleManager, Model

SCALING: dict[str, Callable[[], dict[str, Any]]] = {
    "level": dict,
    "none": lambda: {"loss_scale_manager": None},
    "fixed": lambda: {"loss_scale_manager": FixedLossScaleManager(1024.0)},
    "dynamic": lambda: {"loss_scale_manager": DynamicLossScaleManager(2**10)},
}


class Counter(Callback):
    """Count the steps, without setting `observes_only`."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def on_train_step_end(self, run_context: Any) -> None:
        """Count a step."""
        self.steps += 1


def trained(contender: Contender, network: Any, loss: Any, optimizer: Any, data: Any) -> Round:
    """Create a `Model` and return a function that trains it for a round.

    Args:
        contender: The contender.
        network: A Keras network or a Cell.
        loss: Its loss.
        optimizer: Its optimizer.
        data: The batches of a round.
    """
    metrics = ["accuracy"] if contender.accuracy else None
    model = Model(network, loss, optimizer, metrics, **_precision(contender), **SCALING[contender.scaling]())
    callbacks = [Counter()] if contender.callback else None
    return lambda: model.train(1, data, callbacks=callbacks, dataset_sink_mode=contender.sink, verbose=0)


def _precision(contender: Contender) -> dict[str, Any]:
    level = contender.level or ("O0" if contender.dtype == "float32" else "O2")
    return {"amp_level": level} if level in ("O0", "auto") else {"amp_level": level, "cast_model_type": contender.dtype}
