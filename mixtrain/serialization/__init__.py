"""Checkpoints of networks and of whole runs, and export of networks for other programs."""

from mixtrain.serialization.background import async_ckpt_thread_status
from mixtrain.serialization.checkpoint import Checkpoint, RunState
from mixtrain.serialization.export import export, load
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.latest import load_latest_checkpoint
from mixtrain.serialization.read import load_checkpoint
from mixtrain.serialization.save import save_checkpoint

__all__ = [
    "Checkpoint",
    "RunState",
    "async_ckpt_thread_status",
    "export",
    "load",
    "load_checkpoint",
    "load_latest_checkpoint",
    "load_param_into_net",
    "save_checkpoint",
]
