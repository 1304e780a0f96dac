"""Writes ops_nn_reference.npz: outputs and gradients of the cases in ops_nn_cases.py, by MindSpore 2.10 on the CPU.

Keys read 'case/y0', 'case/y1', ... for the outputs and 'case/g' for the gradient of the sum of the float outputs by the
first input. MindSpore is needed to run this, not to run the tests. Usage: python make_ops_nn_reference.py [output.npz]
"""

import pathlib
import sys
import types

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from ops_nn_cases import cases


class ResizeBilinear:
    """MindSpore 1's name and arguments over today's primitive."""

    def __init__(self, size, align_corners=False, half_pixel_centers=False):
        self.size, self.op = size, ops.ResizeBilinearV2(align_corners, half_pixel_centers)

    def __call__(self, x):
        return self.op(x, self.size)


class Ops(types.SimpleNamespace):
    """MindSpore's operations, and the old names that it dropped."""

    ResizeBilinear = ResizeBilinear

    def __getattr__(self, name):
        return getattr(ops, name)


def main():
    store = {}
    for name, (function, inputs) in cases().items():
        tensors = [Tensor(value) for value in inputs]
        outputs = function(Ops(), *tensors)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        for index, output in enumerate(outputs):
            store[f"{name}/y{index}"] = output.asnumpy()

        def loss(x, function=function, rest=tensors[1:]):
            result = function(Ops(), x, *rest)
            result = result if isinstance(result, (tuple, list)) else (result,)
            return sum(value.sum() for value in result if value.dtype == ms.float32)

        try:
            gradient = ms.grad(loss)(tensors[0]).asnumpy()
        except Exception as error:  # The reference has no gradient of some operations on the CPU.
            print(f"{name}: no gradient ({str(error).splitlines()[0][:80]})")
        else:
            if gradient.dtype == np.float32:
                store[f"{name}/g"] = gradient
    path = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("ops_nn_reference.npz")
    np.savez_compressed(path, **store)
    print(len(store), "arrays")


main()
