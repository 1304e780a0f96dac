"""Small decisions of MindSpore 2.10 that scripts rely on, each as it was seen there."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Model, Parameter, Tensor, amp, nn, ops
from mixtrain.train import Top5CategoricalAccuracy

X = Tensor(np.arange(1, 5, dtype=np.float32).reshape(2, 2))


class Halved(nn.Dense):
    """Uses the result of its base class as a Tensor."""

    def construct(self, x: Any) -> Any:
        """Return the result in float16, flat."""
        return super().construct(x).astype(mixtrain.float16).view(-1)


class Inner(nn.Cell):
    """Calls the `construct` of a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 1)

    def construct(self, x: Any) -> Any:
        """Return the result without its last axis."""
        return self.dense.construct(x).squeeze(-1)


def test_construct_of_a_library_class_gives_user_code_tensors() -> None:
    assert Halved(2, 3)(X).shape == (6,)
    assert Inner()(X).shape == (2,)
    assert isinstance(nn.ReLU().construct(X), Tensor)


@pytest.mark.parametrize("sink", [False, True])
def test_a_generator_function_is_counted_before_training(sink: bool) -> None:
    def rows() -> Any:
        for _ in range(10):
            yield np.ones(3, np.float32), np.ones(1, np.float32)

    seen: list[tuple[int, int]] = []

    class Read(mixtrain.Callback):
        def step_end(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            seen.append((arguments.batch_num, arguments.cur_step_num))

    net = nn.Dense(3, 1)
    data = mixtrain.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
    Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01)).train(
        2, data, Read(), dataset_sink_mode=sink, verbose=0
    )
    assert seen == ([(5, 5), (5, 10)] if sink else [(5, step) for step in range(1, 11)])
    with pytest.raises(ValueError, match=r"got an infinite repetition of rows .* Write repeat\(count\)"):
        mixtrain.dataset.GeneratorDataset(rows, ["x", "y"]).repeat().get_dataset_size()


def test_gradients_of_parameters() -> None:
    trained, frozen = Parameter(Tensor(2.0), "trained"), Parameter(Tensor(3.0), "frozen", requires_grad=False)
    gradients = mixtrain.grad(lambda x: (x * trained * frozen).sum(), None, [trained, frozen])(X)
    assert [float(gradient) for gradient in gradients] == [30, 0]
    assert ops.GradOperation()(lambda x: trained)(X).asnumpy().tolist() == [[0, 0], [0, 0]]


def test_numbers_that_fill_up_targets_of_ctc_need_no_class() -> None:
    logs = ops.log_softmax(Tensor(np.arange(48, dtype=np.float32).reshape(6, 2, 4) / 10))
    loss = nn.CTCLoss(reduction="none")(logs, Tensor([[1, 2], [3, 9]]), Tensor([6, 6]), Tensor([2, 1]))
    assert loss.asnumpy() == pytest.approx([4.446727, 5.3035493], rel=1e-5)


def test_functions_compute_by_the_lists_of_auto() -> None:
    function = amp.auto_mixed_precision(lambda x: ops.matmul(x, x), "auto", mixtrain.float16)
    assert function(X).dtype == mixtrain.float16
    with pytest.raises(TypeError, match="network: expected a mixtrain.nn.Cell or a keras.Layer; got function"):
        amp.auto_mixed_precision(lambda x: x, "O2")


def test_a_parameter_takes_no_value_that_loses_digits() -> None:
    counter = Parameter(Tensor(1, mixtrain.int8), "counter")
    for value in (Tensor(3.5), Tensor(300, mixtrain.int32)):
        with pytest.raises(TypeError, match="ops.assign: value must fit int8 without loss"):
            ops.assign(counter, value)
    assert int(ops.assign(counter, 5)) == 5
    assert counter.set_dtype(mixtrain.int32).dtype == mixtrain.int32


def test_optimizers() -> None:
    net = nn.Dense(2, 2)
    groups = [{"params": [net.weight]}, {"params": [net.bias]}]
    assert not nn.SGD(groups, 0.1).is_group_params_ordered
    assert nn.SGD([*groups, {"order_params": net.trainable_params()}], 0.1).is_group_params_ordered
    with pytest.raises(ValueError, match="Adam: at most one may be True"):
        nn.Adam(net.trainable_params(), use_lazy=True, use_amsgrad=True)
    with pytest.raises(TypeError, match="get_lr_parameter: param must be"):
        nn.SGD(net.trainable_params(), 0.1).get_lr_parameter(1)


def test_counters_of_the_loss_scale() -> None:
    cell, scale = nn.DynamicLossScaleUpdateCell(64, 2, 3), Parameter(Tensor(64.0), "scale")
    steps = []
    for overflow in (False, True, False, False, False):
        cell(scale, Tensor(overflow))
        steps.append((int(cell.cur_iter), int(cell.last_overflow_iter)))
    assert steps == [(2, 0), (3, 2), (4, 2), (5, 2), (6, 5)]
    scaler = amp.DynamicLossScaler(16, 2, 3)
    scaler.counter = 2
    scaler.adjust(Tensor(True))
    assert float(scaler.scale_value) == 32


def test_settings_are_checked_as_a_cell_is_made() -> None:
    for value, error in ((True, TypeError), (-1.0, ValueError), (2.0, ValueError)):
        with pytest.raises(error, match="CentralCrop: central_fraction must be"):
            nn.CentralCrop(value)
    with pytest.raises(ValueError, match="SSIM: filter_sigma must be greater than 0"):
        nn.SSIM(filter_sigma=0.0)
    with pytest.raises(TypeError, match="MSSSIM: power_factors must be a tuple of numbers"):
        nn.MSSSIM(power_factors=1.1)
    with pytest.raises(ValueError, match="Model.predict: backend must be None; got 'lite'"):
        Model(nn.Dense(2, 2)).predict(X, backend="lite")


def test_forms_of_calls() -> None:
    pooled, index = Tensor([[[[1.0]]]]), Tensor([[[[3]]]])
    assert nn.MaxUnpool2d(2)(pooled, index, None).asnumpy().tolist() == [[[[0, 0], [0, 1]]]]
    assert nn.MaxUnpool2d(2)(pooled, index, (1, 1, 3, 3)).shape == (1, 1, 3, 3)
    assert np.all(np.ones((2, 2)) == Tensor(np.ones((2, 2))))
    assert ("a" in Tensor([1])) is False
    assert (1 in Tensor([1, 2])) is True
    assert X.max(0, keepdims=True).asnumpy().tolist() == [[3, 4]]
    assert [part.asnumpy().tolist() for part in X.max(0, True)] == [[[3, 4]], [[1, 1]]]
    metric = Top5CategoricalAccuracy()
    metric.update(Tensor(np.arange(12, dtype=np.float32).reshape(2, 6)), Tensor(np.eye(2, 4, dtype=np.float32)))
    assert metric.eval() == 0.5
    cell = nn.Cell()
    cell.insert_child_to_cell("later", None)
    with pytest.raises(AttributeError, match="a Cell must define its forward pass"):
        cell.construct()
    with pytest.raises(TypeError, match="Tensor: input_data must hold numbers"):
        Tensor(np.array(["a"]))


@pytest.mark.parametrize("path", ["nn.grad", "nn.optim.adafactor", "nn.optim.asgd"])
def test_module_paths(path: str) -> None:
    assert importlib.import_module(f"mixtrain.{path}").Jvp is nn.Jvp


def test_a_train_cell_updates_a_loss_scale_of_its_own_through_the_overflow_check() -> None:
    class Step(nn.TrainOneStepWithLossScaleCell):
        def __init__(self, network: Any, optimizer: Any, manager: Any) -> None:
            super().__init__(network, optimizer, manager)
            self.loss_scale = Parameter(Tensor(manager.get_loss_scale(), mixtrain.float32), "own_scale")
            self.manager = manager

        def construct(self, x: Any, overflow: Any) -> Any:
            _, scale = self.start_overflow_check(self.network(x), self.loss_scale)
            self.manager(scale, overflow)
            return self.loss_scale.value()

    net = nn.Dense(2, 1)
    step = Step(net, nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.DynamicLossScaleUpdateCell(1024, 2, 2))
    scales = [float(step(X, Tensor(number == 0))) for number in range(6)]
    assert scales == [512, 512, 1024, 1024, 2048, 2048]


def test_a_model_without_thor_stays_as_it_is() -> None:
    model = Model(nn.Dense(2, 2))
    convert = importlib.import_module("mixtrain.train.train_thor").ConvertModelUtils
    assert convert is mixtrain.train.ConvertModelUtils
    assert convert().convert_to_thor_model(model, network=None, optimizer=None) is model


def test_names_that_projects_use() -> None:
    base = importlib.import_module("mixtrain.nn.layer.rnn_cells").RNNCellBase
    assert [parameter.shape for parameter in base(2, 3, True, num_chunks=2).get_parameters()] == [
        (6, 2), (6, 3), (6,), (6,)
    ]
    data = mixtrain.dataset.GeneratorDataset(lambda: iter([(np.ones(2),)] * 3), ["x"])
    assert data.dataset_size is None
    assert (data.get_dataset_size(), data.dataset_size) == (3, 3)
    arguments = mixtrain.train.RunContext(mixtrain.train.CallbackArguments(cur_epoch_num=1)).original_args()
    arguments.cur_epoch_num += 4
    assert arguments.cur_epoch_num == 5
