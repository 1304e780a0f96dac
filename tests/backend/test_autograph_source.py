"""Functions that return from some branches: what decides, closures, defaults and `super` stay as they were."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain
from mixtrain import Tensor, nn
from tests.backends import ON_TENSORFLOW, quick_every

SHIFT = 100


def chain(x: Any, step: int = 1) -> Any:
    if x.sum() > 10:
        return x * 2
    elif x.sum() > 0:
        return x + step
    return -x


def nested(x: Any) -> Any:
    y = x + 1
    if y.sum() > 0:
        if y.sum() > 10:
            return y * 2
        y = y + SHIFT
    else:
        y = -y
    y = y * 3
    return y


def early(x: Any, *, limit: int = 10) -> Any:
    total = x
    for _ in range(limit):
        if total.sum() > 5:
            break
        total = total + x
    return total


@quick_every(3)
@pytest.mark.parametrize(
    ("function", "expected"),
    [(chain, {20.0: 40.0, 1.0: 2.0, -3.0: 3.0}), (nested, {20.0: 42.0, 1.0: 306.0, -3.0: 6.0}),
     (early, {4.0: 8.0, 0.5: 5.5, 7.0: 7.0})],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_compiled_function_takes_the_branch_that_python_would(function: Any, expected: dict[float, float]) -> None:
    compiled = mixtrain.jit(function)
    for value, result in expected.items():
        assert compiled(Tensor([value])).asnumpy().tolist() == function(Tensor([value])).asnumpy().tolist() == [result]


def test_closures_and_super_are_those_of_the_class() -> None:
    factor = 3.0

    class Base(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * factor

    class Choosing(Base):
        def construct(self, x: Any) -> Any:
            if x.sum() > 10:
                return super().construct(x)
            elif x.sum() > 0:
                return x + factor
            return -x

    network = mixtrain.Model(Choosing())
    assert [float(network.predict(Tensor([value]))[0]) for value in (20.0, 1.0, -3.0)] == [60.0, 4.0, 3.0]


@pytest.mark.skipif(not ON_TENSORFLOW, reason="about the TensorFlow backend")
def test_a_function_without_such_a_branch_or_with_private_names_is_left_alone() -> None:
    from mixtrain.backend.tensorflow.autograph_source import prepared

    def straight(x: Any) -> Any:
        if x is None:
            x = 0
        return x

    class Private:
        __limit = 10

        def call(self, x: Any) -> Any:
            if x > self.__limit:
                return x
            return -x

    assert prepared(straight) is straight
    assert prepared(Private.call) is Private.call
    assert prepared(chain)(3.0 * _One()).step == 2  # type: ignore[attr-defined]


class _One:
    """A number that counts what is done with it."""

    def __init__(self, step: int = 0) -> None:
        self.step = step

    def sum(self) -> int:
        return 1

    def __rmul__(self, other: float) -> _One:
        return _One(self.step + 1)

    __add__ = __rmul__
