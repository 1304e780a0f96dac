"""Writes nn_reference.npz: parameters, inputs, outputs and gradients of the cells in tests/nn/cases.py, by MindSpore.

Keys read 'case/name': x0, x1, ... (inputs, those in a tuple as x1_0, x1_1), p0, p1, ... (parameters in their order),
y0, ... (outputs, flattened), gx (gradient by the first input), gp0, ... (by the parameters) of the sum of the squares
of all outputs; q0, ... the parameters after a call in training mode. The arrays lie one after the other in `values`;
`index` says 'key shape' of each. MindSpore 2.10 is needed to run this, not to run the tests.
Usage: python make_nn_reference.py [output.npz]
"""

import pathlib
import sys
import zlib

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "nn"))
from cases import CASES  # noqa: E402

store = {}


def draw(rng, spec, below):
    if spec is None:
        return None
    if isinstance(spec, list):
        return tuple(draw(rng, item, below) for item in spec)
    kind, *shape = spec
    if kind in ("ids", "lengths"):
        return rng.integers(1 if kind == "lengths" else 0, below, shape).astype(np.int32)
    if kind == "sign":
        return rng.choice([-1, 1], shape).astype(np.float32)
    values = rng.standard_normal(shape).astype(np.float32)
    if kind == "normal":
        return values
    if kind == "one":
        return (values == values.max(1, keepdims=True)).astype(np.float32)
    share = np.exp(values) / np.exp(values).sum(1, keepdims=True)
    return (np.log(share) if kind == "logs" else share).astype(np.float32)


def tensors(value):
    if isinstance(value, tuple):
        return tuple(map(tensors, value))
    return None if value is None else Tensor(value)


def flat(value):
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (tuple, list)) else [value]


def run(name, case):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = {}
    cell = getattr(nn, case.name)(*case.args, **case.kwargs)
    for number, parameter in enumerate(cell.get_parameters()):
        value = rng.standard_normal(parameter.shape).astype(np.float32)
        if "variance" in parameter.name:
            value = np.abs(value) + 0.5
        parameter.set_data(Tensor(value))
        arrays[f"p{number}"] = value
    values = [draw(rng, spec, case.below) for spec in case.inputs]
    for number, value in enumerate(values):
        if isinstance(value, tuple):
            arrays |= {f"x{number}_{place}": one for place, one in enumerate(value)}
        elif value is not None:
            arrays[f"x{number}"] = value
    inputs = [tensors(value) for value in values]
    cell.set_train(case.training)
    arrays |= {f"y{number}": one.asnumpy() for number, one in enumerate(flat(cell(*inputs)))}
    if case.training:
        arrays |= {f"q{number}": p.asnumpy().copy() for number, p in enumerate(cell.get_parameters())}
    if case.gradient:
        weights = ms.ParameterTuple(cell.trainable_params())
        floats = bool(values) and values[0].dtype == np.float32

        def forward(*args):
            return sum(ops.square(one).sum() for one in flat(cell(*args)))

        by = ms.grad(forward, 0 if floats else None, weights if len(weights) else None)(*inputs)
        by_x, by_p = (by if floats and len(weights) else (by, ()) if floats else (None, by))
        if floats:
            arrays["gx"] = by_x.asnumpy()
        arrays |= {f"gp{number}": one.asnumpy() for number, one in enumerate(flat(tuple(by_p)))}
    for key, value in arrays.items():
        store[f"{name}/{key}"] = np.asarray(value)


def resize(rng):
    """ResizeBilinear left nn with MindSpore 2.0; the operation of its place stayed."""
    x = rng.standard_normal((1, 2, 3, 4)).astype(np.float32)
    for name, options in {"edges": (False, False), "corners": (True, False), "centers": (False, True)}.items():
        for size in ((5, 7), (2, 3)):
            y = ops.ResizeBilinearV2(*options)(Tensor(x), size)
            store[f"resize_{name}_{size[0]}/x0"], store[f"resize_{name}_{size[0]}/y0"] = x, y.asnumpy()


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    for name, case in CASES.items():
        try:
            run(name, case)
        except Exception as error:
            print("FAILED", name, type(error).__name__, str(error)[:200].replace("\n", " "))
    resize(np.random.default_rng(5))
    beside = pathlib.Path(__file__).with_name("nn_reference.npz")
    target = sys.argv[1] if len(sys.argv) > 1 else beside
    index = [f"{key} {','.join(map(str, value.shape))}" for key, value in store.items()]
    values = np.concatenate([value.astype(np.float32).ravel() for value in store.values()])
    np.savez_compressed(target, values=values, index=np.array("\n".join(index)))
    print(len(store), "arrays in", target, pathlib.Path(target).stat().st_size)


if __name__ == "__main__":
    main()
