"""A batch of CIFAR-10's Python version, a pickle, read without giving NumPy or any class a state from the file.

Unpickling can run code, and NumPy's own `dtype` and `_reconstruct` can be made to read any address. So only the
operations of such files are let through, the names that they use are stand-ins which keep what they are given, and the
images are made from plain bytes.
"""

from __future__ import annotations

import io
import pathlib
import pickle
import pickletools
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from mixtrain.dataset.source_files import foreign_file

_PIXELS: Final = 3072
_CLASSES: Final = 10
_OPERATIONS: Final = frozenset({
    "PROTO", "FRAME", "STOP", "MARK", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "NONE", "NEWTRUE", "NEWFALSE",
    "BININT", "BININT1", "BININT2", "SHORT_BINSTRING", "BINSTRING", "SHORT_BINBYTES", "BINBYTES", "SHORT_BINUNICODE",
    "BINUNICODE", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT",
    "SETITEM", "SETITEMS", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET",
})


def read_batch(where: str, path: pathlib.Path) -> tuple[np.ndarray, list[int]]:
    """Return the images (N, 3, 32, 32) uint8 and labels of a file; errors name the caller, `where`."""
    data = path.read_bytes()
    try:
        for operation, argument, _ in pickletools.genops(data):
            if operation.name not in _OPERATIONS:
                raise ValueError(f"the operation {operation.name}")
            if operation.name == "LONG_BINPUT" and int(argument or 0) > len(data):
                raise ValueError("a place beyond its end")
        batch = _Unpickler(io.BytesIO(data), encoding="bytes").load()
        return _images_and_labels(batch)
    except (ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, pickle.UnpicklingError) as error:
        expected = f"a batch of CIFAR-10's Python version (labels, and images of {_PIXELS} uint8)"
        raise foreign_file(where, path, expected, str(error)[:200] or type(error).__name__) from None


def _images_and_labels(batch: Any) -> tuple[np.ndarray, list[int]]:
    if not isinstance(batch, dict):
        raise ValueError(f"a {type(batch).__name__}")
    array, labels = batch.get(b"data"), batch.get(b"labels")
    if not isinstance(array, _Array) or not isinstance(labels, list):
        raise ValueError("a dict without an array of data and a list of labels")
    if not all(type(label) is int and 0 <= label < _CLASSES for label in labels):
        raise ValueError(f"labels that are not ints from 0 to {_CLASSES - 1}")
    version, shape, dtype, column_major, content = array.state
    if not isinstance(dtype, _DType) or dtype.name not in (b"u1", "u1") or column_major:
        raise ValueError("data that is not an array of uint8 in rows")
    if shape != (len(labels), _PIXELS) or type(content) is not bytes or len(content) != len(labels) * _PIXELS:
        raise ValueError(f"data of another size than {len(labels)} labels have")
    return np.frombuffer(content, np.uint8).reshape(-1, 3, 32, 32), labels


# `Any`, as typeshed describes no part of this class.
_PYTHON_UNPICKLER: Final[Any] = pickle._Unpickler


class _Unpickler(_PYTHON_UNPICKLER):  # type: ignore[misc]
    """Knows four names, and gives stand-ins for them; keys of dicts are bytes or text.

    In Python, not in C: a key is checked before it is hashed. The hash of nested tuples has no limit of depth, where
    the stack ends, and takes time that doubles with each level.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(_PYTHON_UNPICKLER.dispatch)

    def load_setitem(self) -> None:
        """Store the two last values of the stack as an item of the dict before them."""
        _check_keys(self.stack[-2:])
        super().load_setitem()

    def load_setitems(self) -> None:
        """Store the values of the stack since the mark as items of the dict before it."""
        _check_keys(self.stack)
        super().load_setitems()

    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems

    def find_class(self, module: str, name: str) -> Any:
        if (module.split(".")[0], name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"the name {module}.{name}")
        return _STAND_INS[module.split(".")[0], name]


def _check_keys(items: list[Any]) -> None:
    for key in items[::2]:
        if type(key) not in (bytes, str):
            raise ValueError(f"a {type(key).__name__} as a key")


class _Callable:
    """Stands for a class or function; only its call does something."""

    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise ValueError("a state for a class")


class _DType:
    """Stands for a dtype: its name."""

    __slots__ = ("name",)

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        """Ignore byte order, fields and alignment: only single bytes are accepted."""


class _Array:
    """Stands for an array: its state, as in the file."""

    __slots__ = ("state",)

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = (None,) * 5

    def __setstate__(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != 5:
            raise ValueError("an array of an unknown form")
        self.state = state


def _encoded(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding not in ("latin1", b"latin1"):
        raise ValueError("text in another encoding")
    return text.encode("latin1")


_STAND_INS: Final = {
    ("numpy", "_reconstruct"): _Callable(_Array), ("numpy", "ndarray"): _Callable(_Array),
    ("numpy", "dtype"): _Callable(_DType), ("_codecs", "encode"): _Callable(_encoded),
}
