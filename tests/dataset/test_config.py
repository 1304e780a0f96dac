"""The settings: each is what it was set to, and a wrong value is named."""

from __future__ import annotations

import inspect

import pytest

from mixtrain import dataset as ds
from mixtrain.dataset import config, worker_settings

WORDS = {"set_error_samples_mode", "set_multiprocessing_start_method", "set_video_backend"}
SETTERS = sorted(
    name for name in set(config.__all__) - WORDS if name.startswith("set_") and f"g{name[1:]}" in config.__all__
)


@pytest.fixture(autouse=True)
def restored_settings(monkeypatch):
    monkeypatch.setattr(worker_settings, "_settings", dict(worker_settings._settings))


@pytest.mark.parametrize("name", SETTERS)
def test_what_was_set_can_be_asked_for(name):
    setter, getter = getattr(config, name), getattr(config, f"g{name[1:]}")
    default = getter()
    value = not default if isinstance(default, bool) else 7
    setter(value)
    assert getter() == value
    argument = next(iter(inspect.signature(setter).parameters))
    assert argument in setter.__doc__ and argument.isidentifier()


@pytest.mark.parametrize("name", SETTERS)
def test_a_value_of_another_kind_is_named(name):
    with pytest.raises(TypeError, match=f"config.{name}: .* must be"):
        getattr(config, name)("many")


def test_the_defaults_are_the_references():
    assert (config.get_num_parallel_workers(), config.get_prefetch_size()) == (8, 16)
    assert (config.get_monitor_sampling_interval(), config.get_callback_timeout()) == (1000, 60)
    assert (config.get_enable_shared_mem(), config.get_numa_enable(), config.get_auto_num_workers()) == (
        True, False, False,
    )
    assert config.get_multiprocessing_timeout_interval() == 300


def test_what_only_can_be_set_is_accepted():
    config.set_sending_batches(0)
    config.set_enable_autotune(True, "tuned")
    assert config.get_enable_autotune() is True


def test_the_older_home_of_set_seed_is_known():
    assert ds.set_seed is config.set_seed


def test_settings_of_one_value_refuse_others() -> None:
    config.set_error_samples_mode(config.ErrorSamplesMode.RETURN)
    assert config.get_error_samples_mode() is config.ErrorSamplesMode.RETURN
    with pytest.raises(NotImplementedError, match="a filter before it"):
        config.set_error_samples_mode(config.ErrorSamplesMode.SKIP)
    with pytest.raises(NotImplementedError, match="function of map that looks"):
        config.set_debug_mode(True, [print])
    with pytest.raises(ValueError, match="fork, spawn"):
        config.set_multiprocessing_start_method("thread")
    config.set_video_backend("CPU")
    assert (config.get_debug_mode(), config.get_video_backend()) == (False, "CPU")
    assert config.get_multiprocessing_start_method() == "fork"
