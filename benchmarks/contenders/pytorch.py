"""PyTorch, eager: the loop of its tutorials, with autocast where half is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_torch import network
from benchmarks.workloads import Workload, arrays


def made(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Return what makes the optimizer and the loss."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layout = torch.channels_last if contender.channels_last and workload.images else torch.contiguous_format
    model = network(workload).to(device, memory_format=layout)
    x, y = arrays(workload, steps, channels_first=True)
    data = [
        (torch.from_numpy(a).to(device).contiguous(memory_format=layout), torch.from_numpy(b.argmax(1)).to(device))
        for a, b in zip(x, y, strict=True)
    ]

    def prepare() -> Round:
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        scaler = torch.amp.GradScaler(device, enabled=contender.dtype == "float16")
        return lambda: _epoch(contender, model, optimizer, scaler, data, device)

    return prepare


def _epoch(contender: Contender, model: Any, optimizer: Any, scaler: Any, data: list[Any], device: str) -> float:
    """Train on each batch; wait for the last."""
    half = contender.dtype != "float32"
    measure, loss = torch.nn.CrossEntropyLoss(), torch.zeros(())
    for x, y in data:
        optimizer.zero_grad()
        with torch.autocast(device, dtype=getattr(torch, contender.dtype)) if half else contextlib.nullcontext():
            loss = measure(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return float(loss)
