"""Two networks, two optimizers, one GradScaler: a small GAN learns where points lie, offline.

The generator turns noise into points of the plane; the discriminator tells them from points of a ring. Each network has
its loss and its optimizer; the scaler is one: it skips the step of the network whose gradients overflow, lets the other
one step, and moves the scale once per iteration.

    python examples/gan.py --steps 600
"""

from __future__ import annotations

import argparse

import numpy as np

import mixtrain as ms
from mixtrain import amp, nn, ops

NOISE, BATCH = 8, 128


def ring(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return points (count, 2) at a distance of about 2 from the origin, float32."""
    angle, radius = rng.uniform(0.0, 2.0 * np.pi, count), rng.normal(2.0, 0.05, count)
    return (radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32)


def network(inputs: int, outputs: int) -> nn.Cell:
    """Return a small network of dense layers."""
    return nn.SequentialCell(
        nn.Dense(inputs, 64), nn.LeakyReLU(0.2), nn.Dense(64, 64), nn.LeakyReLU(0.2), nn.Dense(64, outputs)
    )


def build_step(generator: nn.Cell, discriminator: nn.Cell, scaler: amp.GradScaler):
    """Return one compiled iteration: it trains the discriminator, then the generator."""
    loss_fn = nn.BCEWithLogitsLoss()
    of_generator = nn.Adam(generator.trainable_params(), learning_rate=1e-3, beta1=0.5)
    of_discriminator = nn.Adam(discriminator.trainable_params(), learning_rate=1e-3, beta1=0.5)

    def discriminator_loss(real, noise):
        with amp.autocast():
            on_real, on_made = discriminator(real), discriminator(ops.stop_gradient(generator(noise)))
            loss = loss_fn(on_real, ops.ones_like(on_real)) + loss_fn(on_made, ops.zeros_like(on_made))
        return scaler.scale(loss), loss

    def generator_loss(noise):
        with amp.autocast():
            on_made = discriminator(generator(noise))
            loss = loss_fn(on_made, ops.ones_like(on_made))
        return scaler.scale(loss), loss

    discriminate = ms.value_and_grad(discriminator_loss, None, of_discriminator.parameters, has_aux=True)
    generate = ms.value_and_grad(generator_loss, None, of_generator.parameters, has_aux=True)

    @ms.jit
    def step(real, noise):
        (_, loss_d), grads = discriminate(real, noise)
        applied_d = scaler.step(of_discriminator, grads)
        (_, loss_g), grads = generate(noise)
        applied_g = scaler.step(of_generator, grads)
        scaler.update()  # Once, after the steps of both.
        return loss_d, loss_g, applied_d, applied_g

    return step


def main() -> dict[str, float]:
    """Train; return the mean distance of the points made from the origin, and the counts of steps applied."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    steps = parser.parse_args().steps
    ms.set_seed(3)
    rng = np.random.default_rng(4)
    generator, discriminator = network(NOISE, 2), network(2, 1)
    scaler = amp.GradScaler(init_scale=2.0**20, growth_interval=200)
    step = build_step(generator, discriminator, scaler)

    applied = np.zeros(2)
    for number in range(1, steps + 1):
        noise = rng.standard_normal((BATCH, NOISE)).astype(np.float32)
        loss_d, loss_g, *both = step(ms.Tensor(ring(rng, BATCH)), ms.Tensor(noise))
        applied += [bool(flag) for flag in both]
        if number % 200 == 0:
            print(f"step {number}: losses {float(loss_d):.3f} {float(loss_g):.3f}, loss scale {scaler.get_scale():g}")

    made = generator(ms.Tensor(rng.standard_normal((1000, NOISE)).astype(np.float32))).asnumpy()
    distance = np.linalg.norm(made, axis=1)
    print(f"distance from the origin {distance.mean():.2f} +- {distance.std():.2f}; of the ring 2.00 +- 0.05")
    print(f"steps applied: discriminator {applied[0]:.0f}, generator {applied[1]:.0f} of {steps}")
    return {"distance": float(distance.mean()), "discriminator": applied[0], "generator": applied[1]}


if __name__ == "__main__":
    main()
