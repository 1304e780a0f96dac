"""Scripts with a loop of their own call callbacks as MindSpore's do: hooks, a shared dict, names of files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import mixtrain
from mixtrain import Model, Tensor, nn
from mixtrain.train import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    LossMonitor,
    ModelCheckpoint,
    RunContext,
    TimeMonitor,
)
from mixtrain.train.callback import _CallbackManager, _InternalCallbackParam, _set_cur_net
from mixtrain.train.callback._callback import _handle_loss

ROWS = np.ones((3, 4), np.float32)
LABELS = np.ones((3, 2), np.float32)


class Counting(Callback):
    """Counts steps and epochs in the state of the run, as callbacks of public projects do."""

    def step_end(self, run_context: RunContext) -> None:
        cb_params = run_context.original_args()
        cb_params.cur_step_num += 1
        if cb_params.cur_step_num % 4 == 0:
            cb_params.cur_epoch_num += 1
        cb_params.seen = cb_params.get("seen", 0) + 1


def test_a_loop_of_a_script_writes_the_files_and_lines_that_mindspore_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixtrain.set_seed(1)
    net = nn.Dense(4, 2)
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.01, 0.9))
    train.set_train()
    checkpoint = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=4))
    cb_params = _InternalCallbackParam()
    cb_params.train_network = train
    cb_params.epoch_num, cb_params.batch_num = 2, 4
    cb_params.cur_epoch_num = cb_params.cur_step_num = 0
    run_context = RunContext(cb_params)
    _set_cur_net(train)
    with _CallbackManager([Counting(), checkpoint, LossMonitor(), TimeMonitor(4)]) as manager:
        manager.begin(run_context)
        for _ in range(2):
            manager.epoch_begin(run_context)
            for _ in range(4):
                manager.step_begin(run_context)
                cb_params.net_outputs = train(Tensor(ROWS), Tensor(LABELS))
                manager.step_end(run_context)
            manager.epoch_end(run_context)
        manager.end(run_context)
    # As written by MindSpore 2.10 with the same loop.
    assert sorted(os.listdir(tmp_path)) == ["net-0_3.ckpt", "net-1_2.ckpt", "net-2_4.ckpt"]
    lines = capsys.readouterr().out.splitlines()
    labels = [line.split(",")[0] for line in lines if line.startswith("epoch")]
    assert labels == [f"epoch: {epoch} step: {step}" for epoch, step in zip(
        (0, 0, 0, 1, 1, 1, 1, 2), (1, 2, 3, 4) * 2, strict=True
    )]
    assert sum("epoch time" in line for line in lines) == 2
    assert cb_params["seen"] == cb_params.cur_step_num == 8
    stored = mixtrain.load_checkpoint(str(tmp_path / "net-2_4.ckpt"))
    np.testing.assert_array_equal(stored["weight"].asnumpy(), net.weight.asnumpy())


def test_a_plain_dict_is_the_state_itself_on_both_sides() -> None:
    fields = {"cur_epoch_num": 4, "cur_step_num": 2}
    arguments = RunContext(fields).original_args()
    fields["cur_step_num"] = 3
    arguments.cur_epoch_num += 1
    assert (arguments["cur_step_num"], fields["cur_epoch_num"], arguments.get("batch_num", 7)) == (3, 5, 7)


def test_a_name_that_the_script_has_not_set_is_an_error_that_says_so() -> None:
    with pytest.raises(AttributeError, match=r"cb_params.batch_num: the script has not set it. Write cb_params"):
        _ = _InternalCallbackParam().batch_num
    with pytest.raises(TypeError, match="CallbackManager: each must be a Callback; got int 3"):
        _CallbackManager([3])  # type: ignore[list-item]


@pytest.mark.parametrize("outputs", [lambda loss: loss, lambda loss: (loss, Tensor(False))])
def test_handle_loss_takes_what_train_cells_return(outputs: object) -> None:
    loss = _handle_loss(outputs(Tensor(np.float32(2.5))))  # type: ignore[operator]
    assert float(loss) == 2.5
    assert _handle_loss(1.5) == 1.5


def test_a_run_of_model_still_refuses_to_let_callbacks_write_its_state() -> None:
    class Writing(Callback):
        def step_end(self, run_context: RunContext) -> None:
            run_context.original_args().cur_step_num = 0

    net = nn.Dense(4, 2)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    data = mixtrain.dataset.NumpySlicesDataset((ROWS, LABELS), shuffle=False).batch(3)
    with pytest.raises(AttributeError, match="the training loop writes it"):
        model.train(1, data, callbacks=[Writing()])


def test_a_loop_that_only_sets_the_results_of_evaluations_is_stopped_by_them() -> None:
    cb_params = _InternalCallbackParam()
    run_context = RunContext(cb_params)
    with _CallbackManager([EarlyStopping(monitor="accuracy", patience=2, baseline=0.55)]) as manager:
        for epoch, accuracy in enumerate([0.6, 0.3, 0.5, 0.5], 1):
            manager.on_train_epoch_begin(run_context)
            cb_params.eval_results, cb_params.cur_epoch_num = {"accuracy": accuracy}, epoch
            manager.on_train_epoch_end(run_context)
            if run_context.get_stop_requested():
                break
        manager.on_train_end(run_context)
    assert cb_params.cur_epoch_num == 3
