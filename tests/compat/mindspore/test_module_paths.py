"""MindSpore's module paths can be imported from, and the error of a missing name suggests the nearest one."""

from __future__ import annotations

import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import amp, execution, nn
from mixtrain.compat.mindspore.module_paths import HOMES
from tests.backends import quick_every

IMPORTS = """
import mixtrain.common.dtype as mstype
import mixtrain.dataset as ds
import mixtrain.dataset.transforms.c_transforms as C
import mixtrain.dataset.transforms.vision.c_transforms as old_vision
import mixtrain.dataset.vision.c_transforms as CV
import mixtrain.ops.functional as F
from mixtrain import Model, Tensor, context, log as logger, nn
from mixtrain.common import dtype, set_seed
from mixtrain.common.api import ms_function
from mixtrain.common.initializer import Normal, TruncatedNormal, initializer
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.common.tensor import Tensor
from mixtrain.communication.management import get_group_size, get_rank, init
from mixtrain.context import ParallelMode
from mixtrain.dataset.vision import Inter
from mixtrain.dataset.vision.utils import Inter
from mixtrain.nn.loss import SoftmaxCrossEntropyWithLogits
from mixtrain.nn.loss.loss import LossBase, _Loss
from mixtrain.nn.metrics import Accuracy
from mixtrain.nn.wrap.cell_wrapper import TrainOneStepCell, WithLossCell
from mixtrain.nn.wrap.grad_reducer import DistributedGradReducer
from mixtrain.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, TrainOneStepWithLossScaleCell
from mixtrain.ops import composite, functional, operations
from mixtrain.ops import operations as P
from mixtrain.ops.composite import GradOperation
from mixtrain.ops.operations.nn_ops import Conv2D
from mixtrain.ops.primitive import Primitive
from mixtrain.nn.optim import Momentum
from mixtrain.nn.dynamic_lr import cosine_decay_lr, piecewise_constant_lr
from mixtrain.nn.learning_rate_schedule import LearningRateSchedule, PolynomialDecayLR, WarmUpLR
from mixtrain.nn.optim.momentum import Momentum
from mixtrain.nn.optim.optimizer import Optimizer
from mixtrain.train import Model, build_train_network, load_checkpoint
from mixtrain.train.amp import auto_mixed_precision
from mixtrain.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint, TimeMonitor
from mixtrain.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager
from mixtrain.train.model import Model, ParallelMode
from mixtrain.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint
from mixtrain import _checkparam as validator
from mixtrain import build_train_network, long
from mixtrain._checkparam import INC_NEITHER, check_float_range, check_positive_float, check_value_type
from mixtrain._extends import cell_attr_register
from mixtrain.common.api import _pynative_executor
from mixtrain.common.mutable import mutable
from mixtrain.common.sparse_tensor import RowTensorInner
from mixtrain.device_context.cpu.op_tuning import threads_num
from mixtrain.nn.layer.pooling import MaxPool2d
from mixtrain.ops.auto_generate.gen_ops_prim import AddExt
from mixtrain.ops.vm_impl_registry import vm_impl_registry
from mixtrain.common import dtype as mstype; mstype.number_type, mstype.byte
from mixtrain.common.dtype import byte, float_type, intc, number_type, signed_type
from mixtrain.common.initializer import Initializer, _assignment, _calculate_correct_fan, _calculate_gain, _register
from mixtrain.common.seed import _get_graph_seed
from mixtrain.communication.management import create_group, get_group_size, init
from mixtrain.dataset import BatchDataset, context, ds
from mixtrain.dataset.core.validator_helpers import INT32_MAX
from mixtrain.dataset.engine.datasets_vision import Cifar10Dataset
from mixtrain.nn.layer.rnn_cells import LSTMCell
from mixtrain.nn.probability.distribution import Normal, Uniform
from mixtrain.nn.wrap.cell_wrapper import _VirtualDatasetCell
from mixtrain.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell, grad_scale, shard_grad_scale
from mixtrain.ops._primitive_cache import _get_cache_prim
from mixtrain.ops.op_info_register import DataType, TBERegOp, op_info_register
from mixtrain.ops.operations import NPUAllocFloatStatus, NPUClearFloatStatus, NPUGetFloatStatus
from mixtrain.ops.operations.comm_ops import ReduceOp
from mixtrain.ops.operations.image_ops import ResizeBilinearV2
from mixtrain.parallel import _cost_model_context as cost_model_context
from mixtrain.parallel._auto_parallel_context import auto_parallel_context
from mixtrain.parallel._utils import _get_device_num, _get_gradients_mean, _get_parallel_mode
from mixtrain.train.callback import RunContext, _CallbackManager, _InternalCallbackParam, _set_cur_net
from mixtrain.train.callback._callback import Callback, _handle_loss
from mixtrain.train.callback._loss_monitor import LossMonitor
from mixtrain.train.dataset_helper import DatasetHelper, connect_network_with_dataset
from mixtrain.train.serialization import _update_param
from mixtrain.train.summary.summary_record import SummaryRecord
from mixtrain.train.train_thor import ConvertModelUtils
"""


@quick_every(3)
@pytest.mark.parametrize("line", IMPORTS.strip().splitlines())
def test_the_imports_of_scripts_work_with_the_name_swapped(line: str) -> None:
    namespace: dict[str, object] = {}
    exec(line, namespace)
    assert len(namespace) > 1


def test_a_function_that_is_named_as_its_module_stays_a_function() -> None:
    importlib.import_module("mixtrain.common.mutable")
    assert mixtrain.common.mutable is mixtrain.mutable


@pytest.mark.parametrize("path", ["mixtrain.common", "mixtrain.common.api", "mixtrain.train.serialization"])
def test_all_names_of_a_home_are_imported_by_a_star(path: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {path} import *", namespace)
    assert namespace["Parameter"] is mixtrain.Parameter


def test_old_homes_give_the_very_objects() -> None:
    assert importlib.import_module("mixtrain.ops.operations").ReduceMean is mixtrain.ops.ReduceMean
    assert importlib.import_module("mixtrain.train.serialization").load_checkpoint is mixtrain.load_checkpoint
    assert importlib.import_module("mixtrain.dataset.vision.c_transforms").Resize is mixtrain.dataset.vision.Resize


@quick_every(2)
@pytest.mark.parametrize("path", sorted(HOMES))
def test_every_home_is_a_module_with_names(path: str) -> None:
    assert importlib.import_module(path).__all__ or not path


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        ("mixtrain.nn", "Conv2D", "mixtrain.nn.Conv2d"), ("mixtrain.ops", "reducemean", "mixtrain.ops.ReduceMean"),
        ("mixtrain.dataset", "MNISTDataset", "mixtrain.dataset.MnistDataset"), ("mixtrain", "model", "mixtrain.Model"),
        ("mixtrain.dataset.vision", "RandomHorizontalFlips", "mixtrain.dataset.vision.RandomHorizontalFlip"),
        ("mixtrain.ops.operations", "Conv2d", "mixtrain.ops.operations.Conv2D"),
        ("mixtrain.amp", "DynamicLossScalar", "mixtrain.amp.DynamicLossScaler"),
    ],
)
def test_a_name_that_is_not_there_is_an_attribute_error_with_the_nearest(module: str, name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute {name!r}. Write {near}"):
        getattr(importlib.import_module(module), name)


def test_a_name_like_no_other_points_to_the_page_of_names() -> None:
    with pytest.raises(AttributeError, match="docs/from_mindspore.md lists what there is"):
        mixtrain.nn.Zzyzx  # noqa: B018
    assert not hasattr(mixtrain, "__wrapped__")


# ---- one device -----------------------------------------------------------------------------------------------------
def test_one_process_is_rank_0_of_1(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    mixtrain.communication.init("nccl")
    assert (mixtrain.communication.get_rank(), mixtrain.communication.get_group_size()) == (0, 1)
    monkeypatch.setenv("RANK_SIZE", "8")
    with pytest.raises(RuntimeError, match="got RANK_SIZE=8 alone, and each process would train alone"):
        mixtrain.communication.init()


def test_parallel_settings_of_one_device_are_kept_and_others_refused() -> None:
    try:
        mixtrain.set_auto_parallel_context(
            device_num=1, parallel_mode=mixtrain.ParallelMode.DATA_PARALLEL, gradients_mean=True
        )
        assert mixtrain.get_auto_parallel_context("parallel_mode") == "data_parallel"
        with pytest.raises(ValueError, match="device_num must be 1: training runs in one process; got 8"):
            mixtrain.set_auto_parallel_context(device_num=8, parallel_mode="auto_parallel")
        assert mixtrain.get_auto_parallel_context("parallel_mode") == "data_parallel"
    finally:
        mixtrain.reset_auto_parallel_context()
    assert mixtrain.get_auto_parallel_context("parallel_mode") == "stand_alone"
    with pytest.raises(ValueError, match="enable_ps must be False"):
        mixtrain.context.set_ps_context(enable_ps=True)


@quick_every(2)
@pytest.mark.parametrize("target", ["Ascend", "Davinci"])
def test_ascend_warns_once_and_what_is_here_is_used(target: str) -> None:
    mixtrain.set_context(device_target=target)
    net = mixtrain.nn.Dense(2, 1)
    model = mixtrain.Model(net, mixtrain.nn.MSELoss(), mixtrain.nn.SGD(net.trainable_params(), 0.1))
    data = [(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32))]
    with pytest.warns(UserWarning, match='device_target="Ascend" is not on this machine; .* is used instead'):
        model.train(1, data, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.train(1, data, verbose=0)


def test_inner_names_do_what_scripts_use_them_for() -> None:
    from mixtrain.common.initializer import _assignment, _calculate_correct_fan, _calculate_gain, _register, initializer

    @_register("ramp_up")
    class Ramp(mixtrain.common.initializer.Initializer):
        def _initialize(self, arr: np.ndarray) -> None:
            _assignment(arr, np.arange(arr.size).reshape(arr.shape))

    assert initializer("rampUp", (3,)).asnumpy().tolist() == initializer(Ramp(), (3,)).asnumpy().tolist() == [0, 1, 2]
    assert _calculate_correct_fan((4, 3, 2, 2), "fan_out") == 16
    assert [_calculate_gain(name) for name in ("conv2d", "tanh")] == [1.0, 5 / 3]
    assert round(_calculate_gain("leaky_relu", 1.0), 6) == 1.0

    from mixtrain.train.serialization import _update_param

    parameter = mixtrain.Parameter(mixtrain.Tensor([1.0, 2.0]))
    _update_param(parameter, mixtrain.Tensor([3, 4]))
    assert parameter.asnumpy().tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match="_update_param: Parameter#[0-9]+ must be of dtype Float32"):
        _update_param(parameter, mixtrain.Tensor([3, 4]), strict_load=True)

    from mixtrain.nn.wrap.cell_wrapper import _VirtualDatasetCell

    network = _VirtualDatasetCell(mixtrain.nn.Dense(2, 1))
    assert [each.name for each in network.trainable_params()] == ["weight", "bias"]
    assert network(mixtrain.Tensor(np.ones((1, 2), np.float32))).shape == (1, 1)


def test_the_decorator_of_layers_for_mindspores_compiler_changes_nothing() -> None:
    from mixtrain._extends import cell_attr_register

    class Scaled(mixtrain.nn.Cell):
        @cell_attr_register(attrs=["rate"])
        def __init__(self, rate: float) -> None:
            super().__init__()
            self.rate = rate

    assert Scaled(0.5).rate == 0.5


def test_an_int_is_stored_as_int32_in_a_parameter() -> None:
    assert mixtrain.Parameter(1, requires_grad=False).dtype == "int32"
    assert mixtrain.Parameter(1.0).dtype == "float32"


@pytest.mark.parametrize("name", ["OnRequestExit", "SummaryCollector", "SummaryRecord", "TimeMonitor"])
def test_what_is_lent_to_train_is_pickled_by_the_name_that_it_had_there(name: str) -> None:
    kind = getattr(mixtrain, name)
    assert kind.__module__.startswith("mixtrain.train.") and pickle.loads(pickle.dumps(kind)) is kind


def test_scalers_are_pickled_by_the_names_that_they_had_in_the_engine() -> None:
    for kind in (amp.GradScaler, amp.LossScaler, amp.StaticLossScaler, amp.DynamicLossScaler):
        assert kind.__module__.startswith("mixtrain.loss_scale.") and pickle.loads(pickle.dumps(kind)) is kind
    scaler = pickle.loads(pickle.dumps(amp.DynamicLossScaler(16, 2, 3)))
    assert isinstance(scaler, amp.DynamicLossScaler) and float(scaler.scale_value) == 16


# ---- MindSpore's executors ------------------------------------------------------------------------------------------
class _Branching(nn.Cell):
    """A network with state, and a branch that a tensor decides."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dense = nn.BatchNorm1d(4), nn.Dense(4, 2)

    def construct(self, x: mixtrain.Tensor) -> mixtrain.Tensor:
        if x.sum() > 0:
            x = x + 1
        return self.dense(self.norm(x))


@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_a_cell_is_traced_when_it_is_compiled_and_changes_nothing(mode: int) -> None:
    executor = importlib.import_module("mixtrain.common.api")._cell_graph_executor
    network = _Branching()
    network.set_train()
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), nn.Adam(network.trainable_params()))
    before = [value.asnumpy().tolist() for value in step.get_parameters()]
    x, y = mixtrain.Tensor(np.ones((3, 4), np.float32)), mixtrain.Tensor(np.ones((3, 2), np.float32))
    with execution.using(graph_mode=mode == mixtrain.GRAPH_MODE):
        executor.compile(step, x, y)
        with pytest.raises(ValueError, match="BatchNorm1d norm: expected 4 channels on axis 1; got 5"):
            executor.compile(network, mixtrain.Tensor(np.ones((3, 5), np.float32)))
    assert [value.asnumpy().tolist() for value in step.get_parameters()] == before
    network.set_train(False)
    assert executor(network, x).asnumpy().tolist() == network(x).asnumpy().tolist()


def test_a_loss_scaler_of_a_script_scales_by_the_functions_of_the_documentation() -> None:
    from mixtrain.amp import LossScaler, _grad_scale_map, _grad_unscale_map

    class Scaler(LossScaler):
        def __init__(self) -> None:
            self.scale_value = mixtrain.Parameter(mixtrain.Tensor(1024.0), name="scale_value")

        def scale(self, inputs: Any) -> Any:
            return _grad_scale_map(self.scale_value, inputs)

        def unscale(self, inputs: Any) -> Any:
            return _grad_unscale_map(self.scale_value, inputs)

        def adjust(self, grads_finite: Any) -> bool:
            return True

    single, half = mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([3.0], mixtrain.float16)
    scaled = Scaler().scale((single, half))
    assert [x.dtype for x in scaled] == [mixtrain.float32, mixtrain.float16]
    assert [x.asnumpy().tolist() for x in scaled] == [[1024, 2048], [3072]]
    assert [x.asnumpy().tolist() for x in Scaler().unscale(list(scaled))] == [[1, 2], [3]]
