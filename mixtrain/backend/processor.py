"""What instructions this machine's processor has."""

from __future__ import annotations

import pathlib
import re
from typing import Final

_CPU_INFO: Final = pathlib.Path("/proc/cpuinfo")


def cpu_info() -> str:
    """Return what the system says of its processors; "" where it does not say it in a file (not Linux)."""
    return _CPU_INFO.read_text(errors="replace") if _CPU_INFO.exists() else ""


def cpu_field(info: str, name: str) -> str:
    """Return a field of the first processor that `info` lists; "" without one."""
    found = re.search(rf"^{name}\s*:(.*)$", info, flags=re.MULTILINE)
    return found[1].strip() if found else ""


def fast_bfloat16(info: str) -> bool:
    """Whether products of bfloat16 matrices take less time than those of float32.

    With AMX they do, and with the AVX-512 instruction for them too, but on Intel's processors since Sapphire Rapids,
    which are known by AVX512-FP16: they leave bfloat16 to AMX, and without it, as in a virtual machine that hides it,
    a product of bfloat16 takes 1.7 times that of float32 (matrices of 2048x2048: 121 ms, 69 ms).

    Args:
        info: What `cpu_info` returns.
    """
    flags = frozenset(cpu_field(info, "flags").split())
    if "amx_bf16" in flags:
        return True
    left_to_amx = cpu_field(info, "vendor_id") == "GenuineIntel" and "avx512_fp16" in flags
    return "avx512_bf16" in flags and not left_to_amx


def peak_resident(*, restart: bool = False) -> int | None:
    """Return the most memory that this process has held, in bytes; None where the system does not tell (not Linux).

    Args:
        restart: Whether the peak begins anew, at what is held now.
    """
    status, clear = pathlib.Path("/proc/self/status"), pathlib.Path("/proc/self/clear_refs")
    if not status.exists():
        return None
    if restart:
        try:
            clear.write_text("5")
        except OSError:  # Where that is not allowed, the peak is that of the whole process.
            return None
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status.read_text(), flags=re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None
