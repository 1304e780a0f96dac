"""`LambdaCallback`: a callback made from functions."""

from __future__ import annotations

from collections.abc import Callable

from mixtrain import checks
from mixtrain.train.callback.callback import Callback
from mixtrain.train.run_context import RunContext

Hook = Callable[[RunContext], object]


class LambdaCallback(Callback):
    """Calls the given functions, each with the run context, as its hooks.

    Args:
        on_train_begin, on_train_epoch_begin, on_train_step_begin, on_train_step_end, on_train_epoch_end, on_train_end,
        on_eval_begin, on_eval_epoch_begin, on_eval_step_begin, on_eval_step_end, on_eval_epoch_end, on_eval_end: As the
            methods of `Callback`; None for no hook.

    Raises: TypeError if an argument is neither a function nor None.

    Example: ``LambdaCallback(on_train_epoch_end=lambda context: print(context.original_args().cur_epoch_num))``.
    """

    __module__ = "mixtrain.train.callback.lambda_callback"  # By which pickles name it.

    def __init__(
        self, on_train_epoch_begin: Hook | None = None, on_train_epoch_end: Hook | None = None,
        on_train_step_begin: Hook | None = None, on_train_step_end: Hook | None = None,
        on_train_begin: Hook | None = None, on_train_end: Hook | None = None, on_eval_epoch_begin: Hook | None = None,
        on_eval_epoch_end: Hook | None = None, on_eval_step_begin: Hook | None = None,
        on_eval_step_end: Hook | None = None, on_eval_begin: Hook | None = None, on_eval_end: Hook | None = None,
    ) -> None:
        super().__init__()
        hooks = {
            "on_train_epoch_begin": on_train_epoch_begin, "on_train_epoch_end": on_train_epoch_end,
            "on_train_step_begin": on_train_step_begin, "on_train_step_end": on_train_step_end,
            "on_train_begin": on_train_begin, "on_train_end": on_train_end, "on_eval_epoch_begin": on_eval_epoch_begin,
            "on_eval_epoch_end": on_eval_epoch_end, "on_eval_step_begin": on_eval_step_begin,
            "on_eval_step_end": on_eval_step_end, "on_eval_begin": on_eval_begin, "on_eval_end": on_eval_end,
        }
        for name, hook in hooks.items():
            if hook is None:
                continue
            if not callable(hook):
                raise checks.fail_type(
                    "LambdaCallback", f"{name} must be a function", hook, f"{name}=lambda run_context: None"
                )
            # Set on the instance, because `CallbackList` calls only hooks that differ from those of the base class.
            setattr(self, name, hook)
