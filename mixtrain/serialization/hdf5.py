"""Reading of HDF5 checkpoints, which mixtrain wrote before safetensors, in a process with limited rights.

A damaged file can crash the HDF5 library, and a crafted one can make it read other files. So this process never opens
a file with it: `hdf5_worker` reads the bytes in a separate process and writes them out as safetensors, which this
process checks like any other file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import BinaryIO, Final, cast

from mixtrain.serialization.files import not_a_checkpoint

SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
_WORKER: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hdf5_worker.py")
# The time limit of the process: seconds to start, and the lowest accepted throughput.
_START_SECONDS: Final = 60.0
_BYTES_PER_SECOND: Final = 2**22
# The bytes that names and shapes may add to the length of the values.
_MARGIN: Final = 16 * 2**20


def as_container(path: str, file: BinaryIO, size: int) -> bytes:
    """Return the content of an HDF5 checkpoint as a safetensors file without a digest; a process inherits `file`."""
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    # -P: a file h5py.py in the current folder must not be imported instead of the library.
    worker = subprocess.Popen(
        [sys.executable, "-P", _WORKER], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    timer = threading.Timer(_START_SECONDS + size / _BYTES_PER_SECOND, worker.kill)
    timer.start()
    try:
        with cast(BinaryIO, worker.stdout) as output:
            data = output.read(size + _MARGIN + 1)
        if len(data) > size + _MARGIN:
            worker.kill()
        worker.wait()
    except BaseException:
        worker.kill()
        worker.wait()
        raise
    finally:
        timer.cancel()
    if worker.returncode != 0:
        raise not_a_checkpoint(path, "an HDF5 file of another kind, or a damaged one")
    return data
