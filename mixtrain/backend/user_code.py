"""The user's code in the traceback of an error of the array library."""

from __future__ import annotations

import pathlib
import types

import keras


def deciding_code(error: BaseException, library: str) -> types.CodeType | None:
    """Return the innermost code of the user in the traceback of an exception; None without one.

    The arguments are those of `users_code`.
    """
    return next(reversed(users_code(error, library)), None)


def users_code(error: BaseException, library: str) -> list[types.CodeType]:
    """Return the code of the user in the traceback of an exception, the innermost last.

    Args:
        error: The exception.
        library: A file of the array library: code of its folder, of Keras and of mixtrain's backend is excluded.
    """
    others = tuple(str(pathlib.Path(path).parent) for path in (library, keras.__file__, __file__))
    # Public tensors, and their conversion from and to backend tensors.
    package = pathlib.Path(__file__).parents[1]
    others += tuple(str(package / name) for name in ("boundary.py", "common", "ops"))
    codes: list[types.CodeType] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(others):
            codes.append(code)
        trace = trace.tb_next
    return codes
