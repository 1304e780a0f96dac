"""What instructions this machine's processor has."""

from __future__ import annotations

import pathlib
import re
from typing import Final

BFLOAT16_FLAGS: Final = frozenset({"amx_bf16", "avx512_bf16"})
_CPU_INFO: Final = pathlib.Path("/proc/cpuinfo")


def cpu_flags() -> frozenset[str]:
    """Return the instruction-set flags of this CPU; empty where the system does not list them (not Linux)."""
    if not _CPU_INFO.exists():
        return frozenset()
    found = re.search(r"^flags\s*:(.*)$", _CPU_INFO.read_text(errors="replace"), flags=re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()


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
