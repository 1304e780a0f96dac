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
