"""The user's code in the traceback of an error, or on the stack of an operation, of the array library."""

from __future__ import annotations

import functools
import linecache
import os
import pathlib
import sysconfig
import types
from collections.abc import Iterable
from typing import NamedTuple

import keras

from mixtrain.typing import Tensor


class UndecidedBranch(TypeError):
    """A tensor without a value decides a branch in the user's code that a compiled call cannot trace both ways."""


class Operation(NamedTuple):
    """An operation that ran: its name, the line of the user's code that called it, if any, and its float tensors."""

    name: str
    line: str | None
    inputs: list[Tensor]
    outputs: list[Tensor]


@functools.cache
def _is_users(path: str, library: str) -> bool:
    """Whether a file is not of Python, the array library (which `library` is a file of), Keras or mixtrain."""
    others = [str(pathlib.Path(file).parent) + os.sep for file in (library, keras.__file__)]
    others.append(str(pathlib.Path(__file__).parents[1]) + os.sep)
    packages = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
    standard = path.startswith(sysconfig.get_path("stdlib") + os.sep) and not any(name in path for name in packages)
    return not standard and not path.startswith(tuple(others))


def users_line(stack: Iterable[tuple[str, int]], library: str) -> str | None:
    """Return the first line of the user's code in a stack of files and line numbers, as "net.py:12 (y = x * x)".

    `stack`: Innermost first. `library`: A file of the array library.
    """
    for path, number in stack:
        text = linecache.getline(path, number).strip()
        if text and _is_users(path, library):
            return f"{os.path.basename(path)}:{number} ({text})"
    return None


def users_code(error: BaseException, library: str) -> list[types.CodeType]:
    """Return the code of the user in the traceback of an exception, the innermost last.

    `library`: A file of the array library: code of its folder, of Keras and of mixtrain's backend is excluded.
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
