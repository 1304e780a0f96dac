"""Train cells of scripts read the settings of parallel training from MindSpore's own modules."""

from __future__ import annotations

import pytest

import mixtrain
from mixtrain.parallel._auto_parallel_context import auto_parallel_context
from mixtrain.parallel._utils import (
    _get_device_num,
    _get_enable_parallel_optimizer,
    _get_global_rank,
    _get_gradients_mean,
    _get_parallel_mode,
    _get_pipeline_stages,
)


def test_the_getters_return_what_was_set() -> None:
    assert not auto_parallel_context().get_device_num_is_set()
    try:
        mixtrain.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=1)
        assert auto_parallel_context().get_device_num_is_set()
        assert _get_parallel_mode() == auto_parallel_context().get_parallel_mode() == "data_parallel"
        assert _get_gradients_mean() is True
    finally:
        mixtrain.reset_auto_parallel_context()
    assert (_get_device_num(), _get_global_rank(), _get_pipeline_stages()) == (1, 0, 1)
    assert not _get_gradients_mean() and not _get_enable_parallel_optimizer()


def test_setters_set_and_names_that_are_no_setting_are_refused() -> None:
    try:
        auto_parallel_context().set_gradients_mean(True)
        auto_parallel_context().set_all_reduce_fusion_split_indices([140])
        assert mixtrain.get_auto_parallel_context("gradients_mean") is True
    finally:
        mixtrain.reset_auto_parallel_context()
    with pytest.raises(ValueError, match="attr_key"):
        auto_parallel_context().get_shape()
    with pytest.raises(AttributeError, match="Write get_... or set_..."):
        auto_parallel_context().shape  # noqa: B018
