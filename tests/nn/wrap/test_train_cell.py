"""The train cells called directly: one call a step, with and without loss scaling, and subclasses of the user's."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn
from tests.backends import quick_every
from tests.train.planted import GOLDEN, Chain, batches

X, LABEL = mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[0.0]])
MODES = pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE], ids=["graph", "eager"])


def _dense() -> nn.Dense:
    return nn.Dense(2, 1, weight_init="ones", has_bias=False)


def _step(cell: Any = nn.TrainOneStepCell, *options: Any, loss_scale: float = 1.0) -> Any:
    net = _dense()
    optimizer = nn.SGD(net.trainable_params(), 0.125, loss_scale=loss_scale)
    return cell(nn.WithLossCell(net, nn.MSELoss()), optimizer, *options)


def _weight(step: Any) -> list[list[float]]:
    return backend.to_numpy(step.weights[0]).tolist()


@MODES
def test_a_call_trains_on_one_batch_and_returns_the_loss(mode: int) -> None:
    mixtrain.set_context(mode=mode)
    step = _step()
    assert float(step(X, LABEL)) == 9.0  # gradient 2 * 3 * x
    assert _weight(step) == [[0.25, -0.5]]
    assert float(step(X, LABEL)) == 0.5625


@MODES
@pytest.mark.parametrize("optimizer", ["mixtrain", "keras"])
def test_sens_multiplies_the_loss_and_the_optimizer_divides(mode: int, optimizer: str) -> None:
    mixtrain.set_context(mode=mode)
    net = _dense()
    made = {
        "mixtrain": lambda: nn.SGD(net.trainable_params(), 0.125, loss_scale=8.0),
        "keras": lambda: keras.optimizers.SGD(0.125),
    }[optimizer]()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), made, 8.0)
    assert float(step(X, LABEL)) == 9.0
    assert _weight(step) == [[0.25, -0.5]]


def test_set_sens_changes_the_next_step() -> None:
    step = _step()
    step.set_sens(0.5)
    step(X, LABEL)
    assert _weight(step) == [[0.625, 0.25]]


def test_gradients_are_returned_by_name_where_they_are_asked_for() -> None:
    loss, gradients = _step(nn.TrainOneStepCell, None, True)(X, LABEL)
    assert float(loss) == 9.0
    assert {name: backend.to_numpy(value).tolist() for name, value in gradients.items()} == {"weight": [[6.0, 12.0]]}


def test_only_the_parameters_of_the_optimizer_move() -> None:
    net = nn.SequentialCell(_dense(), nn.Dense(1, 1, weight_init="ones", has_bias=False))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net[1].trainable_params(), 0.125))
    step(X, LABEL)
    assert net[0].weight.asnumpy().tolist() == [[1.0, 1.0]]
    assert net[1].weight.asnumpy().tolist() == [[-1.25]]


def test_a_network_without_parameters_to_train_is_refused() -> None:
    with pytest.raises(ValueError, match="TrainOneStepCell: there must be parameters to train"):
        nn.TrainOneStepCell(nn.WithLossCell(nn.ReLU(), nn.MSELoss()), keras.optimizers.SGD(0.1))


def test_an_optimizer_of_another_network_is_refused_at_the_first_step() -> None:
    step = nn.TrainOneStepCell(nn.WithLossCell(_dense(), nn.MSELoss()), nn.SGD(_dense().trainable_params(), 0.1))
    with pytest.raises(ValueError, match="the loss must depend on parameters that the optimizer holds"):
        step(X, LABEL)


def test_a_sens_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="TrainOneStepCell: sens must not be 0; got 0. Write sens=1.0"):
        _step(nn.TrainOneStepCell, 0)


@quick_every(3)
@MODES
@pytest.mark.parametrize("case", [2, 4])
def test_a_scaled_step_follows_a_golden_sequence(mode: int, case: int) -> None:
    mixtrain.set_context(mode=mode)
    first, factor, window, flags, expected = GOLDEN[case]
    net = Chain()
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.L1Loss()),
        nn.SGD(net.trainable_params(), 2.0**-20),
        nn.DynamicLossScaleUpdateCell(first, factor, window),
    )
    used, overflows = [], []
    for data, label in batches(flags):
        _, overflow, scale = step(mixtrain.Tensor(data), mixtrain.Tensor(label))
        used.append(float(scale))
        overflows.append(bool(overflow))
    assert used == [first, *expected[:-1]]
    assert overflows == [flag == "1" for flag in flags]
    assert float(backend.to_numpy(step.scale_sense)) == expected[-1]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_tensor_is_a_scale_that_stays_until_it_is_set(shape: tuple[int, ...]) -> None:
    step = _step(nn.TrainOneStepWithLossScaleCell, mixtrain.Tensor(np.full(shape, 8.0, np.float32)))
    loss, overflow, scale = step(X, LABEL)
    assert (float(loss), bool(overflow), float(scale)) == (9.0, False, 8.0)
    assert _weight(step) == [[0.25, -0.5]]
    step.set_sense_scale(mixtrain.Tensor([32.0]))
    assert float(step(X, LABEL)[2]) == 32.0


@pytest.mark.parametrize(
    ("scale", "error", "message"),
    [
        (8.0, TypeError, "scale_sense must be an update cell or a scalar tensor; got float 8.0"),
        ("8", TypeError, "scale_sense must be an update cell or a scalar tensor"),
        (mixtrain.Tensor([1.0, 2.0]), ValueError, r"scale_sense must have shape \(\) or \(1,\); got \(2,\)"),
    ],
)
def test_what_is_no_scale_is_refused(scale: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="TrainOneStepWithLossScaleCell: " + message):
        _step(nn.TrainOneStepWithLossScaleCell, scale)


def test_setting_the_scale_takes_a_tensor() -> None:
    step = _step(nn.TrainOneStepWithLossScaleCell, mixtrain.Tensor(8.0))
    with pytest.raises(TypeError, match="set_sense_scale: sens must be a scalar tensor; got int 4"):
        step.set_sense_scale(4)


class OwnUpdate(nn.Cell):
    """Quarters the scale after an overflow and adds 1 otherwise."""

    def get_loss_scale(self) -> float:
        return 64.0

    def construct(self, scale: Any, overflow: Any) -> Any:
        scale.assign(keras.ops.where(overflow, scale / 4, scale + 1))
        return overflow


@MODES
def test_an_update_cell_of_ones_own_moves_the_scale(mode: int) -> None:
    mixtrain.set_context(mode=mode)
    net = Chain()
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.L1Loss()), nn.SGD(net.trainable_params(), 2.0**-20), OwnUpdate()
    )
    used = [float(step(mixtrain.Tensor(x), mixtrain.Tensor(y))[2]) for x, y in batches("00100")]
    assert used == [64, 65, 66, 16.5, 17.5]
    assert float(backend.to_numpy(step.state.skipped_steps)) == 1
    # The counts at the smallest scale go by this scale, not by the one of the start.
    assert float(backend.to_numpy(step.state.loss_scale)) == 17.5


class OwnStep(nn.TrainOneStepWithLossScaleCell):
    """A step as MindSpore scripts write it, by the methods that the base class offers for it."""

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        status, scale = self.start_overflow_check(loss, self.scale_sense)
        start = keras.ops.ones(loss.shape, loss.dtype) * scale
        gradients = [gradient / scale for gradient in self.grad(self.network, self.weights)(*inputs, start)]
        overflow = self.process_loss_scale(self.get_overflow_status(status, gradients))
        backend.cond(overflow, lambda: None, lambda: self.optimizer(gradients))
        return loss, overflow, scale


@MODES
def test_a_scaled_step_of_ones_own_skips_and_moves_the_scale(mode: int) -> None:
    mixtrain.set_context(mode=mode)
    net = Chain()
    step = OwnStep(
        nn.WithLossCell(net, nn.L1Loss()), nn.SGD(net.trainable_params(), 2.0**-20),
        nn.DynamicLossScaleUpdateCell(16, 2, 3),
    )
    results = [step(mixtrain.Tensor(x), mixtrain.Tensor(y)) for x, y in batches("0110")]
    assert [bool(overflow) for _, overflow, _ in results] == [False, True, True, False]
    assert [float(scale) for _, _, scale in results] == [16, 16, 8, 4]
    assert net.first.asnumpy() == 2.0**-10 - 2 * 2.0**-20  # two applied steps, each of gradient 1


def test_a_step_is_compiled_anew_only_when_its_precision_or_mode_changes() -> None:
    step = _step()
    for _ in range(3):
        step(X, LABEL)
    (call,) = step._compiled.values()
    compiled = call.compiled()
    assert backend.trace_count(compiled) == 1
    step.network.backbone_network.to_float(mixtrain.bfloat16)
    step(X, LABEL)
    assert call.compiled() is not compiled and call.traces() == 1
    step.set_train(not step.training)
    step(X, LABEL)
    assert [call.traces() for call in step._compiled.values()] == [1, 1]


def test_a_construct_of_the_users_own_finds_the_manager_and_a_map() -> None:
    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    update = nn.DynamicLossScaleUpdateCell(4, 2, 10)
    trained = nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5)
    assert nn.TrainOneStepWithLossScaleCell(*trained, update).loss_scaling_manager is update
    step = nn.TrainOneStepWithLossScaleCell(*trained, mixtrain.Tensor(1.0))
    assert step.loss_scaling_manager is None
    assert step.hyper_map(lambda x: 2 * x, (1, 2)) == (2, 4)


class _ReturnsParameters(nn.Cell):
    """Returns its loss scale and a weight, both Parameters, as cells of public scripts do."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.scale_sense = mixtrain.Parameter(mixtrain.Tensor(4.0), name="scale_sense", requires_grad=False)
        self.grad = mixtrain.ops.GradOperation(get_by_list=True)

    def construct(self, x: Any, label: Any) -> Any:
        loss = self.network(x, label)
        grads = self.grad(self.network, self.optimizer.parameters)(x, label)
        loss = mixtrain.ops.depend(loss, self.optimizer(grads))
        return loss, self.scale_sense, self.optimizer.parameters[0]


def test_a_parameter_that_a_train_cell_returns_is_its_value_after_the_step() -> None:
    outputs: list[list[float]] = []

    class Record(mixtrain.Callback):
        def step_end(self, run_context: Any) -> None:
            outputs.append([value.asnumpy().ravel()[0] for value in run_context.original_args().net_outputs])

    net = _dense()
    step = _ReturnsParameters(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.125))
    mixtrain.Model(step).train(1, [(X, LABEL)] * 2, callbacks=[Record()], verbose=0)
    assert outputs == [[9.0, 4.0, 0.25], [0.5625, 4.0, 0.4375]]


class _TwoForwards(nn.Cell):
    """Runs its network for the loss, and again for the gradients: what train cells of scripts are."""

    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.network.set_grad()
        self.grad = mixtrain.ops.GradOperation(get_by_list=True, sens_param=True)

    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        grads = self.grad(self.network, self.optimizer.parameters)(*inputs, mixtrain.ops.ones_like(loss))
        return mixtrain.ops.depend(loss, self.optimizer(grads))


class _TwoForwardsScaled(nn.TrainOneStepWithLossScaleCell):
    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(network, optimizer, mixtrain.Tensor(1.0, mixtrain.float32))

    construct = _TwoForwards.construct  # type: ignore[assignment]


class _ByValueAndGrad(_TwoForwards):
    def construct(self, *inputs: Any) -> Any:
        loss = self.network(*inputs)
        _, grads = mixtrain.value_and_grad(self.network, None, self.optimizer.parameters)(*inputs)
        return mixtrain.ops.depend(loss, self.optimizer(grads))


class _WithoutSetGrad(_TwoForwards):
    def __init__(self, network: Any, optimizer: Any) -> None:
        super().__init__(network, optimizer)
        self.network.set_grad(False)


def test_in_one_graph_statistics_move_once_without_set_grad_and_with_each_call_of_a_script() -> None:
    rows, labels = mixtrain.Tensor([[1.0, 2.0], [3.0, 6.0]]), mixtrain.Tensor([[0.0, 0.0], [1.0, 1.0]])
    norm = nn.BatchNorm1d(2)
    net = nn.SequentialCell(norm)
    step = _WithoutSetGrad(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.125)).set_train()
    step(rows, labels)
    assert np.allclose(norm.moving_mean.asnumpy(), [0.2, 0.4])
    mixtrain.Model(step).train(1, [(rows, labels)], verbose=0)
    assert np.allclose(norm.moving_mean.asnumpy(), [0.38, 0.76])
    step.network(rows, labels)
    step.grad(step.network, step.optimizer.parameters)(rows, labels, mixtrain.Tensor(1.0))
    assert np.allclose(norm.moving_mean.asnumpy(), [0.6878, 1.3756])


@MODES
@pytest.mark.parametrize("cell", [_TwoForwards, _TwoForwardsScaled, _ByValueAndGrad])
def test_statistics_move_once_a_step_where_a_cell_runs_its_network_for_loss_and_gradients(mode: int, cell: Any) -> None:
    mixtrain.set_context(mode=mode)
    rows, labels = mixtrain.Tensor([[1.0, 2.0], [3.0, 6.0]]), mixtrain.Tensor([[0.0, 0.0], [1.0, 1.0]])
    norm = nn.BatchNorm1d(2)
    net = nn.SequentialCell(norm)
    step = cell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.125)).set_train()
    step(rows, labels)
    assert np.allclose(norm.moving_mean.asnumpy(), [0.2, 0.4])  # As in MindSpore 2.10, in both of its modes.
    step(rows, labels)
    assert np.allclose(norm.moving_mean.asnumpy(), [0.38, 0.76])
    step.grad(step.network, step.optimizer.parameters)(rows, labels, mixtrain.Tensor(1.0))
    assert np.allclose(norm.moving_mean.asnumpy(), [0.542, 1.084])  # A gradient alone is a forward pass.
    assert norm.gamma.asnumpy().tolist() != [1.0, 1.0]
