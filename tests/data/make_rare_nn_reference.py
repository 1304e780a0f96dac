"""Writes rare_nn_reference.npz: the outputs of the Cells of tests/nn/rare_cases.py, by MindSpore 2.10 on the CPU.

Keys read 'expression(inputs)#part'. Usage: python make_rare_nn_reference.py [output.npz]
"""

import pathlib
import sys

import numpy as np
from mindspore import Tensor, nn  # noqa: F401  The expressions speak of nn.

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "nn"))

import rare_cases  # noqa: E402

tensors, store = {name: Tensor(array) for name, array in rare_cases.arrays().items()}, {}
for expression, inputs in rare_cases.CASES:
    try:
        found = rare_cases.settle(eval(expression), Tensor)(*(tensors[name] for name in inputs))
    except Exception as error:
        print(f"{expression}: {type(error).__name__} {str(error).splitlines()[:1]}")
        continue
    for part, output in enumerate(found if isinstance(found, tuple) else (found,)):
        store[f"{expression}{inputs}#{part}"] = output.asnumpy()
np.savez_compressed(
    sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("rare_nn_reference.npz"), **store
)
print(len(store), "arrays")
