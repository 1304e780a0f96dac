"""PyTorch, eager or compiled: the loop of its tutorials, with autocast for half precision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_torch import network
from benchmarks.workloads import Workload, arrays


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that creates the optimizer and the loss."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layout = torch.channels_last if contender.channels_last and workload.images else torch.contiguous_format
    if contender.products != "default":
        torch.set_float32_matmul_precision("highest" if contender.products == "float32" else "high")
        torch.backends.cudnn.allow_tf32 = contender.products == "tensorfloat32"
    model = network(workload).to(device, memory_format=layout)
    x, y = arrays(workload, steps, channels_first=True)
    data = [
        (_pinned(torch.from_numpy(a).contiguous(memory_format=layout), device),
         _pinned(torch.from_numpy(b.argmax(1)), device))
        for a, b in zip(x, y, strict=True)
    ]

    def prepare() -> Round:
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        scaler = torch.amp.GradScaler(device, enabled=contender.dtype == "float16")
        forward = torch.compile(model) if contender.jit is True else model
        return lambda: _epoch(contender, forward, optimizer, scaler, data, device)

    return prepare


def _pinned(batch: Any, device: str) -> Any:
    """Return a batch in page-locked memory, for asynchronous copies to a GPU."""
    return batch.pin_memory() if device == "cuda" else batch


def _epoch(contender: Contender, model: Any, optimizer: Any, scaler: Any, data: list[Any], device: str) -> float:
    """Train on each batch and return the last loss, which waits for the device."""
    half = contender.dtype != "float32"
    loss_fn, loss = torch.nn.CrossEntropyLoss(), torch.zeros(())
    for x, y in data:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(device, dtype=getattr(torch, contender.dtype)) if half else contextlib.nullcontext():
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return float(loss.detach())
