"""What scripts ask a device beside computing: its memory, whether it has finished, and streams, of which it has one.

The backend orders its work itself, so that what runs under another stream computes the same, in the order of the
program. On a CPU nothing is counted, as in MindSpore: its memory is the process's.
"""

from __future__ import annotations

import time
import warnings
from types import TracebackType
from typing import Any, Final

from mixtrain import backend, checks
from mixtrain.lazy_names import serve_names

_ROWS: Final = {
    "Reserved memory": "reserved", "Allocated memory": "allocated", "Max reserved memory": "peak_reserved",
    "Max allocated memory": "peak_allocated",
}


def synchronize() -> None:
    """Wait until the device has computed all that it was asked for, as before a clock is read.

    Example:
        >>> import mixtrain
        >>> mixtrain.runtime.synchronize()
    """
    backend.synchronize()


def is_available(device_target: str) -> bool:
    """Whether there is a device of a kind, as "GPU". Example: ``hal.is_available("CPU")`` is True."""
    if not isinstance(device_target, str):
        raise checks.fail_type("hal.is_available", "device_target must be a str", device_target, '"GPU"')
    return device_target.upper() in ("CPU", backend.describe_device().kind)


is_initialized = is_available


def device_count(device_target: str | None = None) -> int:
    """Return how many devices of a kind a process computes on: 1, or 0 without one. Example: ``hal.device_count()``."""
    return int(device_target is None or is_available(device_target))


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Return what the backend calls the device. Example: ``hal.get_device_name(0)`` is "CPU" without a GPU."""
    return backend.describe_device().name


# ---- memory -------------------------------------------------------------------------------------------------------
def memory_allocated(device_target: str | None = None) -> int:
    """Return the bytes of the device that tensors occupy; 0 on a CPU.

    Args:
        device_target: Accepted for MindSpore scripts; it is the device of the backend.

    Returns:
        A number of bytes.

    Example:
        >>> import mixtrain
        >>> mixtrain.runtime.memory_allocated() >= 0
        True
    """
    return backend.device_memory().allocated


def max_memory_allocated(device_target: str | None = None) -> int:
    """Return the most bytes of the device that tensors have occupied; 0 on a CPU.

    As `memory_allocated`, since the start or the last `reset_peak_memory_stats`. Example:
    ``runtime.max_memory_allocated() / 2**30``.
    """
    return backend.device_memory().peak_allocated


def memory_reserved(device_target: str | None = None) -> int:
    """Return the bytes of the device that the backend keeps for tensors; TensorFlow tells only what they occupy.

    As `memory_allocated`. Example: ``runtime.memory_reserved()``.
    """
    return backend.device_memory().reserved


def max_memory_reserved(device_target: str | None = None) -> int:
    """Return the most bytes of the device that the backend has kept for tensors, as `memory_reserved`.

    Example: ``runtime.max_memory_reserved()``.
    """
    return backend.device_memory().peak_reserved


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """Return the memory of the device by MindSpore's names, in bytes; the blocks of its pools are not known.

    Example: ``runtime.memory_stats()["max_allocated_memory"]``.
    """
    memory, pool = backend.device_memory(), {"block_unit_size": 0, "block_counts": 0, "blocks_info": {}}
    return {
        "total_reserved_memory": memory.reserved, "total_allocated_memory": memory.allocated,
        "total_idle_memory": memory.reserved - memory.allocated, "total_eager_free_memory": 0,
        "max_reserved_memory": memory.peak_reserved, "max_allocated_memory": memory.peak_allocated,
        "common_mem_pool_stats": pool, "persistent_mem_pool_stats": {**pool},
    }


def memory_summary(device_target: str | None = None) -> str:
    """Return the memory of the device as lines of text. Example: ``print(runtime.memory_summary())``."""
    memory = backend.device_memory()
    return "\n".join(f"{title:<22}{getattr(memory, field) / 2**20:>14,.1f} MiB" for title, field in _ROWS.items())


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """Let `max_memory_allocated` and `max_memory_reserved` begin at the current usage.

    JAX keeps the peak of the whole process, which is said in a warning.

    Example:
        >>> import mixtrain
        >>> mixtrain.runtime.reset_peak_memory_stats()
    """
    if not backend.restart_peak():
        warnings.warn(
            "reset_peak_memory_stats: JAX keeps the peak of the whole process, so that it stays. Write "
            "KERAS_BACKEND=tensorflow, or measure in a process of its own.", stacklevel=2,
        )


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


def empty_cache() -> None:
    """Do nothing: the backend keeps what it has reserved for later tensors. Example: ``runtime.empty_cache()``."""


# ---- streams ------------------------------------------------------------------------------------------------------
class Event:
    """A point of the program, which can be waited for and timed.

    Args:
        enable_timing: Whether `elapsed_time` may be asked for.
        blocking: Accepted for MindSpore scripts.

    Example:
        >>> import mixtrain
        >>> first, last = (mixtrain.runtime.Event(enable_timing=True) for _ in range(2))
        >>> first.record(), last.record()
        (None, None)
        >>> first.elapsed_time(last) >= 0
        True
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self._timed = checks.boolean("Event", "enable_timing", enable_timing)
        checks.boolean("Event", "blocking", blocking)
        self._seconds: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Make the current point of the program this event; with timing, wait until the device has reached it."""
        if self._timed:
            backend.synchronize()
        self._seconds = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for this event, after which it comes in any case."""

    def query(self) -> bool:
        """Whether the device has reached this event; it waits for it."""
        backend.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until the device has reached this event."""
        backend.synchronize()

    def elapsed_time(self, other_event: Event) -> float:
        """Return the milliseconds from this event to another. Raises: RuntimeError if one was not recorded."""
        if self._seconds is None or other_event._seconds is None or not (self._timed and other_event._timed):
            raise RuntimeError(
                "Event.elapsed_time: expected two recorded events with timing; got one without. Write "
                "Event(enable_timing=True), and event.record() before."
            )
        return (other_event._seconds - self._seconds) * 1e3


class Stream:
    """The queue of the device's work, of which there is one: all streams are equal.

    Args:
        priority: Accepted for MindSpore scripts, like other keywords.

    Example:
        >>> import mixtrain
        >>> mixtrain.runtime.Stream() == mixtrain.runtime.current_stream()
        True
    """

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        self.id = self.stream_id = self.device_id = 0
        self.device_name = backend.describe_device().kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)

    def __repr__(self) -> str:
        return f"Stream(device_name={self.device_name}, device_id:0, stream id:0)"

    def synchronize(self) -> None:
        """Wait until the device has computed all that it was asked for."""
        backend.synchronize()

    def query(self) -> bool:
        """Whether the work is done; it waits for it."""
        backend.synchronize()
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, or a new one, and return it."""
        event = event or Event()
        event.record()
        return event

    def wait_event(self, event: Event) -> None:
        """Wait for an event, after which everything comes in any case."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait for a stream, which is this one."""


class StreamCtx:
    """A context whose work belongs to a stream. Example: ``with runtime.StreamCtx(runtime.Stream()): ...``.

    Args:
        ctx_stream: A stream, or None for the current one.
    """

    def __init__(self, ctx_stream: Stream | None) -> None:
        if not (ctx_stream is None or isinstance(ctx_stream, Stream)):
            raise checks.fail_type("StreamCtx", "ctx_stream must be a Stream or None", ctx_stream, "Stream()")

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def current_stream() -> Stream:
    """Return the stream in use. Example: ``runtime.current_stream().synchronize()``."""
    return Stream()


default_stream = communication_stream = current_stream


def set_cur_stream(stream: Stream) -> None:
    """Use a stream from here on, which changes nothing. Example: ``runtime.set_cur_stream(runtime.Stream())``."""
    StreamCtx(stream)


serve_names(__name__)
