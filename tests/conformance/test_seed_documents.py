"""Every block of the seed documents runs once `mindspore` is swapped for `mixtrain`, in graph and PyNative mode."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mixtrain
from tests.backends import on_gpu
from tests.conformance.documents import SEEDS, Block, blocks_of, swap_import
from tests.conformance.patches import OTHER_FRAMEWORKS, patched
from tests.conformance.table import KEY

DOCUMENTS = {path.name[:3]: path for path in sorted(SEEDS.glob("*.txt"))}
MINDSPORE = [name for name in DOCUMENTS if name not in OTHER_FRAMEWORKS]
NO_SEEDS = f"the seed documents are not at {SEEDS.parent.name}/{SEEDS.name} beside the project"
LOSS_LINE = re.compile(r"^epoch: \d+ step: 32, loss is \d+\.\d+$")

pytestmark = pytest.mark.skipif(not DOCUMENTS, reason=NO_SEEDS)

Record = Callable[[str, Any], None]


def run_document(name: str, mode: str, record: Record, replaced: dict[str, str]) -> tuple[dict[str, Any], str]:
    """Run the blocks of a document one after the other in one namespace; return the namespace and what was printed."""
    namespace: dict[str, Any] = {"__name__": "__seed__"}
    printed = io.StringIO()
    for number, block, patch in patched(name, blocks_of(DOCUMENTS[name].read_text())):
        try:
            with contextlib.redirect_stdout(printed):
                exec(_compile(name, number, block, replaced), namespace)
        except Exception as error:
            record(KEY, (name, mode, number, block.line, f"FAILED {type(error).__name__}: {error}"))
            raise
        record(KEY, (name, mode, number, block.line, "ran" + (f" (patched: {patch})" if patch else "")))
    return namespace, printed.getvalue()


def _compile(name: str, number: int, block: Block, replaced: dict[str, str]) -> Any:
    source = swap_import(block.source)
    for old, new in replaced.items():
        source = source.replace(old, new)
    return compile(source, f"{name} block {number} (line {block.line})", "exec")


@contextlib.contextmanager
def expected_warnings() -> Iterator[list[str]]:
    """Collect warnings: only of a device that is not here, and of a factor that looks like a window."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts: list[str] = []
        yield texts
        texts += [str(warning.message) for warning in caught]
    unscaled = "Model: layers compute in float16 and the loss is not scaled"
    expected = ("set_context: device_target=", "DynamicLossScaleManager: ", unscaled)
    for text in texts:
        assert text.startswith(expected), text


@pytest.mark.slow
@pytest.mark.parametrize("name", MINDSPORE)
def test_every_block_runs_as_it_stands(name: str, record_property: Record) -> None:
    with expected_warnings() as texts:
        namespace, printed = run_document(name, "graph", record_property, {})
    losses = [line for line in printed.splitlines() if line.startswith("epoch:")]
    assert len(losses) == 10 * 32 and all(re.match(r"epoch: \d+ step: \d+, loss is \d+\.\d+$", x) for x in losses)
    assert sum(bool(LOSS_LINE.match(line)) for line in losses) == 10
    factor = [text for text in texts if text.startswith("DynamicLossScaleManager")]
    assert len(factor) == 1 and "3000" in factor[0]
    device = [text for text in texts if text.startswith("set_context")]
    assert len(device) == (0 if on_gpu() else 1)
    manager = namespace["loss_scale_manager"]
    assert float(manager.get_loss_scale()) == 4.0


@pytest.mark.slow
@pytest.mark.parametrize("name", MINDSPORE)
def test_every_block_runs_in_pynative_mode(name: str, record_property: Record) -> None:
    with expected_warnings():
        run_document(name, "pynative", record_property, {"GRAPH_MODE": "PYNATIVE_MODE", "num_data=1024": "num_data=64"})


SPARSE = """
def first_class(label):
    return label[0].astype(np.int32)

ds_train = ds.GeneratorDataset(list(get_data(64, is_onehot=False)), column_names=["data", "label"])
ds_train = ds_train.map(first_class, input_columns="label").batch(32, drop_remainder=True)
net_loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", MINDSPORE)
def test_the_dataset_of_a_document_trains_with_sparse_labels_too(name: str) -> None:
    blocks = patched(name, blocks_of(DOCUMENTS[name].read_text()))
    namespace: dict[str, Any] = {"__name__": "__seed__"}
    for number, block, _ in blocks[:2]:
        exec(_compile(name, number, block, {}), namespace)
    exec(SPARSE, namespace)
    network = namespace["LeNet5"](10)
    optimizer = mixtrain.nn.Momentum(network.trainable_params(), learning_rate=0.01, momentum=0.9)
    before = network.fc3.bias.asnumpy().copy()
    model = mixtrain.Model(network, namespace["net_loss"], optimizer, metrics={"acc"}, amp_level="O0")
    with expected_warnings():
        history = model.train(2, namespace["ds_train"])
    assert np.isfinite(history["loss"]).all() and not np.array_equal(network.fc3.bias.asnumpy(), before)
    assert 0.0 <= model.eval(namespace["ds_train"])["acc"] <= 1.0


@pytest.mark.parametrize("name", [name for name in OTHER_FRAMEWORKS if name in DOCUMENTS])
def test_blocks_of_other_frameworks_are_listed_with_the_reason(name: str, record_property: Record) -> None:
    for number, block in enumerate(blocks_of(DOCUMENTS[name].read_text())):
        assert "mindspore" not in block.source
        record_property(KEY, (name, "-", number, block.line, f"not MindSpore code: {OTHER_FRAMEWORKS[name]}"))


@pytest.mark.slow
def test_every_mended_block_is_python_and_says_what_was_lost() -> None:
    for name in MINDSPORE:
        blocks = patched(name, blocks_of(pathlib.Path(DOCUMENTS[name]).read_text()))
        assert len(blocks) >= 6
        assert all("mindspore" not in swap_import(block.source).replace("as mindspore", "").replace("mindspore.", "")
                   for _, block, _ in blocks)
