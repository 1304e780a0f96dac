"""Writes cell_zoo_reference.npz: what MindSpore 2.10 computes of tests/conformance/cell_zoo.py, its import swapped.

Usage: python make_cell_zoo_reference.py [output.npz]
"""

import pathlib
import sys

import mindspore as ms
import numpy as np

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
source = pathlib.Path(__file__).parents[1] / "conformance" / "cell_zoo.py"
zoo = {"__name__": "cell_zoo"}
exec(compile(source.read_text().replace("mixtrain", "mindspore"), str(source), "exec"), zoo)
store = {}
for name in zoo["ZOO"]:
    for what, values in zoo["trained"](name).items():
        store[f"{name}/{what}"] = "\n".join(values) if what == "names" else values.astype(np.float32)
    print(name, store[f"{name}/losses"])
np.savez_compressed(
    sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("cell_zoo_reference.npz"), **store
)
