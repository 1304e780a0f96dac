"""`LearningRateScheduler`: sets the learning rate by a function after each step."""

from __future__ import annotations

import math
from collections.abc import Callable

from mixtrain import checks
from mixtrain.compat.mindspore.train.monitored import rate_variable
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.rates import read_rate
from mixtrain.train.run_context import RunContext

_WHERE = "LearningRateScheduler"


class LearningRateScheduler(Callback):
    """Sets the learning rate, mixtrain's or Keras's, by a function after each step; with sink feed, after each call.

    Args:
        learning_rate_function: Takes the rate and the number of the step, and returns the rate of the next step.

    Raises: TypeError if `learning_rate_function` is not a function, or does not return a number. ValueError if the
        optimizer's rate is a schedule.

    Example: ``LearningRateScheduler(lambda rate, step: rate / 2 if step % 10 == 0 else rate)``.
    """

    __module__ = "mixtrain.train.callback.learning_rate_scheduler"  # By which pickles name it.

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        super().__init__()
        if not callable(learning_rate_function):
            raise checks.fail_type(
                _WHERE, "learning_rate_function must be a function", learning_rate_function,
                "LearningRateScheduler(lambda rate, step: rate * 0.99)",
            )
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        """Call the function, and set the rate if it changes."""
        arguments = run_context.original_args()
        variable = rate_variable(_WHERE, arguments)
        rate = read_rate(variable)
        result = self.learning_rate_function(rate, arguments.cur_step_num)
        new_rate = checks.number(_WHERE, "what learning_rate_function returns", result, example=0.1)
        if not math.isclose(rate, new_rate, rel_tol=1e-10):
            variable.assign(new_rate)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Keep the rate in an evaluation."""
