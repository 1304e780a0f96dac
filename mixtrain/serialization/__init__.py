"""Checkpoints of networks and of whole runs, and export of networks for other programs."""

from typing import TYPE_CHECKING

from mixtrain.lazy_names import serve_names
from mixtrain.serialization.checkpoint import Checkpoint, RunState
from mixtrain.serialization.files import async_ckpt_thread_status
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.latest import load_latest_checkpoint
from mixtrain.serialization.read import load_checkpoint, load_checkpoint_async
from mixtrain.serialization.save import save_checkpoint

if TYPE_CHECKING:
    from mixtrain.compat.mindspore.export import export, load

__all__ = [
    "Checkpoint", "RunState", "async_ckpt_thread_status", "export", "load", "load_checkpoint",
    "load_checkpoint_async", "load_latest_checkpoint", "load_param_into_net", "save_checkpoint",
]

# MindSpore's export of Cells, which is loaded when one of its functions is used.
serve_names(__name__, dict.fromkeys(("export", "load"), "mixtrain.compat.mindspore.export"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
