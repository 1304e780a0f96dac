"""Runs whose gradients overflow on chosen steps: a tiny network, its batches, and a callback that keeps every step."""

from __future__ import annotations

from typing import Any

import numpy as np

import mixtrain
from mixtrain import Model, nn
from mixtrain.dataset import NumpySlicesDataset

# (first scale, factor, window, overflow of each step, scale after each step)
GOLDEN = [
    (16, 2, 3, "0000000", [16, 16, 32, 32, 32, 64, 64]),
    (16, 2, 3, "001000000", [16, 16, 8, 8, 8, 16, 16, 16, 32]),
    (16, 2, 3, "0011001000", [16, 16, 8, 4, 4, 4, 2, 2, 2, 4]),
    (16, 2, 2, "11111100", [8, 4, 2, 1, 1, 1, 1, 2]),
    (16, 2, 1, "0010", [32, 64, 32, 64]),
    (27, 3, 2, "1100", [9, 3, 3, 9]),
]
GOOD, BAD = 2.0**-10, 2e38


class Chain(nn.Cell):
    """Two numbers in a row: with an input of `BAD` the loss is finite and the gradient of `first` is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first = mixtrain.Parameter(np.float32(2**-10))
        self.second = mixtrain.Parameter(np.float32(2**10))

    def construct(self, x: Any) -> Any:
        return (x * self.first) * self.second


def batches(flags: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a batch for each character of `flags`; "1" overflows."""
    return [(np.full((1, 1), BAD if flag == "1" else GOOD, np.float32), np.zeros((1, 1), np.float32)) for flag in flags]


def stream(flags: str) -> NumpySlicesDataset:
    """Return the same as `batches`, as a stream of the backend's own: quicker for thousands of steps."""
    x = np.where(np.array(list(flags)) == "1", np.float32(BAD), np.float32(GOOD)).reshape(-1, 1, 1)
    return NumpySlicesDataset((x, np.zeros_like(x)), shuffle=False)


class Trace(mixtrain.Callback):
    """Keeps every step's results, and the manager's scale after every call."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []
        self.overflows: list[bool] = []
        self.scales: list[float] = []
        self.live: list[float] = []
        self.steps: list[int] = []

    def on_train_step_end(self, run_context: Any) -> None:
        arguments = run_context.original_args()
        records = arguments.step_results
        self.losses += records.loss.tolist()
        self.overflows += records.overflow.tolist()
        self.scales += records.loss_scale.tolist()
        self.steps.append(arguments.cur_step_num)
        if arguments.loss_scale_manager is not None:
            self.live.append(arguments.loss_scale_manager.get_loss_scale())


def chain_model(manager: Any, **options: Any) -> Model:
    """Return a Model of a `Chain` with momentum."""
    network = Chain()
    optimizer = nn.Momentum(network.trainable_params(), 2.0**-20, 0.5)
    return Model(network, nn.L1Loss(), optimizer, loss_scale_manager=manager, **options)


def train_chain(flags: str, manager: Any, *, sink: bool = False, **options: Any) -> Trace:
    """Train a `Chain` for one epoch and return what its steps did."""
    trace = Trace()
    model = chain_model(manager, **options)
    model.train(1, batches(flags), callbacks=trace, dataset_sink_mode=sink, verbose=0)
    return trace
