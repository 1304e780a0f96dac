"""The project's log under MindSpore's name: `from mixtrain import log as logger`."""

from __future__ import annotations

import logging
from typing import Final

_LOGGER: Final = logging.getLogger("mixtrain")

debug: Final = _LOGGER.debug
info: Final = _LOGGER.info
warning: Final = _LOGGER.warning
error: Final = _LOGGER.error
critical: Final = _LOGGER.critical

__all__ = ["critical", "debug", "error", "info", "warning"]
