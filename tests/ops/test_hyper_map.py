"""`HyperMap` and `Map`: what they return, and what they refuse; the scaling of gradients that scripts write."""

from __future__ import annotations

import pytest

import mixtrain
from mixtrain import backend, ops

X, Y = mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([3.0, 4.0])


def test_gradients_are_scaled_as_scripts_do_it() -> None:
    grad_scale = ops.MultitypeFuncGraph("grad_scale")

    @grad_scale.register("Tensor", "Tensor")
    def gradient_scale(scale: object, grad: object) -> object:
        return grad * ops.cast(scale, ops.dtype(grad))  # type: ignore[operator]

    half = ops.cast(Y, mixtrain.float16)
    scaled = ops.HyperMap()(ops.partial(grad_scale, mixtrain.Tensor(0.5)), [X, (half,)])
    assert isinstance(scaled, tuple) and isinstance(scaled[1], tuple)
    assert backend.to_numpy(scaled[0]).tolist() == [0.5, 1.0]
    assert (scaled[1][0].dtype.name, backend.to_numpy(scaled[1][0]).tolist()) == ("float16", [1.5, 2.0])


def test_the_function_comes_with_the_map_or_with_the_call() -> None:
    assert ops.HyperMap(lambda a, b: a + b)((1, [2, 3]), (10, (20, 30))) == (11, (22, 33))
    assert ops.HyperMap()(lambda a, b: a + b, (1, [2, 3]), (10, (20, 30))) == (11, (22, 33))
    assert ops.Map(sum)([(1, 2), (3, 4)]) == (3, 7)
    assert ops.Map()(pow, [2, 3], [3, 2]) == (8, 9)


def test_no_sequence_is_the_function_of_it_and_none_is_a_value() -> None:
    assert ops.HyperMap()(lambda a: a is None, None) is True
    assert ops.HyperMap()(lambda a: a is None, (None, 1)) == (True, False)
    assert ops.HyperMap(len)(()) == ()


def test_sequences_of_other_lengths_or_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"HyperMap: sequences must have one length; got \[2, 1\]"):
        ops.HyperMap(pow)((1, 2), (1,))
    with pytest.raises(TypeError, match="HyperMap: a sequence was needed.*Write ops.partial"):
        ops.HyperMap(pow)((1, 2), 3)
    with pytest.raises(TypeError, match="Map: a sequence"):
        ops.Map(len)(3)
    with pytest.raises(TypeError, match="HyperMap: ops must be a function"):
        ops.HyperMap(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the first argument must be a function"):
        ops.HyperMap()((1, 2))
    with pytest.raises(ValueError, match="there must be sequences"):
        ops.HyperMap()(len)


def test_lists_stay_lists_in_what_jit_compiles_as_in_mindspores_graphs() -> None:
    apply = mixtrain.jit(lambda x, y: ops.HyperMap()(ops.add, x, y))
    ones = [X, (X, [Y])]
    assert type(apply(ones, ones)) is list and type(apply(ones, ones)[1]) is tuple
    assert type(mixtrain.jit(lambda x: ops.Map(ops.square)(x))(ones[:1])) is list
    assert type(ops.HyperMap()(ops.add, ones, ones)) is tuple
