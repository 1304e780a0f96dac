"""A process that reads mutants of a checkpoint one after the other, with little memory, and reports on each.

It runs the readers of `mixtrain.serialization` without the package around them, and so without a backend, which reading
does not need: it starts in a fraction of a second.

    python -m tests.serialization.fuzz_worker FILE FIRST COUNT

FILE is a whole checkpoint. Standard output gets one line of JSON a mutant.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import random
import resource
import sys
import time
import types
from typing import Any

import h5py

from tests.serialization.mutations import changed_bytes, mutant

MEMORY = 200 * 2**20
_in_children: list[int] = []


def _without_backend() -> None:
    """Let `mixtrain` and `mixtrain.serialization` be packages whose modules are imported one by one."""
    root = pathlib.Path(__file__).parents[2] / "mixtrain"
    for name, folder in (("mixtrain", root), ("mixtrain.serialization", root / "serialization")):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package


if __name__ == "__main__":
    _without_backend()

from mixtrain.errors import CheckpointError  # noqa: E402
from mixtrain.serialization import hdf5_worker, store  # noqa: E402


@dataclasses.dataclass
class Opened:
    """The files that are opened while `listening`."""

    listening: bool = False
    paths: list[str] = dataclasses.field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.listening and event in ("open", "os.open", "subprocess.Popen", "os.system", "os.exec"):
            self.paths.append(str(arguments[0]))


def _forked(path: str, file: Any, size: int) -> bytes:
    """Do what `hdf5.as_container` does, with a fork of this process in place of a fresh one, which takes longer."""
    from_child, to_parent = os.pipe()
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(2)  # What the C library prints as it aborts.
            data = os.read(file.fileno(), size)
            hdf5_worker.limit(size)
            result = memoryview(hdf5_worker.convert(data))
            while result:
                result = result[os.write(to_parent, result):]
            status = 0
        finally:
            os._exit(status)
    os.close(to_parent)
    with open(from_child, "rb") as pipe:
        data = pipe.read()
    _, status, used = os.wait4(child, 0)
    _in_children.append(used.ru_maxrss)
    if status:
        raise store.not_a_checkpoint(path, "an HDF5 file of another kind, or a damaged one")
    return data


def _outcome(path: str, whole: Any, hdf5: bool) -> str:
    """Read a file and return "refused", or "as it was" for HDF5 where bytes were changed that mean nothing."""
    try:
        values, state = store.read_file(path, lambda name: True)
    except CheckpointError as error:
        return "refused" if path in str(error) else f"not named: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "as it was" if hdf5 and repr((values, state)) == whole else "loaded"


def main() -> None:
    """Read mutants FIRST, FIRST + 1, ... of FILE."""
    file, first, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    data = file.read_bytes()
    hdf5 = data.startswith(b"\x89HDF")
    store.as_container = _forked
    whole = repr(store.read_file(str(file), lambda name: True))
    path = f"{file}.mutant.ckpt"
    opened = Opened()
    sys.addaudithook(opened)
    with open("/proc/self/statm", encoding="utf-8") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    h5py._errors.silence_errors()
    for number in range(first, first + count):
        with open(path, "wb") as written:
            written.write(changed_bytes(random.Random(number), data) if hdf5 else mutant(data, number))
        print(json.dumps({"number": number}), flush=True)
        # The highest mark of resident memory is set back to what there is now.
        with open("/proc/self/clear_refs", "w", encoding="utf-8") as marks:
            marks.write("5")
        before, start = _resident("VmHWM"), time.perf_counter()
        opened.paths.clear()
        _in_children.clear()
        opened.listening = True
        outcome = _outcome(path, whole, hdf5)
        opened.listening = False
        seconds = time.perf_counter() - start
        # Of a child all of its memory is counted, the libraries that it has from this process too.
        most = max([_resident("VmHWM") - before, *_in_children])
        report = {
            "number": number, "outcome": outcome, "seconds": seconds, "mib": most / 1024,
            "opened": [name for name in opened.paths if name != path and not name.isdigit()],
        }
        print(json.dumps(report), flush=True)


def _resident(name: str) -> int:
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))


if __name__ == "__main__":
    main()
