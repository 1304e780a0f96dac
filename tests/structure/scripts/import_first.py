"""Import one module, by name, and print the settings of the process as JSON.

    python -m tests.structure.scripts.import_first mixtrain
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import signal
import sys
import warnings


def main() -> None:
    """Import the module and print what the process is like."""
    # Nothing of another library may have run before: no `process_state` here.
    streams = {name: id(getattr(sys, name)) for name in ("stdout", "stderr")}
    files = {number: os.fstat(number).st_ino for number in (1, 2)}
    importlib.import_module(sys.argv[1])
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("keras")
    print(json.dumps({
        **{f"os.environ[{name}]": value for name, value in os.environ.items()},
        "streams as before": streams == {name: id(getattr(sys, name)) for name in streams},
        "files as before": files == {number: os.fstat(number).st_ino for number in files},
        "warning filters": [str(one) for one in warnings.filters],
        "logging": [str(one) for one in logging.root.handlers] + [logging.root.level],
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGALRM)],
        "meta path": [getattr(one, "__name__", type(one).__name__) for one in sys.meta_path],
    }))


if __name__ == "__main__":
    main()
