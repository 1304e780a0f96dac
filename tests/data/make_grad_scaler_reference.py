"""Reference runs of `torch.amp.GradScaler`, written by PyTorch 2.13 on a CPU.

Run it where PyTorch is installed: ``python make_grad_scaler_reference.py [target.npz]``. Two parameters of three
numbers each are pulled to targets by a squared loss of its own each, so that a target that is not finite makes a
gradient that is not; one scaler serves both losses and both optimizers (SGD with momentum, and Adam). Keys:

- ``settings``, float64 (cases, 6): init_scale, growth_factor, backoff_factor, growth_interval, micro-batches summed in
  one iteration, norm that gradients are clipped to between `unscale_` and `step` (0: not clipped, and no `unscale_`).
- ``targets``, float32 (cases, steps, micro-batches, 2, 3), and ``start``, float32 (2, 3).
- After every iteration: ``scale`` and ``tracker`` (cases, steps); ``weight`` (cases, steps, 2, 3); ``momentum``
  (cases, steps, 3) of the first optimizer; ``moment`` (cases, steps, 3), Adam's first moment.
- ``bad``: the scale after each of 200 iterations that all overflow, from 2**16 on.
- ``grown``: the scale after each of 130 good ones, interval 1, from 2**16 on, growth 2 and 3.
"""

import pathlib
import sys

import numpy as np
import torch

CASES, STEPS, MICRO, SEED = 20, 26, 3, 20261121
LEARNING_RATES, MOMENTUM = (0.05, 0.03), 0.9


def one_run(settings, targets, start):
    """Return scale, tracker, weights, momentum and moment after each iteration."""
    init_scale, growth, backoff, interval, micro, norm = settings
    scaler = torch.amp.GradScaler("cpu", init_scale, growth, backoff, int(interval))
    weights = [torch.tensor(row, requires_grad=True) for row in start]
    optimizers = [
        torch.optim.SGD(weights[:1], lr=LEARNING_RATES[0], momentum=MOMENTUM),
        torch.optim.Adam(weights[1:], lr=LEARNING_RATES[1]),
    ]
    rows = []
    for step in targets:
        for optimizer in optimizers:
            optimizer.zero_grad()
        for batch in step[: int(micro)]:
            for weight, target in zip(weights, batch):
                loss = 0.5 * ((weight - torch.tensor(target)) ** 2).sum() / micro
                scaler.scale(loss).backward()
        for weight, optimizer in zip(weights, optimizers):
            if norm:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_([weight], norm)
            scaler.step(optimizer)
        scaler.update()
        kept = [
            optimizer.state[weight].get(name, torch.zeros(3))
            for optimizer, weight, name in zip(optimizers, weights, ("momentum_buffer", "exp_avg"))
        ]
        rows.append(
            (
                scaler.get_scale(),
                scaler._get_growth_tracker(),
                torch.stack(weights).detach().numpy().copy(),
                *(kept_one.detach().numpy().copy() for kept_one in kept),
            )
        )
    return [np.stack(column) for column in zip(*rows)]


def only_scales(bad, count, **settings):
    """Return the scale after each of `count` iterations that all overflow, or none does."""
    scaler = torch.amp.GradScaler("cpu", **settings)
    weight = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scales = []
    for _ in range(count):
        scaler.scale(weight)
        weight.grad = torch.tensor(float("inf") if bad else 0.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return np.float32(scales)


def main():
    """Write every array."""
    random = np.random.default_rng(SEED)
    settings = np.stack(
        [
            2.0 ** random.integers(4, 20, CASES),
            np.where(np.arange(CASES) % 3, random.choice([2.0, 4.0, 8.0, 16.0], CASES), random.uniform(2, 16, CASES)),
            np.where(np.arange(CASES) % 3, random.choice([0.25, 0.5], CASES), random.uniform(0.25, 0.5, CASES)),
            random.permutation(np.resize(np.arange(1, 11), CASES)),
            np.resize([1, 1, 3, 3], CASES),
            np.resize([0.0, 0.7], CASES),
        ],
        axis=1,
    )
    targets = random.normal(size=(CASES, STEPS, MICRO, 2, 3)).astype(np.float32)
    for case in range(CASES):
        for step, micro, row in np.ndindex(STEPS, MICRO, 2):
            if random.random() < 0.05:
                targets[case, step, micro, row, random.integers(3)] = random.choice([np.inf, -np.inf, np.nan])
    start = random.normal(size=(2, 3)).astype(np.float32)
    runs = [one_run(row, steps, start) for row, steps in zip(settings, targets)]
    names = ("scale", "tracker", "weight", "momentum", "moment")
    arrays = {name: np.stack(column) for name, column in zip(names, zip(*runs))}
    grown = [only_scales(False, 130, growth_factor=factor, growth_interval=1) for factor in (2.0, 3.0)]
    target = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "grad_scaler_reference.npz"
    np.savez_compressed(
        target, settings=settings, targets=targets, start=start, bad=only_scales(True, 200), grown=np.stack(grown),
        **{name: array.astype(np.int32 if name == "tracker" else np.float32) for name, array in arrays.items()},
    )


if __name__ == "__main__":
    main()
