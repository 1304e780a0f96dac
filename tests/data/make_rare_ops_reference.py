"""Writes rare_ops_reference.npz: values and gradients of tests/ops/rare_cases.py, by MindSpore 2.10 on the CPU.

Keys read 'expression#part' for values and 'expression#gradient'. What MindSpore cannot compute is printed and left out.
Usage: python make_rare_ops_reference.py [output.npz]
"""

import pathlib
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import cases  # noqa: E402
import rare_cases  # noqa: E402

names = {"ms": ms, "np": np, "ops": ops, "T": Tensor, "mixed": rare_cases.mixed, "product": rare_cases.product}
store = {}


def fresh() -> dict[str, Tensor]:
    """Return the inputs, made anew: some of MindSpore's kernels write into theirs."""
    return {name: Tensor(array) for name, array in rare_cases.arrays().items()}


for expression in rare_cases.CASES:
    try:
        for part, array in enumerate(cases.parts(eval(expression, {**names, **fresh()}))):
            store[f"{expression}#{part}"] = array
    except Exception as error:
        print(f"{expression}: {type(error).__name__} {str(error).splitlines()[0][:100]}")
for name, expressions in rare_cases.GRADIENTS.items():
    for expression in expressions:
        try:
            store[f"{expression}#gradient"] = ms.grad(
                lambda x, e=expression, n=name: eval(e, {**names, **fresh(), n: x}).sum()
            )(fresh()[name]).asnumpy()
        except Exception as error:
            print(f"gradient of {expression}: {type(error).__name__} {str(error).splitlines()[0][:100]}")
target = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("rare_ops_reference.npz")
np.savez_compressed(target, **store)
print(len(store), "arrays")
