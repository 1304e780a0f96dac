"""Record again what MindSpore's primitives of its modules compute, with MindSpore 2.10, of the calls in the JSON.

    python tests/data/make_module_primitives_reference.py
"""

from __future__ import annotations

import json
import pathlib

import mindspore
from recorded_primitives import outputs


def main() -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    path = pathlib.Path(__file__).with_name("module_primitives_reference.json")
    recorded = json.loads(path.read_text())
    for call in recorded:
        call["expected"] = [(value.tolist(), str(value.dtype)) for value in outputs("mindspore", call)]
    path.write_text("[\n" + ",\n".join(map(json.dumps, recorded)) + "\n]\n")


if __name__ == "__main__":
    main()
