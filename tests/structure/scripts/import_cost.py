"""Print what `import mixtrain` adds to a process that has imported Keras: packages, and collections of garbage."""

from __future__ import annotations

import gc
import json
import sys

import keras  # noqa: F401  (what is here before)


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def main() -> None:
    """Import mixtrain and print what that added, as JSON."""
    gc.collect()
    modules, collections = set(sys.modules), _collections()
    import mixtrain  # noqa: F401

    collections = _collections() - collections
    packages = {name.partition(".")[0] for name in set(sys.modules) - modules} - set(sys.stdlib_module_names)
    print(json.dumps({"packages": sorted(packages), "collections": collections, "collects after": gc.isenabled()}))


if __name__ == "__main__":
    main()
