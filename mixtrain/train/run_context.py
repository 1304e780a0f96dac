"""`CallbackArguments` and `RunContext`: the state of a run for callbacks, and how they stop it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn

from mixtrain import boundary, checks
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.train.later import now
from mixtrain.train.records import StepRecords
from mixtrain.typing import DatasetLike, LossFn, Network, Optimizer, Tree


class CallbackArguments:
    """The state of a run as attributes, written by the loop and read by callbacks.

    A callback may store its own values under other names (``arguments.init_time = time.time()``). Reading an attribute
    that is not set yet raises an AttributeError; `get` takes a default.

    Attributes:
        mode: "train" or "eval".
        batch_num: Steps of an epoch; with a sink size, steps of a call.
        epoch_num: Epochs to run.
        cur_epoch_num: Number of the epoch, from 1; not set before the first epoch.
        cur_step_num: Number of the step over all epochs, from 1; with sink feed that of the call's last step.
        steps_before_epoch: Number of the last step before this epoch; at its end, of its own last step.
        network, loss_fn, optimizer: As passed to `Model`.
        train_network: The cell that trains on a batch.
        eval_network: The cell whose outputs the metrics are computed from.
        loss_scale_manager: The manager in use, or None.
        train_dataset, valid_dataset: The data as passed.
        train_dataset_element, eval_dataset_element: The batch of the step; None in training with sink feed.
        net_outputs: The outputs of `train_network` (or `eval_network`) at the last step; None before it.
        step_results: Every step of the call: ``loss``, ``overflow``, ``loss_scale``, ``learning_rate`` and
            ``grad_norm``, arrays of shape (n,); ``gradients`` and ``predictions`` where a callback needs them.
        explain_overflow: In `on_train_overflow`: runs the batch again, layer by layer, and returns the `Finding`.
        measure_ranges: In `on_train_sample`: takes the maximum number of values to count per tensor, runs the batch
            without training, and returns the loss scale, a scalar tensor, and `RangeRecords`.
        epoch_values: At the end of an epoch, its mean "loss" and its other values in the history.
        epoch_results: At the end of an epoch, all its steps, in the form of `step_results`.
        metrics, eval_results: Results by name, after an evaluation; the latter with "eval_loss".
        dataset_sink_mode: Whether a call runs many steps.
        verbose: The progress output: 0 for none, 1 for a bar, 2 for lines.
        list_callback: The callbacks of the run.
        parallel_mode, device_number: "stand_alone" and 1.

    Args:
        shows_tensors: Whether fields with tensors are Tensors, as for a network of Cells, not the backend's tensors.
        **fields: Some of the attributes above.

    Example: ``CallbackArguments(mode="train", cur_step_num=3).get("cur_epoch_num", 1)``.

    Source: MindSpore, `mindspore.train.RunContext`.
    """

    mode: Literal["train", "eval"]
    batch_num: int
    epoch_num: int
    cur_epoch_num: int
    cur_step_num: int
    steps_before_epoch: int
    network: Network
    train_network: Network
    eval_network: Network
    loss_fn: LossFn
    optimizer: Optimizer
    loss_scale_manager: Any
    train_dataset: DatasetLike
    valid_dataset: DatasetLike
    train_dataset_element: Tree
    eval_dataset_element: Tree
    net_outputs: Tree
    step_results: StepRecords | None
    explain_overflow: Callable[[], Finding]
    measure_ranges: Callable[[int | None], tuple[Any, RangeRecords]]
    epoch_values: Mapping[str, float]
    epoch_results: StepRecords
    metrics: Mapping[str, Any]
    eval_results: Mapping[str, Any]
    dataset_sink_mode: bool
    verbose: int
    list_callback: Any
    _step: Any
    _recent: Sequence[StepRecords]
    _found: list[Finding]
    parallel_mode: str
    device_number: int

    def __init__(self, *, shows_tensors: bool = True, **fields: Any) -> None:
        self.__dict__["_shows_tensors"] = shows_tensors
        self._set(**{"parallel_mode": "stand_alone", "device_number": 1, "net_outputs": None, **fields})

    def __getattribute__(self, name: str) -> Any:
        value = now(object.__getattribute__(self, name))
        if name in _OF_TENSORS and object.__getattribute__(self, "__dict__").get("_shows_tensors", True):
            return boundary.to_tensors(value)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or `default` if it is not set."""
        return getattr(self, name) if name in self.__dict__ else default

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _FIELDS:
            raise AttributeError(f'cb_params.{name}: it is not set at this point of the run. Write get("{name}").')
        self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Scripts that resume write the number of the epoch, until the next one begins.
        if name in _FIELDS and name != "cur_epoch_num":
            raise AttributeError(
                f"cb_params.{name}: the training loop writes it, a callback only reads it; got "
                f"{checks.short_repr(value)}. Write another name for a value of your own."
            )
        object.__setattr__(self, name, value)

    def _unknown(self, name: str) -> NoReturn:
        (near,) = checks.nearest(name, [*_FIELDS, *self.__dict__])
        raise AttributeError(f"cb_params.{name}: there is no such value. Write cb_params.{near}.")

    def _set(self, **fields: Any) -> None:
        """Set fields; for the loop only."""
        for name, value in fields.items():
            if name not in _FIELDS:
                self._unknown(name)
            object.__setattr__(self, name, value)

    def _drop(self, *names: str) -> None:
        """Remove fields; for the loop only."""
        fields = self.__dict__
        for name in names:
            fields.pop(name, None)

    @contextlib.contextmanager
    def _lent(self, **fields: Any) -> Iterator[None]:
        """Set fields until the end of the block, then restore all fields; for the loop only."""
        attributes = self.__dict__
        previous = {name: attributes[name] for name in _FIELDS if name in attributes}
        self._set(**fields)
        try:
            yield
        finally:
            self._drop(*_FIELDS)
            attributes.update(previous)


_FIELDS = frozenset(CallbackArguments.__annotations__)
# Fields with tensors: callbacks of a network of Cells are MindSpore code and expect Tensors.
_OF_TENSORS = frozenset({"net_outputs", "train_dataset_element", "eval_dataset_element"})


class _ScriptArguments(CallbackArguments):
    """The state of a run whose loop a script writes: the items of its dict, which the script may set at any time."""

    def __init__(self, fields: dict[str, Any]) -> None:
        # The dict itself holds the attributes, so that both sides see what the other one sets.
        object.__setattr__(self, "__dict__", fields)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value


class RunContext:
    """The argument of a callback's hooks: the state of the run, and the way to stop it.

    Args:
        original_args: The state; for a loop that a script writes, and for tests of callbacks, a dict of its fields.
            What is stored in the dict later is seen by callbacks, and what they store is seen in the dict.

    Raises: TypeError if `original_args` is neither.

    Example: ``RunContext({"cur_epoch_num": 4}).request_stop()``.
    """

    def __init__(self, original_args: CallbackArguments | dict[str, Any]) -> None:
        if isinstance(original_args, dict):
            original_args = _ScriptArguments(original_args)
        self._original_args: CallbackArguments = checks.instance(
            "RunContext", "original_args", original_args, CallbackArguments, 'RunContext({"cur_epoch_num": 1})'
        )
        self._stop_requested = False

    def original_args(self) -> CallbackArguments:
        """Return the state of the run."""
        return self._original_args

    def request_stop(self) -> None:
        """Request the run to stop after the step, or call, that is running."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_requested
