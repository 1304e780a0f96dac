"""Options of MindSpore's compiler are accepted without effect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Tensor, nn


def test_decorators_return_what_they_are_given() -> None:
    class Twice:
        def __call__(self, x: float) -> float:
            return 2 * x

    assert ms.jit_class(Twice) is Twice and ms.ms_class is ms.jit_class
    with pytest.raises(TypeError, match="jit_class: cls must be a class"):
        ms.jit_class(Twice())
    assert ms.no_inline(abs) is abs and ms.lazy_inline(attrs=None)(abs) is abs
    assert ms.mutable((1, 2)) == (1, 2) and float(ms.recompute(lambda x: x + 1, Tensor(1.0))) == 2.0


def test_a_class_may_be_called_in_a_compiled_function() -> None:
    @ms.jit_class
    class Scaled:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, x: Tensor) -> Tensor:
            return x * self.factor

    scaled = Scaled(3.0)
    assert float(ms.jit(lambda x: scaled(x))(Tensor(2.0))) == 6.0


def test_options_are_kept() -> None:
    config = ms.JitConfig("O1", debug_level="DEBUG")
    net = nn.Dense(2, 2)
    net.set_jit_config(config)
    assert config.jit_config_dict["jit_level"] == "O1" and net.jit_config is config
    assert (ms.STRICT, ms.COMPATIBLE, ms.LAX) == (0, 1, 2)


def test_a_class_made_of_a_refused_name_says_why_too() -> None:
    class OpLogger(ms.MsDispatchMode):
        """Log all operators."""

    with pytest.raises(NotImplementedError, match="mixtrain.MsDispatchMode: it belongs to MindSpore's own compiler"):
        OpLogger()


def test_a_debugging_switch_is_accepted_where_it_changes_nothing() -> None:
    ms.runtime.launch_blocking()


@pytest.mark.parametrize("value", ["a", None, np.ones(1), np.float64(1.0), 1j, [1, "a"], (1, (2, None)), {"a": None}])
def test_only_numbers_and_tensors_are_mutable(value: Any) -> None:
    with pytest.raises(TypeError, match="mutable: input_data must be numbers and Tensors"):
        ms.mutable(value)


def test_what_is_mutable_is_returned() -> None:
    for value in (1, 2.0, True, (), [1, (2.5, ms.Tensor(1.0))], {"a": [1]}, ms.Parameter(1.0)):
        assert ms.mutable(value) is value
    with pytest.raises(TypeError, match="with dynamic_len must be a tuple or list"):
        ms.mutable(ms.Tensor([1.0]), True)
