"""`data_sink`: each call takes the next batches, from the first again after the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain as ms
import mixtrain.dataset as ds
from mixtrain import nn


def batches() -> Any:
    x = np.arange(8, dtype=np.float32).reshape(8, 1) / 8
    return ds.NumpySlicesDataset((x, 2 * x), ["x", "y"], shuffle=False).batch(2)


@pytest.mark.parametrize("config", [None, ms.JitConfig(jit_level="O0")])
@pytest.mark.parametrize("size", [1, 3])
def test_steps_are_those_of_a_loop_over_the_dataset(size: int, config: Any) -> None:
    def losses(sink: bool) -> list[float]:
        network = nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
        optimizer, loss_fn = nn.SGD(network.trainable_params(), 0.1), nn.MSELoss()
        gradient = ms.value_and_grad(lambda x, y: loss_fn(network(x), y), None, optimizer.parameters)

        def step(x: Any, y: Any) -> Any:
            loss, gradients = gradient(x, y)
            optimizer(gradients)
            return loss

        if sink:
            process = ms.data_sink(step, batches(), size, config)
            return [float(process()) for _ in range(4)]
        every = [float(step(*batch)) for _ in range(3) for batch in batches().create_tuple_iterator()]
        return every[size - 1 :: size][:4]

    np.testing.assert_allclose(losses(True), losses(False), 1e-6)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="data_sink: sink_size must be at least 1; got 0"):
        ms.data_sink(print, batches(), 0)
    with pytest.raises(TypeError, match="data_sink: dataset must be a dataset; got list"):
        ms.data_sink(print, [1])
    with pytest.raises(TypeError, match="data_sink: fn must be a function; got int 3"):
        ms.data_sink(3, batches())  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match=r"Write ModelCheckpoint, and train\(..., resume=...\)"):
        ms.train.TrainFaultTolerance()
