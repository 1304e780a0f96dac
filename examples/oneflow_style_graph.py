"""OneFlow's AMP tutorial in mixtrain: a graph class with a scaler trains a small network, one compiled call a step.

The calls come in the tutorial's order: device, network, loss and optimizer; a graph that enables AMP and sets a
gradient scaler; a hundred steps on random rows.

    python examples/oneflow_style_graph.py --dtype float16
"""

from __future__ import annotations

import argparse

import numpy as np

import mixtrain
import mixtrain.nn as nn
from mixtrain import amp


class CustomGraph(nn.Graph):
    """One training step in mixed precision; returns the logits."""

    def __init__(self, model: nn.Cell, loss_fn: nn.Cell, optimizer: nn.Optimizer, dtype: str) -> None:
        super().__init__()
        self.model = model
        self.loss_fn = loss_fn
        self.add_optimizer(optimizer)
        self.config.enable_amp(True, dtype=dtype)
        grad_scaler = amp.GradScaler(
            init_scale=2**12,
            growth_factor=2.0,
            backoff_factor=0.5,
            growth_interval=1000,
        )
        self.set_grad_scaler(grad_scaler)
        self.grad_scaler = grad_scaler

    def build(self, x, y):
        """Map rows (N, 256) to logits (N, 10), and say what is differentiated."""
        y_pred = self.model(x)
        loss = self.loss_fn(y_pred, y)
        self.backward(loss)
        return y_pred


class EvalGraph(nn.Graph):
    """The network alone: a graph without an optimizer runs in inference mode."""

    def __init__(self, model: nn.Cell) -> None:
        super().__init__()
        self.model = model

    def build(self, x):
        """Map rows (N, 256) to logits (N, 10)."""
        return self.model(x)


def main() -> tuple[float, float]:
    """Train; return the loss of the first and of the last step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"], help="the half-precision dtype")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    mixtrain.set_seed(1)
    print(f"Using {mixtrain.get_context('device_target')} device")

    model = nn.SequentialCell(
        nn.Dense(256, 128),
        nn.ReLU(),
        nn.Dense(128, 10),
    )
    model.set_train()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.SGD(model.trainable_params(), learning_rate=1e-3)

    graph_model = CustomGraph(model, loss_fn, optimizer, options.dtype)
    print(graph_model.precision_report()["model"], end="\n\n")

    rows = np.random.default_rng(0)
    losses = []
    for _ in range(options.steps):
        x = rows.standard_normal((128, 256)).astype(np.float32)
        y = np.ones(128, np.int32)
        y_pred = graph_model(x, y)
        losses.append(float(loss_fn(y_pred, mixtrain.Tensor(y))))

    print(f"loss {losses[0]:.4f} at first, {losses[-1]:.4f} after {options.steps} steps")
    print(f"loss scale {graph_model.grad_scaler.get_scale():g}")
    logits = EvalGraph(model)(rows.standard_normal((128, 256)).astype(np.float32))
    print(f"class 1 is the answer for {int((logits.numpy().argmax(axis=1) == 1).sum())} of 128 new rows")
    return losses[0], losses[-1]


if __name__ == "__main__":
    main()
