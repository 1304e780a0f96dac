"""The networks as Cells, channels first: the same lines for mixtrain and for MindSpore, given its `nn`."""

from __future__ import annotations

from typing import Any

from benchmarks.workloads import Workload


def mlp(nn: Any, workload: Workload) -> Any:
    """Return dense layers with ReLU, and one to the classes."""
    sizes = [workload.shape[0], *[workload.width] * workload.depth]
    hidden = [part for a, b in zip(sizes, sizes[1:], strict=False) for part in (nn.Dense(a, b), nn.ReLU())]
    return nn.SequentialCell([*hidden, nn.Dense(sizes[-1], workload.classes)])


def lenet(nn: Any, workload: Workload) -> Any:
    """Return LeNet-5, written as its users write it."""

    class LeNet5(nn.Cell):  # type: ignore[misc, name-defined]
        """LeNet-5."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(workload.shape[-1], 6, 5, pad_mode="valid", has_bias=True)
            self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
            self.relu = nn.ReLU()
            self.pool = nn.MaxPool2d(2, 2)
            self.flatten = nn.Flatten()
            self.fc1 = nn.Dense(400, 120)
            self.fc2 = nn.Dense(120, 84)
            self.fc3 = nn.Dense(84, workload.classes)

        def construct(self, x):  # type: ignore[no-untyped-def]
            """Map images to logits."""
            x = self.pool(self.relu(self.conv1(x)))
            x = self.pool(self.relu(self.conv2(x)))
            x = self.flatten(x)
            x = self.relu(self.fc1(x))
            x = self.relu(self.fc2(x))
            return self.fc3(x)

    return LeNet5()


def cifar_cnn(nn: Any, workload: Workload) -> Any:
    """Return six convolutions, each with batch normalization."""
    stack, channels = [], workload.shape[-1]
    for filters in (32, 64, 128):
        for _ in range(2):
            stack += [nn.Conv2d(channels, filters, 3, pad_mode="same"), nn.BatchNorm2d(filters), nn.ReLU()]
            channels = filters
        stack.append(nn.MaxPool2d(2, 2))
    flat = channels * (workload.shape[0] // 8) * (workload.shape[1] // 8)
    return nn.SequentialCell([*stack, nn.Flatten(), nn.Dense(flat, 128), nn.ReLU(), nn.Dense(128, workload.classes)])


NETWORKS = {"mlp": mlp, "lenet": lenet, "cifar_cnn": cifar_cnn}


def network(nn: Any, workload: Workload) -> Any:
    """Return a workload's network.

    Args:
        nn: `mixtrain.nn` or `mindspore.nn`.
        workload: One of those in `NETWORKS`.
    """
    return NETWORKS[workload.network](nn, workload)
