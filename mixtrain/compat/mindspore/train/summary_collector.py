"""`SummaryCollector`: writes loss, learning rate, loss scale and more to a TensorBoard event file."""

from __future__ import annotations

import json
import os
import re
from typing import Any, ClassVar, Final, TypeVar

import numpy as np

from mixtrain import backend, checks
from mixtrain.compat.mindspore.train.summary_record import SummaryRecord, check_export_options
from mixtrain.network.walk import is_optimizer_cell
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_files import make_folder
from mixtrain.train.callback.steps import steps_of
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.typing import Optimizer, Tensor, Variable

_CollectorT = TypeVar("_CollectorT", bound="SummaryCollector")
_WHERE: Final = "SummaryCollector"
_SWITCHES: Final = (
    "collect_metric", "collect_graph", "collect_train_lineage", "collect_eval_lineage", "collect_input_data",
    "collect_dataset_graph",
)
_NAMES: Final = (*_SWITCHES, "histogram_regular", "collect_landscape")
_MAX_TENSORS: Final = 20
_MAX_HISTOGRAMS: Final = 5


class SummaryCollector(Callback):
    """Writes TensorBoard summaries of a run at the first step and at each multiple of `collect_freq`.

    Scalars are "loss", "learning_rate" (of the next step) and with loss scaling "loss_scale", "overflow" and
    "skipped_steps" (so far), for every due step also with sink feed. Further summaries are the values of summary
    operations, histograms of parameters, the images of a batch, and metrics as "eval/...". Graphs of network and
    dataset are not written.

    Args:
        summary_dir: The folder, created if it is missing.
        collect_freq: Steps between collections.
        num_process: Accepted for MindSpore scripts.
        collect_specified_data: What is collected: a dict of "collect_metric", "collect_input_data",
            "collect_train_lineage", "collect_eval_lineage" (each True or False) and "histogram_regular" (a pattern for
            the names of parameters; None for the first five). "collect_graph" and "collect_dataset_graph" have no
            effect.
        keep_default_action: Whether data not named in `collect_specified_data` is collected.
        custom_lineage_data: A dict from str to str, int or float, written as text.
        collect_tensor_freq: Steps between values of `ops.TensorSummary`; None for about 20 per run at most.
        max_file_size: Maximum size of the file in bytes; None for no limit.
        export_options: As in `SummaryRecord`.

    Raises: TypeError if an argument has the wrong type. ValueError if an argument is out of range.

    Example: ``SummaryCollector("./summary", collect_freq=100)``.
    """

    __module__ = "mixtrain.train.callback.summary_collector"  # By which pickles name it.

    observes_only: ClassVar[bool] = True

    def __init__(
        self, summary_dir: str | os.PathLike[str], collect_freq: int = 10, num_process: int = 32,
        collect_specified_data: dict[str, Any] | None = None, keep_default_action: bool = True,
        custom_lineage_data: dict[str, Any] | None = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if summary_dir is None:
            raise checks.fail_type(_WHERE, "summary_dir must be a str", summary_dir, 'summary_dir="./summary"')
        self._freq = checks.integer(_WHERE, "collect_freq", collect_freq, at_least=1, example=10)
        for name, value in (("collect_tensor_freq", collect_tensor_freq), ("max_file_size", max_file_size)):
            if value is not None:
                checks.integer(_WHERE, name, value, at_least=1, example=100)
        checks.boolean(_WHERE, "keep_default_action", keep_default_action)
        self._collects = _collection_options(collect_specified_data, keep_default_action)
        self._lineage = _checked_lineage(custom_lineage_data)
        check_export_options(_WHERE, export_options)
        self._tensor_freq = collect_tensor_freq
        self._options: dict[str, Any] = {"max_file_size": max_file_size, "export_options": export_options}
        self._folder = make_folder(_WHERE, summary_dir)
        self._record: SummaryRecord | None = None
        self._skipped = 0

    def __enter__(self: _CollectorT) -> _CollectorT:
        self._record, self._skipped = SummaryRecord(self._folder, **self._options), 0
        return self

    def __exit__(self, *error: object) -> Any:
        if self._record is not None:
            self._record.close()
        return None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Write the classes and numbers of the run, as text."""
        record, arguments = self._open(), run_context.original_args()
        if self._collects["collect_train_lineage"]:
            classes = {name: type(arguments.get(name)).__name__ for name in ("network", "loss_fn", "optimizer")}
            numbers = {name: arguments.get(name) for name in ("epoch_num", "batch_num", "dataset_sink_mode")}
            record.add_text("train_lineage", json.dumps({**classes, **numbers}))
        if self._lineage:
            record.add_text("custom_lineage_data", json.dumps(self._lineage))

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Write the due steps of a call."""
        arguments = run_context.original_args()
        records, last = steps_of(arguments), arguments.cur_step_num
        steps = np.arange(last - len(records) + 1, last + 1)
        due = np.flatnonzero((steps == 1) | (steps % self._freq == 0))
        previously_skipped = self._skipped
        if records.scaled:
            self._skipped += int(records.overflow.sum())
        if not len(due):
            return
        record = self._open()
        for row in due.tolist() if self._collects["collect_metric"] else []:
            numbers = {"loss": float(records.loss[row])}
            if records.scaled:
                numbers["loss_scale"] = float(records.loss_scale[row])
                numbers["overflow"] = float(records.overflow[row])
                numbers["skipped_steps"] = float(previously_skipped + records.overflow[: row + 1].sum())
            record.write_numbers(int(steps[row]), numbers)
        self._add_state(record, arguments)
        total_steps = int(arguments.get("epoch_num", 1) * (arguments.get("batch_num", 0) or 1))
        freq = self._tensor_freq or max(self._freq, total_steps // _MAX_TENSORS)
        tensors_due = bool(np.any((steps == 1) | (steps % freq == 0)))
        # Values of summary operations are those of the last step of a call.
        record.record(last, plugin_filter=None if tensors_due else lambda plugin: plugin != "tensor")

    def free_steps(self, run_context: RunContext) -> float:
        done = run_context.original_args().get("cur_step_num", 0)
        return 1 if done == 0 else self._freq - done % self._freq

    def on_eval_end(self, run_context: RunContext) -> None:
        """Write the metrics of an evaluation."""
        arguments = run_context.original_args()
        metrics = arguments.get("metrics") or {}
        if self._record is None or not self._collects["collect_eval_lineage"]:
            return
        numbers = {f"eval/{name}": float(value) for name, value in metrics.items() if np.ndim(value) == 0}
        self._record.write_numbers(int(arguments.get("cur_epoch_num", 1)), numbers)

    def _open(self) -> SummaryRecord:
        if self._record is None:
            self.__enter__()
        return self._record  # type: ignore[return-value]

    def _add_state(self, record: SummaryRecord, arguments: CallbackArguments) -> None:
        """Add the learning rate, histograms of parameters and the images of the batch."""
        if self._collects["collect_metric"]:
            record.write_numbers(arguments.cur_step_num, learning_rates(arguments.get("optimizer")))
        for name, parameter in self._parameters(arguments):
            if len(parameter.shape):
                record.add_value("histogram", name, backend.to_tensor(parameter))
        batch = arguments.get("train_dataset_element")
        collects = self._collects["collect_input_data"] and isinstance(batch, (tuple, list))
        image: Tensor = batch[0] if collects else None
        if backend.is_tensor(image) and len(image.shape) == 4 and image.shape[1] in (1, 3):
            record.add_value("image", "input_data", image)

    def _parameters(self, arguments: CallbackArguments) -> list[tuple[str, Variable]]:
        """Return the parameters whose histograms are written, by name."""
        pattern = self._collects["histogram_regular"]
        if pattern is False or not hasattr(arguments.get("train_network"), "trainable_params"):
            return []
        named = [(parameter.name, parameter) for parameter in arguments.train_network.trainable_params()]
        return named[:_MAX_HISTOGRAMS] if pattern is None else [item for item in named if re.match(pattern, item[0])]


def learning_rates(optimizer: Optimizer) -> dict[str, float]:
    """Return the learning rate of the next step by tag, or the distinct rates of parameter groups."""
    if optimizer is None:
        return {}
    rates = optimizer._next_lr() if is_optimizer_cell(optimizer) else optimizer.learning_rate
    if not isinstance(rates, tuple):
        return {"learning_rate": float(rates)}
    distinct = dict.fromkeys(float(rate) for rate in rates)
    return {f"learning_rate/{index}": rate for index, rate in enumerate(distinct)}


def _collection_options(specified: Any, keep_defaults: bool) -> dict[str, Any]:
    """Return what is collected: True or False by name, and the pattern of histograms (False for none)."""
    specified = {} if specified is None else specified
    checks.instance(_WHERE, "collect_specified_data", specified, dict, '{"collect_metric": False}')
    for name, value in specified.items():
        checks.one_of(_WHERE, "each of collect_specified_data", name, _NAMES)
        if name in _SWITCHES:
            checks.boolean(_WHERE, name, value)
        elif name == "collect_landscape" and value is not None:
            raise checks.fail_value(_WHERE, "collect_landscape must be None: it is not supported", value, "None")
        elif value is not None and not isinstance(value, str):
            raise checks.fail_type(_WHERE, f"{name} must be a str", value, '"^conv1.*"')
    by_default = keep_defaults or not specified
    defaults: dict[str, Any] = {name: by_default for name in _SWITCHES}
    return {**defaults, "histogram_regular": None if by_default else False, **specified}


def _checked_lineage(lineage: Any) -> dict[str, Any]:
    lineage = {} if lineage is None else lineage
    checks.instance(_WHERE, "custom_lineage_data", lineage, dict, '{"dataset": "mnist"}')
    for name, value in lineage.items():
        if not isinstance(name, str) or not isinstance(value, (str, int, float)):
            raise checks.fail_type(_WHERE, f"custom_lineage_data[{name!r}] must be a str or number", value, "a str")
    return dict(lineage)
