"""Two processes train as one device does on their joint batches, and none of them can poison the other."""

from __future__ import annotations

import contextlib
import pathlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, nn, ops
from tests.backends import ON_TENSORFLOW
from tests.distribution import two_processes
from tests.distribution.compiled import OTHERS, WEIGHTS
from tests.distribution.networks import Records, batches, cnn, images, train, values_of

# Two processes import TensorFlow or JAX, which alone takes seconds.
pytestmark = pytest.mark.slow

Results = list[Mapping[str, Any]]


def free_ports() -> str:
    """Return three ports that are free."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return ",".join(str(listener.getsockname()[1]) for listener in sockets)


def start(module: str, rank: int, ports: str, folder: pathlib.Path, *more: str) -> subprocess.Popen[str]:
    """Start one of two processes."""
    command = [sys.executable, "-m", module, str(rank), ports, str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that both processes write to."""
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def results(folder: pathlib.Path) -> Results:
    """The results of both processes, by check and name."""
    for _ in range(3):
        codes, texts = both("tests.distribution.two_processes", folder)
        # A machine that stood still is no fault of theirs; nor is a port that another program has taken meanwhile, nor
        # a runtime that crashes ("corrupted double-linked list" and a segmentation fault: seen once each, on JAX).
        crashed = {-signal.SIGABRT, -signal.SIGSEGV} & set(codes)
        if not crashed and not re.search("heartbeat|ddress already in use|start gRPC server", "".join(texts)):
            break
    assert codes == [0, 0], "\n".join([f"exit codes {codes}", *errors_of(texts), *(text[-3000:] for text in texts)])
    return [dict(np.load(folder / f"{rank}.npz")) for rank in (0, 1)]


def errors_of(texts: list[str]) -> list[str]:
    """Return the beginnings of the lines that name an error, which may go on with all values of a variable."""
    return [line[:500] for text in texts for line in text.splitlines() if re.match(r"[\w.]+(Error|Exception): ", line)]


def both(module: str, folder: pathlib.Path, *more: str) -> tuple[list[int], list[str]]:
    """Run both processes, and return their exit codes and outputs."""
    ports = free_ports()
    processes = [start(module, rank, ports, folder, *more) for rank in (0, 1)]
    try:
        texts = [process.communicate(timeout=1200)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], texts


def results_of(results: Results, check: str, rank: int = 0) -> dict[str, Any]:
    """Return the results of a check in a process."""
    return {name.partition("/")[2]: value for name, value in results[rank].items() if name.startswith(f"{check}/")}


def weights(numbers: Mapping[str, Any]) -> list[Any]:
    """Return the weights among the results of a check."""
    return [value for name, value in numbers.items() if name[0] == "w"]


def equal(first: Any, second: Any) -> bool:
    return np.array_equal(first, second, equal_nan=True)


def farthest(ours: list[Any], theirs: list[Any]) -> float:
    return max(float(np.abs(first - second).max()) for first, second in zip(ours, theirs, strict=True))


def test_ranks_sizes_and_collectives(results: Results) -> None:
    assert [values["ranks"].tolist() for values in results] == [[0, 2, 0, 2], [1, 2, 1, 2]]
    first, second = (results_of(results, "collectives", rank) for rank in (0, 1))
    assert np.array_equal(first["sum"], [[3, 4], [6, -8]])
    assert np.array_equal(first["max"], [[2, 2], [3, -4]]) and np.array_equal(first["min"], [[1, 2], [3, -4]])
    assert np.array_equal(first["prod"], [[2, 4], [9, 16]])
    assert np.array_equal(first["gather"], [[1, 2], [3, -4], [2, 2], [3, -4]])
    assert np.array_equal(first["scatter"], [[3, 4]]) and np.array_equal(second["scatter"], [[6, -8]])
    assert np.array_equal(np.signbit(first["broadcast"]), [False, True])
    assert np.array_equal(first["gradient"], [[6, 12], [18, -24]])
    assert np.array_equal(second["gradient"], [[12, 12], [18, -24]])
    for name in ("sum", "max", "min", "prod", "gather", "broadcast"):
        assert np.array_equal(first[name], second[name])


@pytest.mark.parametrize(("index", "message"), list(enumerate([
    "set_auto_parallel_context: device_num must be 2: the group sets it; got 4",
    "Broadcast: root_rank must be under the number of processes, 2; got 2",
    "ReduceScatter: the first axis must divide by 2 processes; got (3,)",
    "DistributedGradReducer: degree must be 2, the number of processes; got 4",
    "Model.train: the number of steps in an epoch must be the same in all 2 processes; got '[2, 3] in the order",
])))
def test_what_cannot_be_is_refused_in_both(results: Results, index: int, message: str) -> None:
    for rank in (0, 1):
        assert results_of(results, "settings", rank)["errors"][index].startswith(message)
        assert results_of(results, "settings", rank)["device_num"] == 2


OTHER_CHECKS = ("collectives", "settings", "noise", "formats", "other rates", "interrupted")
CHECKS_THAT_TRAIN = [name for name in two_processes.CHECKS if name not in OTHER_CHECKS]


@pytest.mark.parametrize("check", CHECKS_THAT_TRAIN)
def test_both_processes_hold_the_same_bits(results: Results, check: str) -> None:
    first, second = (results_of(results, check, rank) for rank in (0, 1))
    local = ("accuracy", "losses") + (("loss",) if check == "own train cell" else ())
    assert [name for name in first if name not in local and not equal(first[name], second[name])] == []


@pytest.mark.parametrize("check", ["o0", "o0 sink"])
def test_fifty_steps_of_adam_have_the_numbers_of_one_device(results: Results, check: str) -> None:
    single, both = train(None, batches(*[8] * 50), sink="sink" in check), results_of(results, check)
    assert np.abs(single.records.column("loss") - both["loss"]).max() < 1e-5
    assert farthest(single.weights, weights(both)) < 1e-5


def test_fifty_steps_of_convolutions_have_the_losses_of_one_device(results: Results) -> None:
    single, both = train(None, images(*[8] * 50), network=cnn), results_of(results, "convolutions")
    assert np.abs(single.records.column("loss") - both["loss"]).max() < 1e-5


def test_gradients_are_added_up_once_in_the_requested_dtype(results: Results) -> None:
    for dtype in ("float32", "float16"):
        # TensorFlow joins tensors of one dtype; besides those of the step there are the rows of the processes.
        weights, others = (1, 1 if dtype == "float32" else 2) if ON_TENSORFLOW else (WEIGHTS, OTHERS + 1)
        assert results_of(results, "formats")[dtype].tolist() == sorted([dtype] * weights + ["float32"] * others)


def test_half_sums_of_gradients_are_near_those_of_one_device(results: Results) -> None:
    single, both = train(None, batches(*[8] * 5)), results_of(results, "half")
    assert 1e-7 < farthest(single.weights, weights(both)) < 5 * 0.01 * 2.0**-3


def test_batches_of_unequal_rows_count_by_their_rows(results: Results) -> None:
    for name, sizes in (("unequal rows", [8] * 5), ("every size", [2, 3, 4, 5])):
        single, both = train(None, batches(*sizes)), results_of(results, name)
        assert np.abs(single.records.column("loss") - both["loss"]).max() < 1e-6
        assert farthest(single.weights, weights(both)) < 1e-6


def test_accumulated_gradients_are_those_of_one_device(results: Results) -> None:
    single = train(None, batches(4, 4, 8, 8), accumulate_steps=3)
    assert farthest(single.weights, weights(results_of(results, "accumulated"))) < 1e-6


@pytest.mark.parametrize("storage", two_processes.STORAGES)
def test_weights_in_half_are_near_those_of_one_device(results: Results, storage: str) -> None:
    half = {"amp_level": "O2", "cast_model_type": "bfloat16", **two_processes.STORAGES[storage]}
    single, both = train(None, batches(*[8] * 12), **half), results_of(results, f"weights in half {storage}")
    assert np.abs(single.records.column("loss") - both["loss"]).max() < 0.02


@pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")
def test_skips_and_scales_at_o2_are_those_of_one_device(results: Results) -> None:
    data = batches(*[8] * 12)
    for step, value in two_processes.FAULTS.items():
        data[step][0][6] = value
    single = train(None, data, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10, 2, 3))
    both = results_of(results, "scales")
    assert np.flatnonzero(both["overflow"]).tolist() == list(two_processes.FAULTS)
    for name in ("overflow", "loss_scale"):
        assert np.array_equal(single.records.column(name), both[name])


@pytest.mark.parametrize("check", ["host faulty", "sink faulty", "sink first", "eager faulty"])
def test_a_process_that_overflows_alone_leaves_no_trace(results: Results, check: str) -> None:
    for rank in (0, 1):
        checks = (f"skips {check}", f"skips {check.split()[0]} control")
        faulty, control = (results_of(results, name, rank) for name in checks)
        assert (int(faulty.pop("skipped")[0]), int(control.pop("skipped")[0])) == (5, 0)
        assert len(faulty) > 20
        assert [name for name in faulty if not np.array_equal(faulty[name], control[name])] == []


def one_process_of_cells() -> tuple[list[float], list[Any]]:
    """Return the losses and weights of a network of Cells that one process trains on the joint batches."""
    mixtrain.set_seed(0)
    net, loss, optimizer = two_processes.cells()
    records = Records()
    Model(net, loss, optimizer).train(1, batches(*[8] * 10), records, verbose=0)
    return records.column("loss").tolist(), [weight.asnumpy() for weight in net.trainable_params()]


@pytest.mark.parametrize("check", ["by hand compiled", "by hand eager", "of cells"])
def test_steps_by_hand_and_sharded_datasets_are_those_of_one_device(results: Results, check: str) -> None:
    losses, values = one_process_of_cells()
    name = "loss" if check == "of cells" else "losses"
    mean = np.mean([results_of(results, check, rank)[name] for rank in (0, 1)], axis=0)
    assert np.allclose(mean, losses, atol=1e-6)
    assert farthest(values, weights(results_of(results, check))) < 1e-6


def test_a_train_cell_of_the_users_own_reduces_and_skips(results: Results) -> None:
    numbers = results_of(results, "own train cell")
    assert np.flatnonzero(numbers["overflows"]).tolist() == list(two_processes.FAULTS)
    assert all(np.isfinite(value).all() for value in weights(numbers))


def test_sync_batch_norm_normalizes_by_the_joint_batch(results: Results) -> None:
    mixtrain.set_seed(0)
    model, records, both = two_processes.synchronized_model(1), Records(), results_of(results, "synchronized")
    model.train(1, batches(*[8] * 10), records, verbose=0)
    values = [parameter.asnumpy() for parameter in model.predict_network.get_parameters()]
    assert np.abs(records.column("loss") - both["loss"]).max() < 1e-6
    assert farthest(values, weights(both)) < 1e-5


def test_sparse_gradients_are_those_of_one_device(results: Results) -> None:
    mixtrain.set_seed(0)
    model, data = two_processes.embedding_model()
    model.train(1, data, verbose=0)
    assert farthest(values_of(model.predict_network), weights(results_of(results, "embedding"))) < 1e-6


def test_processes_draw_other_numbers_that_can_be_repeated(results: Results) -> None:
    first, second = (results_of(results, "noise", rank)["kept"] for rank in (0, 1))
    assert len({*first[0].ravel(), *second[0].ravel()}) == 4
    assert np.array_equal(first[0], first[1]) and np.array_equal(second[0], second[1])


def test_a_stop_that_one_process_asks_for_ends_all_at_the_same_step(results: Results) -> None:
    for rank in (0, 1):
        steps = {name: int(count) for name, count in results_of(results, "stopped", rank).items()}
        assert steps == {"at a step": 3, "after an epoch": 6, "never": 12}


def test_a_learning_rate_of_one_process_alone_is_refused_in_both(results: Results) -> None:
    for rank in (0, 1):
        assert str(results_of(results, "other rates", rank)["error"]).startswith(
            "Model.train: the learning rate after an epoch must be the same in all 2 processes; got '[0.05, 0.0125] in "
        )


def test_one_process_goes_on_from_a_checkpoint_of_two(results: Results, folder: pathlib.Path) -> None:
    data, values = batches(*[8] * 6), []
    for resume in (None, folder / "checkpoints"):
        mixtrain.set_seed(0)
        model = two_processes.to_be_resumed()
        model.train(2, data, verbose=0, resume=resume)
        values.append([*values_of(model.predict_network), model.train_network.scale_sense])
    assert farthest(*(list(map(np.asarray, arrays)) for arrays in values)) < 1e-6


def test_one_process_is_a_group_of_one() -> None:
    x = mixtrain.Tensor(np.ones(2, np.float32))
    for operation in (ops.AllReduce(), ops.AllGather(), ops.ReduceScatter()):
        assert np.array_equal(operation(x).asnumpy(), [1, 1])
    assert np.array_equal(nn.DistributedGradReducer([], degree=1)((x,))[0].asnumpy(), [1, 1])
