"""`SummaryRecord`: writes values of a run to an event file for TensorBoard."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar

import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.compat.mindspore.train.summary_events import SummaryEvents
from mixtrain.ops.summary_values import begin_recording, end_recording, take_values
from mixtrain.train.callback.checkpoint_files import make_folder
from mixtrain.typing import Network

_RecordT = TypeVar("_RecordT", bound="SummaryRecord")
_WHERE: Final = "SummaryRecord"
PLUGINS: Final = ("scalar", "image", "tensor", "histogram")
# Images of a batch that are written.
_MAX_IMAGES: Final = 10


class SummaryRecord:
    """Writes numbers, tensors, images and histograms to an event file; a context manager that closes it.

    While one is open, summary operations (`ops.ScalarSummary` and others) collect values, which `record` writes too.

    Args:
        log_dir: The directory, created if it does not exist.
        file_prefix: Accepted for MindSpore scripts; the file is called ``events.out.tfevents...``.
        file_suffix: The end of the file's name.
        num_process, network: Accepted for MindSpore scripts; no graph is written.
        max_file_size: Size in bytes at which writing stops; None for no limit.
        raise_exception: Whether to raise an error if the file cannot be written, not only a warning.
        export_options: ``{"tensor_format": "npy"}`` writes tensors as ``.npy`` files too.

    Raises: TypeError if an argument has the wrong type. ValueError if an argument is out of range.

    Example: ``with SummaryRecord("./summary") as record: record.add_value("scalar", "loss", loss); record.record(1)``.
    """

    __module__ = "mixtrain.train.summary_record"  # By which pickles name it.

    def __init__(
        self, log_dir: str | os.PathLike[str], file_prefix: str = "events", file_suffix: str = "_MS",
        num_process: int = 32, network: Network | None = None, max_file_size: int | None = None,
        raise_exception: bool = False, export_options: dict[str, Any] | None = None,
    ) -> None:
        for name, value in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            checks.instance(_WHERE, name, value, str, f'{name}="_MS"')
        if max_file_size is not None:
            checks.integer(_WHERE, "max_file_size", max_file_size, at_least=1, example=2**30)
        if log_dir is None:
            raise checks.fail_type(_WHERE, "log_dir must be a str", log_dir, 'log_dir="./summary"')
        self._max_file_size = max_file_size
        self.raise_exception = checks.boolean(_WHERE, "raise_exception", raise_exception)
        self._exports_tensors = check_export_options(_WHERE, export_options)
        self._folder = make_folder(_WHERE, log_dir)
        self._writer = SummaryEvents(self._folder, file_suffix)
        self._pending: dict[tuple[str, str], np.ndarray] = {}
        self._mode = "train"
        self._closed = self._full = False
        begin_recording()

    def __enter__(self: _RecordT) -> _RecordT:
        if self._closed:
            raise ValueError(f"{_WHERE}: expected one that is open; got a closed one. Write SummaryRecord(log_dir).")
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def log_dir(self) -> str:
        """The full path of the event file."""
        return str(self._writer.path)

    def set_mode(self, mode: Literal["train", "eval"]) -> None:
        """Set the mode: in "eval", values of summary operations are not written."""
        self._mode = str(checks.one_of(f"{_WHERE}.set_mode", "mode", mode, ("train", "eval")))

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Keep a value for the next `record`, which writes the latest value of a name.

        `plugin`: "scalar", "tensor", "histogram" or "image" ((N, C, H, W) with 1 or 3 channels). `value`: A tensor.

        Raises: TypeError if `value` is not a tensor. ValueError if there is no such plugin, `name` is empty, or the
            plugin does not accept the shape of `value`.
        """
        where = f"{_WHERE}.add_value"
        checks.one_of(where, "plugin", plugin, PLUGINS)
        if not isinstance(name, str) or not name:
            raise checks.fail_value(where, "name must be a str that is not empty", name, 'name="loss"')
        if not is_any_tensor(value):
            raise checks.fail_type(where, "value must be a Tensor", value, "mixtrain.Tensor(0.5)")
        self._pending[plugin, name] = _prepared(where, plugin, backend.to_numpy(value))

    def record(
        self, step: int, train_network: Network | None = None, plugin_filter: Callable[[str], bool] | None = None
    ) -> bool:
        """Write the pending values, and those of summary operations.

        `step`: Number of the step. `train_network`: Accepted for MindSpore scripts. `plugin_filter`: Whether to write
        the values of a plugin; the others are dropped.

        Returns: Whether the values were written: False if the record is closed or the file is full.

        Raises: TypeError if `step` is not an int.
        """
        checks.integer(f"{_WHERE}.record", "step", step, at_least=0, example=1)
        collected = {(plugin, tag): _prepared(tag, plugin, value) for plugin, tag, value in take_values()}
        values = {**(collected if self._mode == "train" else {}), **self._pending}
        self._pending = {}
        if plugin_filter is not None:
            values = {key: value for key, value in values.items() if plugin_filter(key[0])}
        return self._write(step, values)

    def write_numbers(self, step: int, numbers: Mapping[str, float]) -> bool:
        """Write numbers by tag at once; pending values stay for `record`. Returns as `record` does."""
        return self._write(step, {("scalar", tag): np.asarray(number) for tag, number in numbers.items()})

    def _write(self, step: int, values: Mapping[tuple[str, str], np.ndarray]) -> bool:
        if self._closed or self._full:
            return False
        try:
            for (plugin, tag), value in values.items():
                getattr(self._writer, plugin)(tag, value, step)
                self._export(plugin, tag, value, step)
            self._check_size()
        except OSError as error:
            if self.raise_exception:
                raise
            warnings.warn(f"{_WHERE}: step {step} was not written: {error}.", stacklevel=3)
            return False
        return True

    def add_text(self, name: str, text: str) -> None:
        """Write text at once, at step 0."""
        self._writer.text(name, text, 0)

    def flush(self) -> None:
        """Flush the file to disk."""
        if not self._closed:
            self._writer.flush()

    def close(self) -> None:
        """Flush and close the file; a second call does nothing."""
        if not self._closed:
            self._closed = True
            end_recording()
            self._writer.close()

    def _export(self, plugin: str, tag: str, value: np.ndarray, step: int) -> None:
        if plugin == "tensor" and self._exports_tensors:
            folder = os.path.join(self._folder, "export", "tensor")
            os.makedirs(folder, exist_ok=True)
            np.save(os.path.join(folder, f"{re.sub(r'[^0-9A-Za-z_.-]', '_', tag)}_{step}.npy"), value)

    def _check_size(self) -> None:
        if self._max_file_size is None:
            return
        self._writer.flush()
        if os.path.getsize(self._writer.path) >= self._max_file_size:
            self._full = True
            warnings.warn(f"{_WHERE}: {self.log_dir} has reached max_file_size; no more is written.", stacklevel=4)


def check_export_options(where: str, options: Any) -> bool:
    """Whether tensors are written as ``.npy`` files too."""
    if options is None:
        return False
    checks.instance(where, "export_options", options, dict, 'export_options={"tensor_format": "npy"}')
    for name, value in options.items():
        checks.one_of(where, "each of export_options", name, ("tensor_format",))
        checks.one_of(where, name, value, ("npy", None))
    return options.get("tensor_format") == "npy"


def _prepared(where: str, plugin: str, value: np.ndarray) -> np.ndarray:
    """Return a value in the shape and dtype of its plugin."""
    if plugin == "scalar" and value.size == 1:
        return value.reshape(())
    if plugin in ("tensor", "histogram") and value.ndim:
        return value
    if plugin == "image" and value.ndim == 4 and value.shape[1] in (1, 3) and value.size:
        pixels = value[:_MAX_IMAGES].transpose(0, 2, 3, 1).astype(np.float64)
        if value.dtype != np.uint8:
            # Stretched to the range of uint8.
            low, high = pixels.min(), pixels.max()
            pixels = (pixels - low) * (255.0 / (high - low if high > low else 1.0))
        return pixels.astype(np.uint8)
    shapes = {"scalar": "one element", "image": "the axes (N, C, H, W) with 1 or 3 channels"}
    expected = shapes.get(plugin, "at least one axis")
    raise checks.fail_value(where, f"a value of {plugin} must have {expected}", value.shape, "another shape")
