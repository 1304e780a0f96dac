"""Two processes whose devices are one mesh train as one device does on their joint batches."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import OverflowMonitor
from mixtrain.serialization.store import read_file, write_file
from tests.backends import ON_TENSORFLOW
from tests.distribution.networks import batches
from tests.distribution.test_processes import Results, both, equal, farthest, results_of, weights

if not ON_TENSORFLOW:
    from tests.distribution.joint_process import CHECKS, data, model, trained

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(ON_TENSORFLOW, reason="Keras divides weights with JAX alone"),
]
TRAIN: dict[str, dict[str, Any]] = {
    "sharded": {}, "replicas": {}, "half": {"amp_level": "O2"}, "copies": {"amp_level": "O3"},
    "accumulated": {"accumulate_steps": 2}, "indivisible": {"rows": 6},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that both processes write to."""
    return tmp_path_factory.mktemp("joint")


@pytest.fixture(scope="module")
def results(folder: pathlib.Path) -> Results:
    """The results of both processes, by check and name."""
    codes, texts = both("tests.distribution.joint_process", folder)
    assert codes == [0, 0] or all("\nended\n" in text for text in texts), "\n".join(text[-3000:] for text in texts)
    return [dict(np.load(folder / f"{rank}.npz")) for rank in (0, 1)]


@pytest.mark.parametrize("check", TRAIN)
def test_they_train_as_one_device(results: Results, check: str) -> None:
    options = dict(TRAIN[check])
    rows = options.pop("rows", 8)
    one = model(**options)
    expected = trained(one, data(rows))
    values = one.eval(batches(8, 8))
    close = 1e-5 if "amp_level" not in options else 2e-2
    for rank in (0, 1):
        ours = results_of(results, check, rank)
        np.testing.assert_allclose(ours["loss"], expected["loss"], rtol=close)
        assert equal(ours["overflow"], expected["overflow"]) and equal(ours["loss_scale"], expected["loss_scale"])
        assert ours["overflow"].sum() == 2
        assert farthest(weights(ours), weights(expected)) < close
        np.testing.assert_allclose(ours["evaluated"], [values["loss"], values["accuracy"]], rtol=max(close, 1e-5))
        own = batches(8, 8)[0][0][4 * rank : 4 * rank + 4]
        np.testing.assert_allclose(ours["predicted"], one.predict(own), atol=close)


@pytest.mark.parametrize("check", TRAIN)
def test_both_hold_the_same_bits(results: Results, check: str) -> None:
    first, second = (results_of(results, check, rank) for rank in (0, 1))
    assert [name for name in first if name != "predicted" and not equal(first[name], second[name])] == []


def test_the_layer_that_overflows_is_named_in_both(results: Results) -> None:
    monitor = OverflowMonitor(verbose=False)
    trained(model(amp_level="O2"), data(), monitor, epochs=1)
    found = [row.finding for row in monitor.records]
    expected = [f"{each.kind} {each.layer} {each.scale}" for each in found]
    assert expected and all(results_of(results, "named", rank)["found"].tolist() == expected for rank in (0, 1))


def test_a_run_goes_on_from_the_files_that_the_first_process_writes(results: Results) -> None:
    expected = trained(model(), data())
    for rank in (0, 1):
        ours = results_of(results, "saved", rank)
        resumed = {name.removeprefix("resumed "): value for name, value in ours.items() if "resumed" in name}
        np.testing.assert_allclose(resumed["loss"], expected["loss"][6:], rtol=1e-5)
        assert farthest(weights(resumed), weights(expected)) < 1e-5


def test_one_process_goes_on_with_what_two_have_begun(results: Results, folder: pathlib.Path) -> None:
    assert results  # Both have ended.
    expected, resumed = trained(model(), data()), trained(model(seed=5), data(), resume=folder / "joint" / "None")
    np.testing.assert_allclose(resumed["loss"], expected["loss"][6:], rtol=1e-5)
    assert farthest(weights(resumed), weights(expected)) < 1e-5


def test_each_process_writes_its_pieces_of_large_weights(results: Results, folder: pathlib.Path) -> None:
    expected = trained(model(amp_level="O3"), data())
    for rank in (0, 1):
        ours = results_of(results, "in parts", rank)
        resumed = {name.removeprefix("resumed "): value for name, value in ours.items() if "resumed" in name}
        np.testing.assert_allclose(resumed["loss"], expected["loss"][6:], rtol=2e-2)
        assert equal(resumed["loss_scale"], expected["loss_scale"][6:])
    assert [path.name.count(".part") for path in sorted((folder / "parts").iterdir())] == [0, 1, 1, 0, 1, 1]
    sizes = [path.stat().st_size for path in (folder / "parts").glob("*.part*")]
    assert max(sizes) < 1.2 * min(sizes)


def test_one_process_goes_on_with_the_parts_of_two(results: Results, folder: pathlib.Path) -> None:
    ours = results_of(results, "in parts", 0)
    resumed = trained(model(seed=5, amp_level="O3"), data(), resume=folder / "parts")
    np.testing.assert_allclose(resumed["loss"], ours["resumed loss"], rtol=2e-2)


def test_a_part_that_cannot_be_written_fails_in_both_and_leaves_the_file_before(
    results: Results, folder: pathlib.Path
) -> None:
    errors = [str(results_of(results, "in parts", rank)["error"]) for rank in (0, 1)]
    assert errors[0].startswith("save_checkpoint: expected a folder that exists")
    assert errors[1].startswith("save_checkpoint: another process could not write its part")
    assert len([*folder.glob("again.ckpt*")]) == 3
    kept = mixtrain.load_checkpoint(str(folder / "again.ckpt"))
    newest = mixtrain.load_latest_checkpoint(folder / "parts")
    assert kept.keys() == newest.keys() and {value.dtype for value in kept.values()} >= {mixtrain.float32}
    for name, value in kept.items():
        np.testing.assert_array_equal(value.asnumpy(), newest[name].asnumpy())


@pytest.mark.parametrize("harm", ["missing", "damaged", "elsewhere"])
def test_a_checkpoint_without_one_of_its_parts_is_refused(
    results: Results, folder: pathlib.Path, tmp_path: pathlib.Path, harm: str
) -> None:
    for path in folder.glob("again.ckpt*"):
        shutil.copy(path, tmp_path)
    part = next(tmp_path.glob("*.part1"))
    if harm == "missing":
        part.unlink()
    elif harm == "damaged":
        part.write_bytes(part.read_bytes()[:-1] + b"?")
    else:
        main = tmp_path / "again.ckpt"
        values, state = read_file(str(main), lambda _: True)
        values["mixtrain:parts"] = values["mixtrain:parts"].replace(part.name, f"../{part.name}")
        write_file(str(main), values, state)
    reason = {"missing": "is missing", "damaged": "SHA-256 differs", "elsewhere": "files of another folder"}[harm]
    with pytest.raises(mixtrain.CheckpointError, match=reason):
        mixtrain.load_checkpoint(str(tmp_path / "again.ckpt"))


@pytest.mark.parametrize(("check", "part"), {
    "differing": "passed to device_put is not the same on each process",
    "alone sink": "Model.train: dataset_sink_mode must be False over the devices of several processes",
    "alone callbacks": "Model.train: the callbacks that may read the weights (a checksum of their names) must be the",
    "alone exception_save": "ModelCheckpoint: the weights must be those of one process where one alone may save them",
    "alone exit": "OnRequestExit: the weights must be those of one process where one alone may save them",
    "alone eager": "Model.train: the steps of several processes on one mesh must be compiled; got 'PYNATIVE_MODE",
    "alone check": "Model.check: the devices of the keras.distribution must be those of this process",
    "alone rows": "Model.train: the number of rows of each batch (-1 after the last) must be the same in all 2",
    "alone batches": "Model.train: the number of rows of each batch (-1 after the last) must be the same in all 2",
}.items())
def test_what_would_leave_them_waiting_is_refused_in_both(results: Results, check: str, part: str) -> None:
    for rank in (0, 1):
        assert part in str(results_of(results, check, rank)["error"])


def test_every_check_is_looked_at(results: Results) -> None:
    assert {name.partition("/")[0] for name in results[0]} == set(CHECKS)
