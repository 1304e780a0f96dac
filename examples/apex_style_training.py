"""NVIDIA apex's O1 and O2 in mixtrain: initialize, scale the loss, take gradients, step; the steps as papers tell them.

    python examples/apex_style_training.py --opt-level O2
"""

from __future__ import annotations

import argparse

import numpy as np

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain import amp


class Network(nn.Cell):
    """Two layers with batch normalization between them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(16, 64)
        self.norm = nn.BatchNorm1d(64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 4)

    def construct(self, x):
        """Map rows (N, 16) to logits (N, 4)."""
        return self.fc2(self.relu(self.norm(self.fc1(x))))


def make_data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (rows, 16), float32, around four centers, and the number of the center of each, int32."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((4, 16))
    labels = random.integers(0, 4, rows)
    return (centers[labels] + 0.7 * random.standard_normal((rows, 16))).astype(np.float32), labels.astype(np.int32)


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opt-level", default="O1", choices=["O0", "O1", "O2", "O3"])
    parser.add_argument("--loss-scale", default=None, help='"dynamic" or a number; the level\'s own by default')
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"], help="the half-precision dtype")
    parser.add_argument("--epochs", type=int, default=5)
    return parser.parse_args()


def main() -> tuple[float, float]:
    """Train; return the mean loss of the first and of the last epoch."""
    options = parse_arguments()
    mixtrain.set_seed(1)
    images, labels = make_data(512)
    network = Network().set_train()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)

    # The operators are wrapped (O1), or the weights become half with float32 copies (O2); the scale starts large.
    network, optimizer = amp.initialize(
        network, optimizer, opt_level=options.opt_level, loss_scale=options.loss_scale,
        cast_model_type=None if options.opt_level == "O0" else options.dtype,
    )

    def forward(x, y):
        """Compute the loss, and the loss times the scale."""
        loss = loss_fn(network(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            return scaled_loss, loss

    backward = mixtrain.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    @mixtrain.jit
    def train_step(x, y):
        """Train on a batch; return its loss and whether the update was applied."""
        (_, loss), gradients = backward(x, y)
        # Divide by the scale, look for inf and nan, update or skip, lower or raise the scale.
        return loss, optimizer.step(gradients)

    means = []
    for epoch in range(options.epochs):
        losses, applied = [], 0
        for start in range(0, len(images), 64):
            batch = mixtrain.Tensor(images[start : start + 64]), mixtrain.Tensor(labels[start : start + 64])
            loss, done = train_step(*batch)
            losses.append(float(loss))
            applied += int(done)
        means.append(float(np.mean(losses)))
        scale = "none" if optimizer.scaler is None else f"{optimizer.scaler.get_scale():g}"
        print(f"epoch {epoch + 1}: loss {means[-1]:.4f}, {applied} of {len(losses)} steps applied, loss scale {scale}")

    norm = float(sum(ops.reduce_sum(ops.square(ops.cast(value, mixtrain.float32))) for value in
                     amp.master_params(optimizer))) ** 0.5
    print(f"the parameters are {network.fc1.weight.dtype.name}; the norm of what the optimizer updates is {norm:.3f}")
    return means[0], means[-1]


if __name__ == "__main__":
    main()
