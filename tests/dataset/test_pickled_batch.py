"""CIFAR-10's pickles are read as bytes and ints alone; any other is refused with the name of the file."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

from mixtrain.dataset.pickled_batch import read_batch
from mixtrain.mindrecord import Cifar10ToMR

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 3072)).astype(np.uint8)


class Call:
    """Pickled as a call with a state."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


def forged_array() -> Call:
    """Return an array of objects whose addresses are bytes of the file, by NumPy's own functions alone."""
    dtype = Call(np.dtype, ("V8", False, True), (3, "|", None, ("f",), {"f": (np.dtype("O"), 0)}, 8, 1, 0))
    state = (1, (1,), dtype, False, b"A" * 8)
    return Call(np._core.multiarray._reconstruct, (np.ndarray, (0,), b"b"), state)


@pytest.mark.parametrize(("protocol", "python_2"), [(2, True), (2, False), (4, False)])
def test_images_and_labels_are_those_that_were_pickled(
    protocol: int, python_2: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "data_batch_1"
    keys = ("data", "labels") if python_2 else (b"data", b"labels")
    content = pickle.dumps(dict(zip(keys, (IMAGES, [3, 0, 9]), strict=True)), protocol)
    if python_2:  # Its text is read as bytes.
        content = content.replace(b"X\x04\0\0\0data", b"U\x04data").replace(b"X\x06\0\0\0l", b"U\x06l")
    path.write_bytes(content)
    images, found = read_batch("test", path)
    assert np.array_equal(images, IMAGES.reshape(3, 3, 32, 32)) and found == [3, 0, 9]


@pytest.mark.parametrize(("content", "said"), [
    (lambda: pickle.dumps({b"data": forged_array(), b"labels": [0]}, 2), "not an array of uint8"),
    (lambda: pickle.dumps({b"data": IMAGES.astype(np.int8), b"labels": [0, 1, 2]}, 2), "not an array of uint8"),
    (lambda: pickle.dumps({b"data": IMAGES, b"labels": [0, 1]}, 2), "another size than 2 labels"),
    (lambda: pickle.dumps({b"data": IMAGES, b"labels": [0, 1, 10]}, 2), "labels that are not ints from 0 to 9"),
    (lambda: pickle.dumps({b"data": IMAGES, b"labels": IMAGES[:, 0]}, 2), "a list of labels"),
    (lambda: pickle.dumps([IMAGES], 2), "a list"),
    (lambda: pickle.dumps({b"data": Call(print, ("x",))}, 2), "the name builtins.print|the name __builtin__.print"),
    (lambda: pickle.dumps({b"data": Call(np.dtype, (b"u1",), (3,))}, 2), "without an array"),
    (lambda: b"\x80\x02cnumpy\nndarray\n}b.", "a state for a class"),
    (lambda: b"\x80\x02cnumpy\nndarray\nNU\x05_call\x86b.", "a state for a class"),
    (lambda: b"\x80\x02(cos\nsystem\nU\x02lso.", "the operation OBJ"),
    (lambda: b"\x80\x02}r\xff\xff\xff\x7f.", "a place beyond its end"),
    (lambda: b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", ""),
    pytest.param(lambda: b"\x80\x02})" + b"\x85" * 2_000_000 + b"Ns.", "a tuple as a key", marks=pytest.mark.slow),
    pytest.param(lambda: b"\x80\x02}()" + b"\x85" * 2_000_000 + b"Nu.", "a tuple as a key", marks=pytest.mark.slow),
    (lambda: b"\x80\x04\x95" + b"\xff" * 8 + b"}.", "frame size"),
    (lambda: b"text", ""), (lambda: b"", ""), (lambda: pickle.dumps({b"data": IMAGES}, 2)[:-900], ""),
])
def test_any_other_file_is_refused_by_name(content: Any, said: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "data_batch_1").write_bytes(content())
    with pytest.raises(ValueError, match=f"Cifar10ToMR: expected a batch of CIFAR-10.*/data_batch_1; got .*({said})"):
        Cifar10ToMR(str(tmp_path), str(tmp_path / "out")).transform()
    assert not (tmp_path / "out").exists()
