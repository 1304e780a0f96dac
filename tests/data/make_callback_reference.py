"""What MindSpore's EarlyStopping, ReduceLROnPlateau and LearningRateScheduler decide on recorded sequences.

Run with a Python that has MindSpore 2.10 (CPU): ``python tests/data/make_callback_reference.py``; it writes
``callback_reference.npz`` beside itself: for each case of `callback_cases.py` one row a decision.
"""

import pathlib
import sys

import numpy as np
from mindspore import Parameter, Tensor
from mindspore.train import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, RunContext

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from callback_cases import FUNCTIONS, REDUCING, SCHEDULED_STEPS, STOPPING  # noqa: E402


class Arguments(dict):
    """What a hook sees."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


class Optimizer:
    def __init__(self, rate):
        self.learning_rate = Parameter(Tensor(np.float32(rate)), name="learning_rate")


def epochs(callback, values, **fields):
    """Yield (callback, context) after each epoch."""
    arguments = Arguments(fields)
    context = RunContext(arguments)
    callback.on_train_begin(context)
    for epoch, value in enumerate(values, start=1):
        arguments.update(cur_epoch_num=epoch, eval_results={callback.monitor: value}, net_outputs=Tensor(value))
        callback.on_train_epoch_end(context)
        yield context


def main():
    result = {}
    for name, (options, values) in STOPPING.items():
        callback = EarlyStopping(**options)
        rows = []
        for context in epochs(callback, values):
            rows.append((callback.wait, float(callback.best), callback.stopped_epoch))
            if context.get_stop_requested():
                break
        result[f"stopping/{name}"] = np.array(rows, np.float32)
    for name, (options, values) in REDUCING.items():
        callback, optimizer = ReduceLROnPlateau(**options), Optimizer(0.5)
        rows = [
            (callback.wait, callback.cooldown_counter, float(optimizer.learning_rate.asnumpy()))
            for _ in epochs(callback, values, optimizer=optimizer)
        ]
        result[f"reducing/{name}"] = np.array(rows, np.float32)
    for name, (first, function) in FUNCTIONS.items():
        callback, optimizer = LearningRateScheduler(function), Optimizer(first)
        rates = []
        for step in range(1, SCHEDULED_STEPS + 1):
            callback.step_end(RunContext(Arguments(cur_step_num=step, optimizer=optimizer)))
            rates.append(float(optimizer.learning_rate.asnumpy()))
        result[f"scheduled/{name}"] = np.array(rates, np.float32)
    np.savez_compressed(pathlib.Path(__file__).parent / "callback_reference.npz", **result)


if __name__ == "__main__":
    main()
