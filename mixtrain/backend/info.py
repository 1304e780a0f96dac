"""Information of a backend about its device and its compilation."""

from __future__ import annotations

import dataclasses
from typing import Literal

DeviceKind = Literal["CPU", "GPU", "TPU"]


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """Properties of the device in use.

    Attributes:
        kind: "CPU", "GPU" or "TPU".
        name: The name of the device, for messages.
        fast_bfloat16: Whether products of bfloat16 matrices take less time than those of float32.
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
        may_fall_back: Whether to use the plain graph if XLA refuses the function: the user has not requested XLA.
    """

    jit: bool
    reason: str
    may_fall_back: bool = False


@dataclasses.dataclass(frozen=True)
class GroupInfo:
    """When a backend benefits from running several steps of the host feed in one call.

    Attributes:
        after: The number of single steps after which compiling a group pays off.
        size: The number of steps of a group; None for any number.
        early: Whether a call returns before its results are computed, so that a timer must wait for them.
        reads: Whether a call benefits from reading its batches itself.
    """

    after: int
    size: int | None = None
    early: bool = False
    reads: bool = False
