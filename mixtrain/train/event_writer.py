"""`EventWriter`: writes event files for TensorBoard, with TensorBoard's own record writer."""

from __future__ import annotations

import itertools
import os
import socket
import time
from typing import Any

import numpy as np

_count = itertools.count()


class EventWriter:
    """Writes the event file `path` in a folder, one value per tag and step; `suffix` ends its name."""

    def __init__(self, folder: str, suffix: str = "") -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.summary.writer.record_writer import RecordWriter
            from tensorboard.util.tensor_util import make_tensor_proto
        except ImportError as error:
            raise ImportError(
                "SummaryRecord: expected TensorBoard to be installed, whose writer writes event files; got none. Write "
                'pip install "mixtrain[summary]".'
            ) from error
        self._event, self._tensor = Event, make_tensor_proto
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_count)}.v2{suffix}"
        self.path = os.path.join(folder, name)
        self._records = RecordWriter(open(self.path, "wb"))
        self._records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        self.flush()

    def buckets(self, tag: str, rows: np.ndarray, step: int) -> None:
        """Write a histogram: rows of left edge, right edge and count, float64 (n, 3)."""
        self.write(tag, rows, step, "histograms")

    def flush(self) -> None:
        self._records.flush()

    def close(self) -> None:
        self._records.close()

    def write(self, tag: str, value: Any, step: int, plugin: str) -> None:
        """Write a value for a plugin of TensorBoard's."""
        event = self._event(wall_time=time.time(), step=step)
        entry = event.summary.value.add(tag=tag, tensor=self._tensor(value))
        entry.metadata.plugin_data.plugin_name = plugin
        self._records.write(event.SerializeToString())
