"""A training loop in PyTorch's words: autocast, GradScaler, clipping, accumulation, in the same order of calls.

Three interleaved spirals are told apart, offline, by the same network three times: by a plain loop in float32; by that
loop with the lines that mixed precision adds; and by a loop that also sums micro-batches and clips. Gradients are
values here: a function returns them where PyTorch writes them into parameters, and nothing has to be set to zero.

    python examples/pytorch_style_loop.py --steps 300
"""

from __future__ import annotations

import argparse

import numpy as np

import mixtrain as ms
from mixtrain import amp, nn, ops

MICRO_BATCHES = 4
LARGEST_NORM = 1.0


def spirals(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` points on three arms, float32 (count, 2), and their arms, int32 (count,)."""
    rng = np.random.default_rng(0)
    arm, radius = rng.integers(0, 3, count), rng.uniform(0.1, 1.0, count)
    angle = 4.0 * radius + arm * 2.0 * np.pi / 3.0 + rng.normal(0.0, 0.05, count)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return points.astype(np.float32), arm.astype(np.int32)


def small_numbers() -> None:
    """Show why float16 alone is not enough: a small number added to a larger one is lost."""
    large, smaller = ms.Tensor(2.0**-3, ms.float32), ms.Tensor(2.0**-14, ms.float32)
    in_half = ops.cast(large, ms.float16) + ops.cast(smaller, ms.float16)
    next_half = ops.cast(large, ms.float16) + ops.cast(ms.Tensor(2.0**-13, ms.float32), ms.float16)
    print(f"float32: 2**-3 + 2**-14 = {float(large + smaller):.6f}")
    print(f"float16: 2**-3 + 2**-14 = {float(in_half):.6f}")
    print(f"float16: 2**-3 + 2**-13 = {float(next_half):.6f}")


class Run:
    """A network, its loss, its optimizer and the points that it learns."""

    def __init__(self, points: np.ndarray, arms: np.ndarray) -> None:
        ms.set_seed(1)
        self.points, self.arms = points, arms
        self.net = nn.SequentialCell(nn.Dense(2, 64), nn.Tanh(), nn.Dense(64, 64), nn.Tanh(), nn.Dense(64, 3))
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = nn.Adam(self.net.trainable_params(), learning_rate=0.01)

    def batches(self, count: int, size: int):
        """Yield `count` batches of `size` points, the same ones for every run."""
        rng = np.random.default_rng(2)
        for _ in range(count):
            chosen = rng.integers(0, len(self.points), size)
            yield ms.Tensor(self.points[chosen]), ms.Tensor(self.arms[chosen])

    def accuracy(self) -> float:
        """Return the share of points whose arm is found."""
        return float(np.mean(self.net(ms.Tensor(self.points)).asnumpy().argmax(axis=1) == self.arms))


def train_plainly(run: Run, steps: int) -> None:
    """The loop that everybody knows."""
    net, loss_fn, optimizer = run.net, run.loss_fn, run.optimizer

    def forward(data, target):
        output = net(data)
        loss = loss_fn(output, target)
        return loss

    backward = ms.value_and_grad(forward, None, optimizer.parameters)

    @ms.jit
    def step(data, target):
        loss, grads = backward(data, target)  # loss.backward()
        optimizer(grads)                      # optimizer.step()
        return loss                           # optimizer.zero_grad(): there is nothing to set to zero

    for data, target in run.batches(steps, 64):
        step(data, target)


def train_with_mixed_precision(run: Run, steps: int) -> amp.GradScaler:
    """The same loop with what mixed precision adds: autocast, scale, and the scaler's step and update."""
    net, loss_fn, optimizer = run.net, run.loss_fn, run.optimizer
    scaler = amp.GradScaler(growth_interval=100)

    def forward(data, target):
        with amp.autocast():
            output = net(data)
            loss = loss_fn(output, target)
        return scaler.scale(loss), loss

    backward = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    @ms.jit
    def step(data, target):
        (_, loss), grads = backward(data, target)  # scaler.scale(loss).backward()
        scaler.step(optimizer, grads)              # scaler.step(optimizer)
        scaler.update()                            # scaler.update()
        return loss                                # optimizer.zero_grad()

    for data, target in run.batches(steps, 64):
        step(data, target)
    return scaler


def train_with_accumulation_and_clipping(run: Run, steps: int) -> amp.GradScaler:
    """Several micro-batches make one iteration; their scaled gradients are summed, then unscaled, clipped, applied."""
    net, loss_fn, optimizer = run.net, run.loss_fn, run.optimizer
    scaler = amp.GradScaler(growth_interval=100)

    def forward(data, target):
        with amp.autocast():
            output = net(data)
            loss = loss_fn(output, target) / MICRO_BATCHES
        return scaler.scale(loss)

    backward = ms.jit(ms.grad(forward, None, optimizer.parameters))

    @ms.jit
    def finish(total):
        grads = scaler.unscale_(total, optimizer)              # scaler.unscale_(optimizer)
        grads = ops.clip_by_global_norm(grads, LARGEST_NORM)   # clip_grad_norm_(net.parameters(), LARGEST_NORM)
        applied = scaler.step(optimizer, grads)                # scaler.step(optimizer)
        scaler.update()                                        # scaler.update()
        return applied

    total = None
    for number, (data, target) in enumerate(run.batches(steps * MICRO_BATCHES, 16), start=1):
        grads = backward(data, target)  # scaler.scale(loss).backward()
        total = grads if total is None else tuple(old + new for old, new in zip(total, grads))
        if number % MICRO_BATCHES == 0:
            finish(total)
            total = None                # optimizer.zero_grad()
    return scaler


def main() -> dict[str, float]:
    """Run all three loops; return the accuracy of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    small_numbers()
    accuracies = {}
    for train in (train_plainly, train_with_mixed_precision, train_with_accumulation_and_clipping):
        run = Run(*spirals(1200))
        scaler = train(run, steps)
        accuracies[train.__name__] = run.accuracy()
        ending = "" if scaler is None else f", loss scale {scaler.get_scale():g}"
        print(f"{train.__name__}: accuracy {accuracies[train.__name__]:.3f}{ending}")
    return accuracies


if __name__ == "__main__":
    main()
