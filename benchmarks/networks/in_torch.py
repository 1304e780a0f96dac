"""The networks as PyTorch modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from benchmarks.workloads import VOCABULARY, Workload


def mlp(workload: Workload) -> Any:
    """Return dense layers with ReLU, and one to the classes."""
    sizes = [workload.shape[0], *[workload.width] * workload.depth]
    hidden = [part for a, b in zip(sizes, sizes[1:], strict=False) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(sizes[-1], workload.classes))


def lenet(workload: Workload) -> Any:
    """Return LeNet-5."""
    return nn.Sequential(
        nn.Conv2d(workload.shape[-1], 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, workload.classes),
    )


def cifar_cnn(workload: Workload) -> Any:
    """Return six convolutions, each with batch normalization."""
    stack: list[Any] = []
    channels = workload.shape[-1]
    for filters in (32, 64, 128):
        for _ in range(2):
            stack += [nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU()]
            channels = filters
        stack.append(nn.MaxPool2d(2))
    flat = channels * (workload.shape[0] // 8) * (workload.shape[1] // 8)
    return nn.Sequential(*stack, nn.Flatten(), nn.Linear(flat, 128), nn.ReLU(), nn.Linear(128, workload.classes))


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
        )
        shortcut = [nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)] if stride > 1 else []
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Any) -> Any:
        """Map images (N, channels, H, W) to (N, width, H / stride, W / stride)."""
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet20(workload: Workload) -> Any:
    """Return the ResNet of 20 layers for small images."""
    blocks, channels = [], 16
    for width in (16, 32, 64):
        for block in range(3):
            blocks.append(Block(channels, width, 2 if width > 16 and block == 0 else 1))
            channels = width
    return nn.Sequential(
        nn.Conv2d(workload.shape[-1], 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, workload.classes),
    )


class Bottleneck(nn.Module):
    """A 1x1, a 3x3 and a 1x1 convolution beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width),
        )
        same = channels == 4 * width
        projection = [nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)]
        self.shortcut = nn.Sequential(*([] if same else projection))

    def forward(self, x: Any) -> Any:
        """Map images (N, channels, H, W) to (N, 4 * width, H / stride, W / stride)."""
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet50(workload: Workload) -> Any:
    """Return the ResNet of 50 layers for large images."""
    blocks, channels = [], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for block in range(count):
            blocks.append(Bottleneck(channels, width, 2 if stage and block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(
        nn.Conv2d(workload.shape[-1], 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, workload.classes),
    )


class Transformer(nn.Module):
    """Embedded tokens, blocks of attention and two dense layers, the mean over the row."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        width = workload.width
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.Sequential(*[
            nn.TransformerEncoderLayer(width, workload.heads, 4 * width, dropout=0.0, batch_first=True)
            for _ in range(workload.depth)
        ])
        self.logits = nn.Linear(width, workload.classes)

    def forward(self, tokens: Any) -> Any:
        """Map token numbers (N, length) to logits."""
        return self.logits(self.blocks(self.embedding(tokens)).mean(dim=1))


NETWORKS = {
    "mlp": mlp,
    "lenet": lenet,
    "cifar_cnn": cifar_cnn,
    "resnet20": resnet20,
    "resnet50": resnet50,
    "transformer": Transformer,
}


def network(workload: Workload) -> Any:
    """Return a workload's network, with the same weights each time."""
    torch.manual_seed(0)
    return NETWORKS[workload.network](workload)
