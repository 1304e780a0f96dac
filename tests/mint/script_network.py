"""A small denoising network as scripts write it with `mint`: a UNet of residual and transformer blocks.

The same lines run on PyTorch, of which the recorded losses are: `N`, `F`, `m` are its modules or mint's, `Base` its
Module or mint's Cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def network(Base: type, N: Any, F: Any, m: Any) -> Any:
    """Return the network: of images (2, 3, 8, 8) and the steps (2,) of their noise."""

    class Residual(Base):
        def __init__(self, channels: int, out_channels: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = N.GroupNorm(2, channels), N.GroupNorm(2, out_channels)
            self.conv1 = N.Conv2d(channels, out_channels, 3, padding=1)
            self.conv2 = N.Conv2d(out_channels, out_channels, 3, padding="same")
            self.time = N.Linear(8, out_channels)
            self.skip = N.Conv2d(channels, out_channels, 1, bias=False)

        def construct(self, x, time):  # type: ignore[no-untyped-def]
            y = self.conv1(F.silu(self.norm1(x)))
            y = y + m.unsqueeze(m.unsqueeze(self.time(F.silu(time)), -1), -1)
            return self.conv2(F.silu(self.norm2(y))) + self.skip(x)

        forward = construct

    class Attention(Base):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = N.LayerNorm(width), N.LayerNorm(width, eps=1e-6)
            self.qkv, self.out = N.Linear(width, 3 * width, bias=False), N.Linear(width, width)
            self.mlp1, self.act, self.mlp2 = N.Linear(width, 4 * width), N.GELU(), N.Linear(4 * width, width)
            self.drop, self.heads = N.Dropout(p=0.0), heads

        def construct(self, x):  # type: ignore[no-untyped-def]
            n, c, h, w = x.shape
            tokens = m.permute(m.reshape(x, (n, c, h * w)), (0, 2, 1))
            parts = m.chunk(self.qkv(self.norm1(tokens)), 3, dim=-1)
            q, k, v = [m.transpose(m.reshape(part, (n, h * w, self.heads, c // self.heads)), 1, 2) for part in parts]
            scores = m.mul(m.matmul(q, m.transpose(k, -2, -1)), (c // self.heads) ** -0.5)
            heads = m.matmul(self.drop(F.softmax(scores, dim=-1)), v)
            tokens = m.add(tokens, self.out(m.reshape(m.transpose(heads, 1, 2), (n, h * w, c))))
            tokens = m.add(tokens, self.mlp2(self.act(self.mlp1(self.norm2(tokens)))), alpha=0.5)
            return m.reshape(m.permute(tokens, (0, 2, 1)), (n, c, h, w))

        forward = construct

    class UNet(Base):
        def __init__(self) -> None:
            super().__init__()
            self.steps = N.Embedding(10, 8)
            self.entry, self.down = N.Conv2d(3, 4, 3, padding=1), N.Conv2d(4, 8, 3, stride=2, padding=1)
            self.block, self.attention, self.last = Residual(8, 8), Attention(8, 2), Residual(8, 4)
            self.up = N.ConvTranspose2d(8, 4, 2, stride=2)
            self.norm, self.exit = N.BatchNorm2d(4), N.Conv2d(4, 3, 1)

        def construct(self, x, t):  # type: ignore[no-untyped-def]
            time = self.steps(t)
            first = self.entry(x)
            y = self.attention(self.block(self.down(first), time))
            y = self.last(m.cat((self.up(y), first), dim=1), time)
            y = F.interpolate(F.avg_pool2d(y, 2), scale_factor=2, mode="bilinear", align_corners=False)
            return self.exit(F.relu(self.norm(y)))

        forward = construct

    return UNet()


def values(shape: tuple[int, ...], number: int) -> np.ndarray:
    """Return the initial values of the parameter `number`."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 0.7 + number) * 0.4).reshape(shape).astype(np.float32)


def batches() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return ten batches: noisy images, their steps, and the noise."""
    draw = np.random.default_rng(5)
    return [(draw.standard_normal((2, 3, 8, 8)).astype(np.float32), draw.integers(0, 10, 2),
             draw.standard_normal((2, 3, 8, 8)).astype(np.float32)) for _ in range(10)]
