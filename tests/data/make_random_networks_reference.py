"""Writes random_networks_reference.npz: what MindSpore 2.10 computes of tests/conformance/random_networks.py.

Keys read 'number/what'. Usage: python make_random_networks_reference.py [output.npz]
"""

import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "conformance"))

import random_networks  # noqa: E402

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
store = {}
for number in range(random_networks.COUNT):
    try:
        found = random_networks.run(number, ms, nn)
    except Exception as error:
        print(number, type(error).__name__, str(error).splitlines()[:1])
        continue
    store |= {f"{number}/{what}": values for what, values in found.items()}
# One array of numbers, and where each begins: compressed, many small arrays are mostly their headers.
names, arrays = list(store), [array.reshape(-1) for array in store.values()]
np.savez_compressed(
    sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("random_networks_reference.npz"),
    names=np.array(names), starts=np.cumsum([0, *map(len, arrays)]), values=np.concatenate(arrays),
)
print(len(store) // 4, "networks")
