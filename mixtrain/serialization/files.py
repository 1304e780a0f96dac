"""Files: opening of regular files only, and atomic writing, also by a thread, which writes one file at a time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final

from mixtrain import checks
from mixtrain.errors import CheckpointError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Opening must neither wait for the other end of a pipe nor make a terminal the one that controls this process.
_FLAGS: Final = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_KINDS: Final[dict[int, str]] = {
    stat.S_IFDIR: "a directory", stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
}
_TEMPORARY: Final = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}\.tmp")
_EXECUTOR: Final = concurrent.futures.ThreadPoolExecutor(1, "mixtrain-save-checkpoint")
_pending: list[concurrent.futures.Future[None]] = []
_MISSING: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def not_a_checkpoint(path: str, reason: str) -> CheckpointError:
    """Return the error for a file that is not a checkpoint, or is damaged."""
    return CheckpointError(
        "load_checkpoint: expected a checkpoint that mixtrain wrote (safetensors that begins with mixtrain.checkpoint "
        f"and its SHA-256); got {path!r}, {reason}. Write a file of save_checkpoint or ModelCheckpoint; convert values "
        "of other frameworks by save_checkpoint({name: array}, ...)."
    )


@contextlib.contextmanager
def open_regular(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file, or a link to one; yield it and its length. Everything is read through this one descriptor.

    Raises: CheckpointError if it is any other kind of file. ValueError if it does not exist.
    """
    try:
        # Checked before opening, because opening a device can have effects, and again once it is open.
        _check_regular(path, os.stat(path))
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise not_a_checkpoint(path, "a symbolic link that leads to itself") from error
        if error.errno in _MISSING:
            raise _missing(path) from error
        raise
    except ValueError as error:
        if isinstance(error, CheckpointError):
            raise
        raise _missing(path) from error  # A name with a null character.
    with open(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        _check_regular(path, status)
        yield file, status.st_size


def _check_regular(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise not_a_checkpoint(path, _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file"))


def _missing(path: str) -> ValueError:
    return checks.fail_value(
        "load_checkpoint", "ckpt_file_name must be a file that exists", path, "the path of a checkpoint"
    )


def write_atomically(path: str, buffers: Iterable[bytes | memoryview]) -> None:
    """Write a file; an existing one is replaced only when the new one is complete and on the disk."""
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"save_checkpoint: expected a folder that exists; got {folder!r}. Write os.makedirs({folder!r}) before."
        )
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            _lock(file)
            for buffer in buffers:
                file.write(buffer)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def remove_leftovers(folder: str) -> None:
    """Remove the temporary files of `write_atomically` whose process was killed."""
    for name in os.listdir(folder):
        match = _TEMPORARY.fullmatch(name)
        if match is not None and not _is_alive(int(match.group(1))):
            path = os.path.join(folder, name)
            # Anything else of that name is not one of ours.
            with contextlib.suppress(OSError, ValueError), open_regular(path) as (file, _):
                # A process on another machine holds the lock while it writes.
                if _lock(file):
                    os.remove(path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed, if the system can; return whether it is locked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def in_background(write: Callable[..., None], *args: Any) -> None:
    _pending.append(_EXECUTOR.submit(write, *args))


def async_ckpt_thread_status() -> bool:
    """Whether the thread is writing a checkpoint. Example: ``async_ckpt_thread_status()``."""
    return not all(pending.done() for pending in _pending)


def finish_writing() -> None:
    """Wait for the files that are being written."""
    while _pending:
        _pending.pop(0).result()
