"""Whose line it was: the user's code that an error of the array library passed through."""

from __future__ import annotations

import pathlib
import types

import keras


def deciding_code(error: BaseException, library: str) -> types.CodeType | None:
    """Return the innermost code of the user's that an exception passed through, None where there is none.

    The arguments are those of `users_code`.
    """
    return next(reversed(users_code(error, library)), None)


def users_code(error: BaseException, library: str) -> list[types.CodeType]:
    """Return the code of the user's that an exception passed through, the innermost last.

    Args:
        error: The exception, as it was caught.
        library: The array library's own file: its code, Keras's and mixtrain's backend are not the user's.
    """
    others = tuple(str(pathlib.Path(path).parent) for path in (library, keras.__file__, __file__))
    # Tensors, and what stands between them and the backend's.
    package = pathlib.Path(__file__).parents[1]
    others += tuple(str(package / name) for name in ("boundary.py", "common", "ops"))
    found: list[types.CodeType] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(others):
            found.append(code)
        trace = trace.tb_next
    return found
