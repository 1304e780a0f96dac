"""Scripts that time a step and print the memory of the device run as on MindSpore, whose CPU counts nothing, either."""

from __future__ import annotations

import pytest

import mixtrain
from mixtrain import backend, hal, ops, runtime
from mixtrain.backend.info import DeviceMemory
from tests.backends import ON_TENSORFLOW


def test_what_a_loop_prints_of_a_cpu_is_what_mindspore_prints() -> None:
    runtime.reset_peak_memory_stats()
    assert runtime.max_memory_allocated() == hal.memory_reserved("CPU") == mixtrain.memory_allocated() == 0
    assert runtime.memory_stats() == {
        "total_reserved_memory": 0, "total_allocated_memory": 0, "total_idle_memory": 0, "total_eager_free_memory": 0,
        "max_reserved_memory": 0, "max_allocated_memory": 0,
        "common_mem_pool_stats": {"block_unit_size": 0, "block_counts": 0, "blocks_info": {}},
        "persistent_mem_pool_stats": {"block_counts": 0, "block_unit_size": 0, "blocks_info": {}},
    }
    assert (hal.is_available("CPU"), hal.is_available("Ascend"), hal.device_count()) == (True, False, 1)


def test_the_memory_is_the_one_that_the_backend_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "device_memory", lambda: DeviceMemory(2**20, 3 * 2**20, 5 * 2**20, 7 * 2**20))
    assert [getattr(runtime, name)() // 2**20 for name in (
        "memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved",
    )] == [1, 3, 5, 7]
    assert runtime.memory_stats()["total_idle_memory"] == 2 * 2**20
    assert "Max allocated memory             5.0 MiB" in runtime.memory_summary()
    monkeypatch.setattr(backend, "restart_peak", lambda: False)
    with pytest.warns(UserWarning, match="JAX keeps the peak of the whole process"):
        runtime.reset_peak_memory_stats()


def test_work_under_another_stream_computes_the_same_and_events_time_it() -> None:
    first, last, stream = runtime.Event(enable_timing=True), runtime.Event(enable_timing=True), runtime.Stream()
    with runtime.StreamCtx(stream):
        first.record()
        total = ops.ones((64, 64)).sum()
        last.record(stream)
    assert float(total) == 4096.0 and first.elapsed_time(last) > 0 and last.query()
    assert stream == runtime.current_stream() and len({stream, runtime.default_stream()}) == 1
    runtime.synchronize()
    with pytest.raises(RuntimeError, match=r"expected two recorded events with timing; got one without"):
        first.elapsed_time(runtime.Event())
    with pytest.raises(TypeError, match="ctx_stream must be a Stream or None; got str 's'"):
        runtime.StreamCtx("s")  # type: ignore[arg-type]


@pytest.mark.skipif(ON_TENSORFLOW, reason="about the JAX backend")
def test_on_jax_synchronizing_waits_for_what_was_dispatched() -> None:
    import jax

    product = ops.matmul(ops.ones((800, 800)), ops.ones((800, 800)))
    runtime.synchronize()
    assert isinstance(product.backend_tensor(), jax.Array) and product.backend_tensor().is_ready()
