"""Loaders of torch and grain, sized or not, feed the numbers of a list of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from mixtrain import Model, backend, nn
from tests.train.loader_rows import BATCH, Rows, X, Y, rows

BATCHES = [(X[start:start + BATCH], Y[start:start + BATCH]) for start in range(0, len(X), BATCH)]


def torch_loader(kind: str) -> Any:
    data = pytest.importorskip("torch.utils.data", reason="needs pip install torch")

    class Stream(data.IterableDataset):
        def __iter__(self) -> Any:
            return rows()

    if kind == "unsized":
        return data.DataLoader(Stream(), batch_size=BATCH)
    return data.DataLoader(Rows(), batch_size=BATCH)


def grain_loader(kind: str) -> Any:
    grain = pytest.importorskip("grain", reason="needs pip install grain")
    if kind == "sized":
        return grain.MapDataset.source(Rows()).batch(BATCH)
    if kind == "unsized":
        return grain.MapDataset.source(Rows()).to_iter_dataset().batch(BATCH)
    return grain.DataLoader(
        data_source=Rows(), sampler=grain.samplers.SequentialSampler(len(X), grain.sharding.NoSharding()),
        operations=[grain.transforms.Batch(BATCH)], worker_count=0,
    )


LOADERS = {
    "torch": (torch_loader, "sized"),
    "torch, unsized": (torch_loader, "unsized"),
    "grain MapDataset": (grain_loader, "sized"),
    "grain IterDataset": (grain_loader, "unsized"),
    "grain DataLoader": (grain_loader, "loader"),
}


def trained(dataset: Any, sink: bool) -> tuple[list[float], list[float], dict[str, Any], np.ndarray]:
    """Train, fit and evaluate; return the losses, the result of `eval` and the weights."""
    net = nn.Dense(6, 1, weight_init="ones", has_bias=False)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"mse"}, amp_level="O0")
    first = model.train(2, dataset, dataset_sink_mode=sink, verbose=0)["loss"]
    second = model.fit(1, dataset, dataset, dataset_sink_mode=sink, verbose=0)["loss"]
    return first, second, model.eval(dataset), backend.to_numpy(net.weight)


@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_feeds_what_a_list_of_its_batches_feeds(name: str, sink: bool) -> None:
    make, kind = LOADERS[name]
    if sink and kind != "sized":
        with pytest.raises(ValueError, match="must know its size; got one of unknown size. Write dataset_sink_mode=F"):
            trained(make(kind), sink)
        return
    result, expected = trained(make(kind), sink), trained(BATCHES, sink)
    assert result[:3] == expected[:3]
    assert np.array_equal(result[3], expected[3])


def torch_workers() -> Any:
    data = pytest.importorskip("torch.utils.data", reason="needs pip install torch")
    # Forked beside the threads of TensorFlow or JAX, a process can hang.
    return data.DataLoader(
        Rows(), batch_size=BATCH, num_workers=2, multiprocessing_context="spawn", persistent_workers=True
    )


def grain_workers() -> Any:
    grain = pytest.importorskip("grain", reason="needs pip install grain")
    return grain.DataLoader(
        data_source=Rows(), sampler=grain.samplers.SequentialSampler(len(X), grain.sharding.NoSharding()),
        operations=[grain.transforms.Batch(BATCH)], worker_count=2,
    )


@pytest.fixture
def parsed_flags() -> Iterator[None]:
    """What `absl.app.run` does before a program that starts grain's workers."""
    flags = pytest.importorskip("absl.flags", reason="needs pip install absl-py").FLAGS
    parsed = flags.is_parsed()
    flags.mark_as_parsed()
    yield
    if not parsed:
        flags.unparse_flags()


@pytest.mark.usefixtures("parsed_flags")
@pytest.mark.parametrize("make", [torch_workers, grain_workers])
def test_a_loader_with_workers_feeds_what_a_list_of_its_batches_feeds(make: Callable[[], Any]) -> None:
    def losses(dataset: Any) -> list[float]:
        net = nn.Dense(6, 1, weight_init="ones", has_bias=False)
        model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), amp_level="O0")
        return [float(loss) for loss in model.train(2, dataset, verbose=0)["loss"]]

    loader = make()
    batches = [tuple(np.asarray(part) for part in batch) for batch in loader]
    assert sum(len(x) for x, _ in batches) == len(X)
    assert losses(loader) == losses(batches)
