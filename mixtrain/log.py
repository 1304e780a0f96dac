"""The project's log under MindSpore's name: `from mixtrain import log as logger`."""

from __future__ import annotations

import logging
import os
from typing import Final

GLOBAL_LOGGER: logging.Logger = logging.getLogger("mixtrain")
_LOGGER: Final = GLOBAL_LOGGER
# As in MindSpore, the environment may say from which level on messages are shown.
if os.environ.get("GLOG_v") in ("0", "1", "2", "3", "4"):
    _LOGGER.setLevel(10 * (int(os.environ["GLOG_v"]) + 1))

debug: Final = _LOGGER.debug
info: Final = _LOGGER.info
warning: Final = _LOGGER.warning
error: Final = _LOGGER.error
critical: Final = _LOGGER.critical


def get_level() -> str:
    """Return MindSpore's number of the log level, from "0" for debug to "4" for critical.

    Example:
        >>> get_level()
        '2'
    """
    return str(min(max(_LOGGER.getEffectiveLevel() // 10 - 1, 0), 4))


def get_log_config() -> dict[str, str]:
    """Return the log's settings under MindSpore's names: its level, and that it writes to standard error.

    Example:
        >>> get_log_config()
        {'GLOG_v': '2', 'GLOG_logtostderr': '1'}
    """
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


__all__ = ["critical", "debug", "error", "get_level", "get_log_config", "info", "warning"]
