"""Writes ops_reference.npz: the values of the expressions in tests/ops/cases.py, by MindSpore 2.10 on the CPU.

Keys read 'number/part': the number of the expression and the place of the array in its result; 'expressions' holds the
expressions themselves. What MindSpore cannot compute is printed and left out.
Usage: python make_ops_reference.py [output.npz]
"""

import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import cases  # noqa: E402

names = {"ms": ms, "ops": ops, "T": Tensor, **cases.tensors(Tensor)}
store, done = {}, []
for expression in cases.CASES:
    try:
        found = cases.parts(eval(expression, dict(names)))
    except Exception as error:
        print(f"{expression}: {type(error).__name__} {str(error).splitlines()[0][:100]}")
        continue
    for part, array in enumerate(found):
        store[f"{len(done)}/{part}"] = array
    done.append(expression)
store["expressions"] = np.array(done)
target = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("ops_reference.npz")
np.savez_compressed(target, **store)
print(len(done), "of", len(cases.CASES))
