"""`CheckpointConfig`: when `ModelCheckpoint` writes files, what they hold, and how many are kept."""

from __future__ import annotations

from typing import Any, Final

from mixtrain import checks
from mixtrain.network.walk import is_layer
from mixtrain.serialization.save import check_append_dict, check_async_save, check_encryption, check_options
from mixtrain.typing import Network

_COUNTS: Final = ("epoch_num", "step_num")
_POLICY: Final = (
    "save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max", "keep_checkpoint_per_n_minutes",
    "saved_network",
)


class CheckpointConfig:
    """When `ModelCheckpoint` writes files, what they hold, and how many are kept.

    Args:
        save_checkpoint_steps: Steps between files; 0 or None to use seconds.
        save_checkpoint_seconds: Seconds between files; without effect if steps are set.
        keep_checkpoint_max: How many of the newest files are kept; 0 or None to use minutes.
        keep_checkpoint_per_n_minutes: Keep one file for every so many minutes; without effect if a maximum is set.
        async_save: Whether a thread writes the files (True, "thread" or "process").
        saved_network: The Cell or Keras model to write instead of the train network.
        append_info: A list of "epoch_num", "step_num" and at most one dict of further values to write.
        enc_key, enc_mode: None, and accepted for MindSpore scripts: files are not encrypted.
        exception_save: Whether a file is written when the run ends by an exception.
        integrated_save, crc_check, remove_redundancy: Accepted: there is one device, and checksums are always written.
        **kwargs: ``format`` ("ckpt" alone), and the older spellings ``save_ckpt_steps`` and ``keep_ckpt_max``.

    Raises: TypeError if an argument has the wrong type. ValueError if an argument is out of range, or all four numbers
        are 0.

    Example: ``CheckpointConfig(save_checkpoint_steps=100, keep_checkpoint_max=3)``.
    """

    def __init__(
        self, save_checkpoint_steps: int | None = 1, save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5, keep_checkpoint_per_n_minutes: int | None = 0,
        integrated_save: bool = True, async_save: bool | str = False, saved_network: Network | None = None,
        append_info: list[Any] | None = None, enc_key: bytes | None = None, enc_mode: str = "AES-GCM",
        exception_save: bool = False, crc_check: bool = False, remove_redundancy: bool = False, **kwargs: Any,
    ) -> None:
        where = "CheckpointConfig"
        save_checkpoint_steps = kwargs.pop("save_ckpt_steps", save_checkpoint_steps)
        keep_checkpoint_max = kwargs.pop("keep_ckpt_max", keep_checkpoint_max)
        numbers = {
            "save_checkpoint_steps": save_checkpoint_steps, "save_checkpoint_seconds": save_checkpoint_seconds,
            "keep_checkpoint_max": keep_checkpoint_max, "keep_checkpoint_per_n_minutes": keep_checkpoint_per_n_minutes,
        }
        for name, value in numbers.items():
            if value is not None:
                checks.integer(where, name, value, at_least=0, example=5)
        if not any(numbers.values()):
            raise checks.fail_value(
                where, "one of its numbers must be more than 0", tuple(numbers.values()), "save_checkpoint_steps=100"
            )
        check_options(where, {**kwargs, "crc_check": crc_check, "remove_redundancy": remove_redundancy})
        check_encryption(where, enc_key, enc_mode)
        if saved_network is not None and not is_layer(saved_network):
            raise checks.fail_type(
                where, "saved_network must be a Cell or Layer", saved_network, "saved_network=network"
            )
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_per_n_minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes
        if not self.keep_checkpoint_max and not self.keep_checkpoint_per_n_minutes:
            self.keep_checkpoint_max = 1
        self.integrated_save = checks.boolean(where, "integrated_save", integrated_save)
        self.async_save = check_async_save(where, async_save)
        self.exception_save = checks.boolean(where, "exception_save", exception_save)
        self.crc_check = crc_check
        self.saved_network = saved_network
        self.append_dict = _append_dict(where, append_info)
        self.enc_key, self.enc_mode = enc_key, enc_mode

    def get_checkpoint_policy(self) -> dict[str, Any]:
        """Return the four numbers and the network, by name."""
        return {name: getattr(self, name) for name in _POLICY}


def _append_dict(where: str, append_info: Any) -> dict[str, Any] | None:
    """Return the values to append: the requested counts, as 0, and those of the dict."""
    if append_info is None or append_info == []:
        return None
    checks.instance(where, "append_info", append_info, list, 'append_info=["epoch_num", "step_num"]')
    values: dict[str, Any] = {name: 0 for name in _COUNTS if name in append_info}
    for item in append_info:
        if isinstance(item, str):
            checks.one_of(where, "each name in append_info", item, _COUNTS)
        else:
            checks.instance(where, "each item of append_info", item, dict, 'append_info=["epoch_num", {"rate": 0.1}]')
            values |= check_append_dict(where, item)
    if sum(isinstance(item, dict) for item in append_info) > 1:
        raise checks.fail_type(where, "append_info must have at most one dict", append_info, "one dict for all values")
    return values
