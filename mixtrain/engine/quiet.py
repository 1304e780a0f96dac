"""Notes of the array library that tell a user nothing, held back; warnings and errors still come through."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# TensorFlow's C++ libraries write these while they load, before any log level of theirs is read.
_NOTE = re.compile(rb"(?m)^(I\d{4} |WARNING: All log messages before absl::InitializeLog).*\n?")


@contextlib.contextmanager
def without_startup_notes() -> Iterator[None]:
    """Hold back what is written to standard error inside, and write all but start-up notes of it afterwards.

    A user who has set TF_CPP_MIN_LOG_LEVEL sees what that asks for; nothing is held back then. Nor is anything after
    the import, so TensorFlow's word about a graphics driver that it cannot load comes through with its first operation.
    """
    if _LEVEL in os.environ or "tensorflow" in sys.modules:
        yield
        return
    os.environ[_LEVEL] = "2"
    with without_lines(_NOTE):
        yield


@contextlib.contextmanager
def without_lines(pattern: re.Pattern[bytes]) -> Iterator[None]:
    """Hold back what libraries write to standard error inside, and write all but some lines of it afterwards.

    Args:
        pattern: The lines to leave out, with their ends.
    """
    try:
        kept = os.dup(2)
    except OSError:  # no standard error at all
        yield
        return
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            os.write(2, pattern.sub(b"", held.read()))
