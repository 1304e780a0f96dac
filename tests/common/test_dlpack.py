"""Tensors to and from other libraries by DLPack, and from bytes."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain as ms
from mixtrain.utils import dlpack


def test_a_tensor_goes_by_dlpack_and_comes_back() -> None:
    x = ms.Tensor(np.arange(6).reshape(2, 3), ms.float16)
    sent = dlpack.to_dlpack(x)
    assert np.array_equal(np.from_dlpack(sent), x.asnumpy())
    back = dlpack.from_dlpack(sent)
    assert isinstance(back, ms.Tensor) and back.dtype == ms.float16 and back.asnumpy().tolist() == x.asnumpy().tolist()
    with pytest.raises(TypeError, match="to_dlpack: tensor must be a Tensor"):
        ms.to_dlpack([1.0])
    with pytest.raises(TypeError, match="from_dlpack: dlpack must have a method"):
        ms.from_dlpack([1.0])


def test_a_tensor_from_bytes() -> None:
    data = bytearray([1, 2, 3, 4, 5, 6])
    assert str(ms.frombuffer(data, dtype=ms.uint8)) == "[1 2 3 4 5 6]"
    assert ms.frombuffer(data, ms.uint16, 2, 2).asnumpy().tolist() == [1027, 1541]
    with pytest.raises(ValueError, match="buffer size must be a multiple"):
        ms.frombuffer(data)


def test_the_installation_computes(capsys: pytest.CaptureFixture[str]) -> None:
    ms.run_check()
    assert f"mixtrain version: {ms.__version__}" in capsys.readouterr().out
