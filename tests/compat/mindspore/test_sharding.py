"""Layouts and settings of the search for strategies: stored as MindSpore stores them."""

from __future__ import annotations

from typing import Any

import pytest

import mixtrain
from mixtrain import Layout, ops
from mixtrain.parallel import set_algo_parameters
from mixtrain.parallel.shard import Layout as SameLayout


def test_layouts_count_axes_from_the_last() -> None:
    layout = Layout((2, 2, 2), ("dp", "sp", "mp"))
    assert layout("dp", ("sp", "mp"), "None").to_dict() == {  # As printed by MindSpore 2.10.
        "device_matrix": (2, 2, 2), "tensor_map": (2, (1, 0), -1), "interleaved_parallel": False,
        "alias_name": ("dp", "sp", "mp"), "rank_list": [0, 1, 2, 3, 4, 5, 6, 7],
    }
    first, second = layout("dp"), layout("mp")
    assert (first.to_dict()["tensor_map"], second.to_dict()["tensor_map"]) == ((2,), (0,)) and SameLayout is Layout
    one = Layout((1, 1), ("dp", "interleaved_parallel"), [3])
    assert one("None").to_dict()["interleaved_parallel"] and one("dp").to_dict()["rank_list"] == [3]
    x = ops.ones((2, 2))
    assert ops.MatMul().shard((one("dp", "None"), one("None", "dp")))(x, x).asnumpy().tolist() == [[2.0, 2.0]] * 2


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: Layout([2], ("a",)), TypeError, "device_matrix must be a tuple"),  # type: ignore[arg-type]
    (lambda: Layout((2.0,), ("a",)), TypeError, "each of device_matrix must be a int"),  # type: ignore[arg-type]
    (lambda: Layout((2, 2), ("a",)), ValueError, "alias_name must name each axis"),
    (lambda: Layout((2, 2), ("a", "a")), ValueError, "names must differ"),
    (lambda: Layout((2,), ("None",)), ValueError, "names must differ"),
    (lambda: Layout((1, 2), ("interleaved_parallel", "a")), ValueError, "must be the last name"),
    (lambda: Layout((2,), ("a",), [0]), ValueError, "rank_list must hold 2 ranks"),
    (lambda: Layout((2,), ("a",))("b"), ValueError, "each axis must be one of"),
    (lambda: Layout((2,), ("a",))("a", "a"), ValueError, "each axis must be one of .*, once"),
    (lambda: Layout((2,), ("a",)).to_dict(), ValueError, "the layout of a tensor"),
    (lambda: set_algo_parameters(fully_use_devices=1), TypeError, "fully_use_devices must be a bool"),
    (lambda: set_algo_parameters(algo_approxi_epsilon=2.0), ValueError, "out of range"),
    (lambda: set_algo_parameters(tensor_slice_align_size=0), ValueError, "out of range"),
    (lambda: set_algo_parameters(devices=True), ValueError, "setting must be one of"),
    (lambda: mixtrain.get_algo_parameters("devices"), ValueError, "attr_key must be one of"),
])
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_settings_are_stored_until_they_are_reset() -> None:
    set_algo_parameters(algo_approxi_epsilon=0.5, tensor_slice_align_size=32)
    assert mixtrain.get_algo_parameters("algo_approxi_epsilon") == 0.5
    assert mixtrain.get_algo_parameters("tensor_slice_align_size") == 32
    mixtrain.reset_algo_parameters()
    assert mixtrain.get_algo_parameters("tensor_slice_align_size") == 16
