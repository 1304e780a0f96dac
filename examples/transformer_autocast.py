"""A transformer with attention written by hand, trained under autocast with a GradScaler.

It learns, offline, to say a sequence of symbols backwards. Nothing in the network speaks of precision: under autocast
its matrix products are computed in half, also those between its layers; softmax, layer normalization and the loss in
float32. The script prints in which format the parts of an attention were computed.

    python examples/transformer_autocast.py --dtype bfloat16 --steps 150
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import mixtrain as ms
from mixtrain import amp, nn, ops

SYMBOLS, LENGTH, WIDTH, HEADS = 10, 8, 32, 4


class Attention(nn.Cell):
    """Every position looks at all others: softmax(q @ k.T / sqrt(size)) @ v in several heads."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.formats: dict[str, str] = {}

    def heads_of(self, x):
        """Return (N, LENGTH, WIDTH) as (N, HEADS, LENGTH, WIDTH / HEADS)."""
        return ops.transpose(ops.reshape(x, (-1, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def construct(self, x):
        q, k, v = (self.heads_of(layer(x)) for layer in (self.query, self.key, self.value))
        scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) / math.sqrt(WIDTH / HEADS)
        weights = ops.softmax(scores, -1)
        mixed = ops.reshape(ops.transpose(weights @ v, (0, 2, 1, 3)), (-1, LENGTH, WIDTH))
        self.formats = {
            "input": x.dtype.name, "scores": scores.dtype.name, "weights": weights.dtype.name,
            "output": mixed.dtype.name,
        }
        return self.out(mixed)


class Block(nn.Cell):
    """Attention, then two dense layers, each beside a way past it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.attention = Attention()
        self.dense = nn.SequentialCell(nn.Dense(WIDTH, 2 * WIDTH), nn.GELU(), nn.Dense(2 * WIDTH, WIDTH))

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.dense(self.norm2(x))


class Transformer(nn.Cell):
    """Symbols (N, LENGTH) to the logits of symbols (N, LENGTH, SYMBOLS)."""

    def __init__(self, blocks: int = 1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        start = np.random.default_rng(1).normal(0.0, 0.5, (LENGTH, WIDTH)).astype(np.float32)
        self.position = ms.Parameter(start, name="position")
        self.blocks = nn.SequentialCell(*[Block() for _ in range(blocks)])
        self.head = nn.Dense(WIDTH, SYMBOLS)

    def construct(self, symbols):
        return self.head(self.blocks(self.embedding(symbols) + self.position))


def batches(count: int, size: int = 64, seed: int = 0):
    """Yield random sequences and their reversals, int32 (size, LENGTH)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        symbols = rng.integers(0, SYMBOLS, (size, LENGTH)).astype(np.int32)
        yield ms.Tensor(symbols), ms.Tensor(np.ascontiguousarray(symbols[:, ::-1]))


def train(net: Transformer, dtype: str, steps: int) -> list[float]:
    """Train for some steps; return the losses."""
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.003)
    scaler = amp.GradScaler(init_scale=2.0**12, growth_interval=100, enabled=dtype == "float16")

    def forward(symbols, target):
        with amp.autocast(dtype):
            logits = ops.reshape(net(symbols), (-1, SYMBOLS))
            loss = loss_fn(logits, ops.reshape(target, (-1,)))
        return scaler.scale(loss), loss

    backward = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    @ms.jit
    def step(symbols, target):
        (_, loss), grads = backward(symbols, target)
        scaler.step(optimizer, grads)
        scaler.update()
        return loss

    net.set_train()
    return [float(step(symbols, target)) for symbols, target in batches(steps)]


def main() -> float:
    """Train and test; return the share of symbols that were said right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="bfloat16", choices=("float16", "bfloat16"))
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    ms.set_seed(3)
    net = Transformer()
    losses = train(net, options.dtype, options.steps)
    print(f"loss: {losses[0]:.3f} at the start, {losses[-1]:.3f} after {options.steps} steps")
    print("attention:", ", ".join(f"{part} {dtype}" for part, dtype in net.blocks[0].attention.formats.items()))
    net.set_train(False)
    (symbols, target), = batches(1, 256, seed=1)
    accuracy = float(np.mean(net(symbols).asnumpy().argmax(-1) == target.asnumpy()))
    print(f"accuracy: {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
