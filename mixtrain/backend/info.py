"""Information about the device, its processors and compilation."""

from __future__ import annotations

import dataclasses
import logging
import os
import pathlib
import re
from typing import Final, Literal

_log = logging.getLogger("mixtrain")
DeviceKind = Literal["CPU", "GPU", "TPU"]


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """Properties of the device in use."""

    kind: DeviceKind
    name: str  # For messages.
    fast_bfloat16: bool  # Whether products of bfloat16 matrices take less time than those of float32.
    fast_float8: bool = False  # Whether matrices of float8 values are multiplied in hardware.


@dataclasses.dataclass(frozen=True)
class DeviceMemory:
    """Memory of an accelerator in bytes; none of it on a CPU, whose memory is the process's."""

    allocated: int = 0  # By tensors.
    reserved: int = 0  # By the backend, for tensors now and later.
    peak_allocated: int = 0
    peak_reserved: int = 0


@dataclasses.dataclass(frozen=True)
class JitChoice:
    """Whether a function is compiled with XLA, or to the backend's plain graph, and why."""

    jit: bool
    reason: str  # One clause for the log.
    may_fall_back: bool = False  # To the plain graph if XLA refuses the function: the user has not requested XLA.

    def log(self) -> None:
        """Log how a function is compiled, and why."""
        _log.info("compile: XLA %s (%s)", "on" if self.jit else "off", self.reason)


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """When a backend benefits from running several steps of the host feed in one call."""

    after: int  # The number of single steps after which compiling a group pays off.
    size: int | None = None  # The number of steps of a group; None for any number.
    early: bool = False  # Whether a call returns before its results are computed, so that a timer must wait for them.
    reads: bool = False  # Whether a call benefits from reading its batches itself.


_CPU_INFO: Final = pathlib.Path("/proc/cpuinfo")


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_info() -> str:
    """Return the contents of /proc/cpuinfo; "" without that file (not Linux)."""
    return _CPU_INFO.read_text(errors="replace") if _CPU_INFO.exists() else ""


def cpu_field(info: str, name: str) -> str:
    """Return a field of the first processor that `info` lists; "" without one."""
    match = re.search(rf"^{name}\s*:(.*)$", info, flags=re.MULTILINE)
    return match[1].strip() if match else ""


def fast_bfloat16(info: str) -> bool:
    """Whether products of bfloat16 matrices take less time than those of float32.

    They do with AMX, and with AVX512-BF16 except on Intel's processors since Sapphire Rapids, recognized by
    AVX512-FP16. Those leave bfloat16 to AMX: without it, as in a virtual machine that hides it, a bfloat16 product
    takes 1.7 times as long as a float32 product (matrices of 2048x2048: 121 ms, 69 ms).
    """
    flags = frozenset(cpu_field(info, "flags").split())
    if "amx_bf16" in flags:
        return True
    left_to_amx = cpu_field(info, "vendor_id") == "GenuineIntel" and "avx512_fp16" in flags
    return "avx512_bf16" in flags and not left_to_amx


def peak_resident(*, restart: bool = False) -> int | None:
    """Return the peak resident memory of this process in bytes, after a `restart`; None if unknown (not Linux)."""
    status, clear = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")
    if not status.exists():
        return None
    if restart:
        try:
            clear.write_text("5")
        except OSError:  # Not allowed: the peak is that since the start of the process.
            return None
    match = re.search(r"^VmHWM:\s*(\d+) kB$", status.read_text(), flags=re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None
