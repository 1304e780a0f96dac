"""What a backend reports about its device and about how it compiles a function."""

from __future__ import annotations

import dataclasses
from typing import Literal

DeviceKind = Literal["CPU", "GPU", "TPU"]


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """What the device in use is good at.

    Attributes:
        kind: "CPU", "GPU" or "TPU".
        name: The device's own name, for messages.
        fast_bfloat16: Whether products of bfloat16 matrices take less time on the device than those of float32.
    """

    kind: DeviceKind
    name: str
    fast_bfloat16: bool


@dataclasses.dataclass(frozen=True)
class JitChoice:
    """Whether a function is compiled with XLA, and why.

    Attributes:
        jit: True for XLA, False for the backend's plain graph.
        reason: One clause for the log.
        may_fall_back: Whether the plain graph takes over where XLA refuses the function: nobody asked for XLA.
    """

    jit: bool
    reason: str
    may_fall_back: bool = False


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """When a backend gains by running several steps of the host feed in one call.

    Attributes:
        after: Calls to make one by one first, which the compilation of a group is worth.
        size: How many steps a group has; None for any number.
        early: Whether a call returns before its work is done, so that who times it must wait for its results.
        reads: Whether a call gains by reading its batches itself.
    """

    after: int
    size: int | None = None
    early: bool = False
    reads: bool = False
