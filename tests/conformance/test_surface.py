"""The names that MindSpore scripts use are here: all that ten of the light projects use, and those promised besides."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import mixtrain
from mixtrain import context, nn, ops
from tests.backends import quick_every
from tests.conformance.surface import COUNTED, PAGE, REFUSED, counted, coverage, page_part

ROWS = {row.name: row for row in counted()}
# Counted by attribute name, and no method of the class: `get` of a dict, `key` of a dict's items.
NOT_METHODS = {"Parameter.key"}
# Asked for whatever their count.
PROMISED = {
    "nn": (
        "Precision Recall F1 Fbeta MAE MSE TopKCategoricalAccuracy ConfusionMatrix Metric rearrange_inputs "
        "get_metric_fn cosine_decay_lr piecewise_constant_lr exponential_decay_lr natural_exp_decay_lr "
        "inverse_decay_lr polynomial_decay_lr warmup_lr CosineDecayLR ExponentialDecayLR NaturalExpDecayLR "
        "InverseDecayLR PolynomialDecayLR WarmUpLR LearningRateSchedule RMSProp Adagrad Lamb Optimizer LossBase "
        "TrainOneStepCell TrainOneStepWithLossScaleCell Conv1d Conv2dTranspose GroupNorm Embedding LSTM Tanh Identity "
        "ResizeBilinear ClipByNorm get_activation WithEvalCell ForwardValueAndGrad DistributedGradReducer"
    ),
    "": (
        "jit ms_function value_and_grad grad save_checkpoint load_checkpoint load_param_into_net export Tensor "
        "ModelCheckpoint CheckpointConfig Callback set_auto_parallel_context ParallelMode communication"
    ),
    "communication": "init get_rank get_group_size release GlobalComm",
    "ops": "AllReduce GradOperation MultitypeFuncGraph HyperMap partial fill depend",
    "amp": (
        "auto_mixed_precision build_train_network custom_mixed_precision get_white_list get_black_list "
        "DynamicLossScaler StaticLossScaler LossScaler all_finite FixedLossScaleManager DynamicLossScaleManager "
        "LossScaleManager"
    ),
    "dataset": (
        "MnistDataset Cifar10Dataset Cifar100Dataset ImageFolderDataset GeneratorDataset NumpySlicesDataset "
        "TFRecordDataset"
    ),
}


@quick_every(3)
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.light >= 10 and name not in NOT_METHODS])
def test_what_ten_light_projects_use_is_here(name: str) -> None:
    assert ROWS[name].exists or name in REFUSED


@quick_every(2)
@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if n.startswith("ops.") and row.light >= 4])
def test_operations_of_four_light_projects_are_here(name: str) -> None:
    assert ROWS[name].exists


@quick_every(2)
@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in PROMISED.items() for name in names.split()]
)
def test_promised_names_are_here(module: str, name: str) -> None:
    assert hasattr(getattr(mixtrain, module) if module else mixtrain, name)


# Keywords that were never arguments of the reference either: methods of other libraries under the same name.
FOREIGN = {
    ".train": {"mode"}, ".fit": {"inputs"}, ".eval": {"show_imgs", "sync", "session", "cut"},
    ".predict": {
        "compute_loss", "point_coords", "point_labels", "multimask_output", "mask_input", "box", "backend",
    },
    ".map": {"batched", "num_proc", "remove_columns", "column_order"}, ".repeat": {"axis", "repeats"},
    "train:Model": {"boost_level", "boost_config_dict", "loss_fb"},
    "train:CheckpointConfig": {"save_ckpt_steps", "keep_ckpt_max", "post_callback_func"},
    "train:load_checkpoint": {"map_location"}, "nn.Conv2d": {"bias"}, "nn.Dense": {"bias"},
    "nn.SoftmaxCrossEntropyWithLogits": {"is_grad"}, "ds.Cifar10Dataset": {"download"}, "ms.Tensor": {"axis"},
    "ds.GeneratorDataset": {"generator"},
}
OWNERS: dict[str, Any] = {
    ".train": mixtrain.Model.train, ".fit": mixtrain.Model.fit, ".eval": mixtrain.Model.eval,
    ".predict": mixtrain.Model.predict, "ms.Tensor": mixtrain.Tensor.__new__,
    **{
        f".{name}": getattr(mixtrain.dataset.Dataset, name)
        for name in ("batch", "map", "shuffle", "repeat", "create_dict_iterator", "create_tuple_iterator")
    },
}


def _find(name: str) -> Any:
    if name in OWNERS:
        return OWNERS[name]
    module, _, short = name.replace(":", ".").partition(".")
    owner = {
        "train": mixtrain, "ms": mixtrain, "context": context, "nn": nn, "ops": ops, "amp": mixtrain.amp,
        "ds": mixtrain.dataset, "vision": mixtrain.dataset.vision,
    }[module]
    return getattr(owner, short)


@quick_every(3)
@pytest.mark.parametrize("name", [name for name in COUNTED["keywords"] if name != "context:set_context"])
def test_the_keywords_that_scripts_write_are_arguments(name: str) -> None:
    parameters = inspect.signature(_find(name)).parameters
    written = set(COUNTED["keywords"][name]) - FOREIGN.get(name, set())
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    assert takes_any or written <= set(parameters), written - set(parameters)


def test_the_settings_that_scripts_write_are_accepted() -> None:
    values = {"mode": 0, "device_target": "CPU", "jit_level": "auto"}
    for name in COUNTED["keywords"]["context:set_context"]:
        mixtrain.set_context(**{name: values.get(name, 0)})
        mixtrain.get_context(name)


@pytest.mark.parametrize("field", [name for name, count in COUNTED["callback_fields"] if count >= 10])
def test_the_fields_that_callbacks_read_are_there(field: str) -> None:
    assert field in mixtrain.train.CallbackArguments.__annotations__ or field == "init_time"  # A value of their own.


def test_the_page_lists_the_names_as_they_are() -> None:
    assert page_part() in PAGE.read_text(), "run python -m tests.conformance.surface --write"


def test_nine_in_ten_uses_are_of_names_that_are_here() -> None:
    assert coverage(list(counted())) > 90.0
