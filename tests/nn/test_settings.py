"""Tests that cells, optimizers and the like refuse settings that MindSpore refuses.

What it refuses is recorded by `tests/conformance/cell_settings.py`.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any, Final

import numpy as np
import pytest

from mixtrain import Parameter, Tensor, mint, nn
from mixtrain.experimental import optim
from tests.backends import quick_every
from tests.conformance.cell_settings import GIVEN, is_made, made, outcomes

RECORDED: Final[dict[str, Any]] = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "cell_settings.json").read_text()
)
INTS, FLOATS = {"-1", "0", "2", "100", "1"}, ("7.1", "-0.5", "1.0", "0.0")
LISTS: Final = {"[2]", "(1, -1)", "()", "(1.5,)", "(1, 2, 3, 4, 5, 6)"}
# Read in one way, or not at all, here: a rate of 0, what is unused on one device, None for a default, other false
# values than False.
LEFT: Final = frozenset("""
    amp.DynamicLossScaler.scale_factor dataset.DistributedSampler.shuffle dataset.RandomSampler.shuffle
    dataset.text.SlidingWindow.axis dataset.text.Truncate.max_seq_len dataset.transforms.Concatenate.axis
    dataset.vision.Grayscale.num_output_channels dataset.vision.NormalizePad.dtype
    dataset.vision.RandomAffine.shear dataset.vision.RandomErasing.value dataset.vision.RandomSolarize.threshold
    experimental.optim.ASGD.lr experimental.optim.Adadelta.lr experimental.optim.Adagrad.lr
    experimental.optim.Adamax.lr experimental.optim.NAdam.lr experimental.optim.RAdam.lr
    experimental.optim.RMSprop.lr experimental.optim.Rprop.lr experimental.optim.SGD.momentum
    experimental.optim.lr_scheduler.CyclicLR.base_lr
    experimental.optim.lr_scheduler.CyclicLR.scale_fn nn.AdaFactor.beta1 nn.AdaptiveAvgPool2d.output_size
    nn.AdaptiveMaxPool3d.output_size nn.ConstantPad1d.padding nn.Conv3dTranspose.dilation
    nn.Conv3dTranspose.kernel_size nn.DistributedGradReducer.parameters nn.EmbeddingExt.dtype
    nn.LayerNormExt.dtype nn.Linear.dtype nn.PReLUExt.dtype nn.Range.start
    nn.piecewise_constant_lr.learning_rates train.CheckpointConfig.remove_redundancy train.Model.metrics
""".split())
# Not here, or not made of what MindSpore makes them of.
UNLIKE: Final = frozenset("""
    dataset.text.AddToken dataset.text.JiebaMode dataset.text.JiebaTokenizer dataset.text.Ngram
    dataset.text.SPieceTokenizerLoadType dataset.text.SPieceTokenizerOutType dataset.text.SentencePieceModel
    dataset.text.UnicodeScriptTokenizer nn.Conv2dThor nn.DenseThor nn.EmbeddingLookupThor nn.EmbeddingThor
    nn.GradAccumulationCell nn.Jvp nn.LazyAdam nn.MicroBatchInterleaved nn.PipelineCell nn.SampledSoftmaxLoss
    nn.VirtualDatasetCellTriple nn.Vjp train.FlopsUtilizationCollector train.LearningRateScheduler
    train.SummaryLandscape
""".split())


def _is_here(path: str) -> bool:
    try:
        made(path, "mixtrain")
    except AttributeError:
        return False
    return True


HERE: Final = [path for path in RECORDED if path not in UNLIKE and _is_here(path)]


def _means(setting: str, text: str, recorded: dict[str, str], here: dict[str, str]) -> bool:
    """Whether a value that MindSpore refuses can mean one thing alone, which it means here."""
    return (
        text in INTS and any(recorded[number] == "." for number in FLOATS)  # An int for a float.
        or text == "Tensor(1.0)" and "type" in setting  # The dtype of a Tensor.
        or text == "float32" and here["'xyz'"] == "."  # Dtypes are texts here.
        or text in LISTS and here["[2]"] == "."
    )


@quick_every(37)
@pytest.mark.parametrize("path", HERE)
def test_what_mindspore_refuses_is_refused(path: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base, recorded = RECORDED[path]["base"], RECORDED[path]["outcomes"]
    assert is_made(path, base, "mixtrain")
    taken = set()
    for setting, got in outcomes(path, base, list(recorded), "mixtrain").items():
        there, here = (dict(zip(GIVEN, kinds, strict=True)) for kinds in (recorded[setting], got))
        taken |= {
            f"{path}.{setting}={text}" for text in GIVEN
            if there[text] in "TVK" and here[text] == "." and not _means(setting, text, there, here)
        }
    assert {name for name in taken if name.partition("=")[0] not in LEFT} == set()


def _sgd(**options: Any) -> optim.SGD:
    return optim.SGD([{"params": [Parameter(Tensor([1.0, 1.0]), name="w")], "lr": 0.05, **options}], lr=0.05)


def test_a_pool_without_padding_refuses_what_padding_alone_has() -> None:
    for settings in ({"padding": 1}, {"dilation": 2}, {"return_indices": True}, {"ceil_mode": True}):
        with pytest.raises(ValueError, match='MaxPool3d: .* Write pad_mode="pad"'):
            nn.MaxPool3d(2, 2, **settings)
        nn.MaxPool3d(2, 2, "pad", **settings)


def test_errors_say_what_to_write() -> None:
    with pytest.raises(TypeError, match="StepLR: gamma must be a number; got str '0.5'. Write gamma=0.5"):
        optim.lr_scheduler.StepLR(_sgd(), 2, gamma="0.5")
    with pytest.raises(TypeError, match=r"CrossEntropyLoss: weight must be a Tensor; .* Write weight=Tensor\(\["):
        nn.CrossEntropyLoss(weight=2.0)
    with pytest.raises(ValueError, match="L1LossExt: reduction must be one of none, mean, sum"):
        mint.nn.L1Loss("all")


def test_a_schedule_is_resumed_from_the_initial_rate() -> None:
    with pytest.raises(KeyError, match="StepLR: a group of a resumed run must have its initial_lr"):
        optim.lr_scheduler.StepLR(_sgd(), 2, last_epoch=3)
    cyclic = optim.lr_scheduler.CyclicLR(_sgd(initial_lr=0.1), 0.01, 0.2, 3, last_epoch=3)
    rates = []
    for _ in range(3):
        rates.append(float(cyclic.get_last_lr()[0]))
        cyclic.step()
    np.testing.assert_allclose(rates, [0.166667, 0.073333, 0.01], rtol=1e-4)  # Of MindSpore.


def test_a_margin_is_of_the_cell_or_of_the_call() -> None:
    x, y = Tensor([[1.0, 0.0]]), Tensor([[0.0, 0.0]])
    assert float(nn.TripletMarginLoss(margin=3.0)(x, x, y)) == pytest.approx(2.0, abs=1e-4)
    assert float(nn.TripletMarginLoss()(x, x, y, 3.0)) == pytest.approx(2.0, abs=1e-4)
    assert mint.optim.SGD([Parameter(x, name="w")], lr=Tensor(0.5)).param_groups[0]["lr"].asnumpy() == 0.5
