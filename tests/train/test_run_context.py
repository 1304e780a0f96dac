"""Callback arguments: who may write what, names that are not there, and the stop request."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mixtrain.train.run_context import CallbackArguments, RunContext


def test_fields_are_attributes_and_items() -> None:
    arguments = CallbackArguments(mode="train", cur_step_num=3)
    assert (arguments.cur_step_num, arguments["cur_step_num"], arguments.get("cur_step_num")) == (3, 3, 3)
    assert "cur_step_num" in arguments
    assert "cur_epoch_num" not in arguments
    assert arguments.get("cur_epoch_num", 7) == 7
    assert not hasattr(arguments, "cur_epoch_num")


def test_one_device_is_what_there_is() -> None:
    arguments = CallbackArguments()
    assert (arguments.parallel_mode, arguments.device_number) == ("stand_alone", 1)


def test_a_callback_keeps_values_of_its_own() -> None:
    arguments = CallbackArguments()
    arguments.init_time = start = time.time()
    arguments["cur_best"] = 2
    arguments.init_time += 1
    assert (arguments.init_time, arguments.cur_best) == (start + 1, 2)


@pytest.mark.parametrize("name", ["cur_step_num", "net_outputs", "optimizer"])
def test_a_field_of_the_loop_cannot_be_written(name: str) -> None:
    with pytest.raises(AttributeError, match=f"cb_params.{name}: the training loop writes it"):
        setattr(CallbackArguments(), name, 1)


def test_a_name_that_is_not_there_gets_the_nearest() -> None:
    arguments = CallbackArguments()
    arguments.cur_best = 2
    message = "cb_params.cur_epoch: there is no such value. Write cb_params.cur_epoch_num"
    with pytest.raises(AttributeError, match=message):
        arguments.cur_epoch  # noqa: B018
    with pytest.raises(AttributeError, match="Write cb_params.cur_best"):
        arguments.curbest  # noqa: B018


def test_a_field_that_is_not_set_yet_says_so() -> None:
    with pytest.raises(AttributeError, match='cb_params.metrics: it is not set at this point of the run. Write get'):
        CallbackArguments().metrics  # noqa: B018


def test_outputs_are_none_before_the_first_step() -> None:
    assert CallbackArguments().net_outputs is None


def test_the_loop_cannot_misspell_a_field() -> None:
    with pytest.raises(AttributeError, match="Write cb_params.net_outputs"):
        CallbackArguments(net_output=1)


def test_lent_fields_are_put_back() -> None:
    arguments = CallbackArguments(mode="train", cur_step_num=3)
    arguments.mine = 0
    with arguments._lent(mode="eval", eval_network="net"):
        arguments._set(cur_step_num=1, metrics={})
        arguments.mine = 5
        assert (arguments.mode, arguments.eval_network, arguments.cur_step_num) == ("eval", "net", 1)
    assert (arguments.mode, arguments.cur_step_num, arguments.mine) == ("train", 3, 5)
    assert "eval_network" not in arguments
    assert "metrics" not in arguments


def test_a_context_passes_arguments_on_and_keeps_the_request() -> None:
    arguments = CallbackArguments()
    context = RunContext(arguments)
    assert context.original_args() is arguments
    assert not context.get_stop_requested()
    context.request_stop()
    assert context.get_stop_requested()


def test_a_context_of_a_dict_serves_in_tests_of_callbacks() -> None:
    arguments = RunContext({"cur_step_num": 2, "mine": 3}).original_args()
    assert (arguments.cur_step_num, arguments.mine) == (2, 3)


@pytest.mark.parametrize("wrong", [None, [1], "x"])
def test_a_context_of_something_else_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="RunContext: original_args must be a CallbackArguments"):
        RunContext(wrong)
