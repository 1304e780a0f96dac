"""Values of methods that sample, search, reinterpret bytes or read by index."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain
import mixtrain.numpy as mnp
from mixtrain import Tensor, nn, ops


def test_searchsorted_compares_in_the_dtype_that_both_promote_to() -> None:
    whole = Tensor([1, 2, 3])
    assert int(whole.searchsorted(1.5)) == 1
    assert whole.searchsorted(Tensor([0.5, 2.0, 2.5]), side="right").asnumpy().tolist() == [0, 2, 2]
    assert ops.searchsorted(whole, Tensor([1.5])).asnumpy().tolist() == [1]
    assert int(mnp.searchsorted([1, 2, 3], 1.5)) == 1


def test_fill_diagonal_fills_where_all_indices_are_equal() -> None:
    cube = Tensor(np.zeros((3, 3, 3), np.float32)).fill_diagonal(5.0)
    assert np.argwhere(cube.asnumpy()).tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    for wrap in (False, True):
        expected = np.zeros((7, 3), np.float32)
        np.fill_diagonal(expected, 5, wrap)
        tall = Tensor(np.zeros((7, 3), np.float32)).fill_diagonal(5.0, wrap)
        np.testing.assert_array_equal(tall.asnumpy(), expected)
    with pytest.raises(ValueError, match=r"fill_diagonal: there must be two axes, or several of one size"):
        Tensor(np.zeros((2, 3, 3), np.float32)).fill_diagonal(5.0)


def test_multinomial_without_replacement_draws_each_class_once() -> None:
    for _ in range(5):
        samples = Tensor(np.full(4, 0.25, np.float32)).multinomial(4, replacement=False)
        assert sorted(samples.asnumpy().tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["uniform", "bernoulli"])
def test_a_generator_decides_the_samples(method: str) -> None:
    def sample(seed: int) -> list[float]:
        generator = mixtrain.Generator()
        generator.manual_seed(seed)
        return getattr(Tensor(np.full(32, 0.5, np.float32)), method)(generator=generator).asnumpy().tolist()

    assert sample(3) == sample(3) != sample(4)


def test_bytes_of_bfloat16_are_its_own() -> None:
    x = Tensor([1.0, 2.0], mixtrain.bfloat16)
    assert len(x.get_bytes()) == 4
    back = Tensor.convert_bytes_to_tensor(x.get_bytes(), (2,), mixtrain.bfloat16)
    assert back.dtype == mixtrain.bfloat16 and back.asnumpy().tolist() == [1.0, 2.0]
    assert x.view(mixtrain.int16).asnumpy().tolist() == [0x3F80, 0x4000]


def test_jit_distinguishes_zero_from_minus_zero() -> None:
    scaled = mixtrain.jit(lambda x, factor: x * factor)
    signs = [bool(np.signbit(scaled(Tensor([1.0]), factor).asnumpy()[0])) for factor in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


def test_take_raises_for_an_index_out_of_range() -> None:
    assert int(Tensor([1, 2, 3]).take(Tensor([-1]), mode="raise")[0]) == 3
    with pytest.raises(IndexError, match=r"Tensor.take: expected indices from -3 to 2; got 5"):
        Tensor([1, 2, 3]).take(Tensor([5]), mode="raise")


def test_numpy_clip_and_repeat_take_what_numpy_takes() -> None:
    assert mnp.clip(mnp.array([1, 5]), 2, 3.5).asnumpy().tolist() == [2.0, 3.5]
    assert mnp.clip(mnp.array([1, 5]), None, 3).asnumpy().tolist() == [1, 3]
    assert mnp.repeat(mnp.array([1, 2]), repeats=[1, 2]).asnumpy().tolist() == [1, 2, 2]


def test_a_tensor_knows_its_device() -> None:
    x = Tensor([1.0])
    assert x.device == "CPU" if mixtrain.get_context("device_target") == "CPU" else x.device.startswith("GPU:")
    assert mixtrain.jit(lambda value: value * (value.device == mixtrain.get_context("device_target")))(x) == 1


def test_a_seed_that_is_too_large_changes_nothing() -> None:
    mixtrain.set_seed(3)
    with pytest.raises(ValueError, match=r"set_seed: seed must be below 2\*\*32"):
        mixtrain.set_seed(2**32)
    assert mixtrain.get_seed() == 3


def test_combinations_of_no_element_are_refused() -> None:
    with pytest.raises(ValueError, match="ops.combinations: r must be at least 1"):
        ops.combinations(Tensor([1, 2]), 0)


def test_index_add_adds_at_each_index_and_refuses_one_outside() -> None:
    x, updates = mixtrain.Tensor(np.zeros((3, 2), np.float32)), mixtrain.Tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    assert ops.index_add(x.copy(), mixtrain.Tensor([2, 0]), updates, 0).asnumpy().tolist() == expected
    doubled = x.index_add(0, mixtrain.Tensor([2, 0]), updates, alpha=2)
    np.testing.assert_array_equal(doubled.asnumpy(), 2 * np.array(expected))
    with pytest.raises(ValueError, match="ops.index_add: each index must be from 0 to 2; got -1"):
        ops.index_add(x, mixtrain.Tensor([-1, 0]), updates, 0)
    with pytest.raises(ValueError, match="Tensor.index_add: each index must be from 0 to 1; got 2"):
        x.index_add(1, mixtrain.Tensor([0, 2]), mixtrain.Tensor(np.ones((3, 2), np.float32)))


def test_a_tensor_of_a_shape_alone_is_zeros_and_with_unknown_sizes_a_description() -> None:
    assert mixtrain.Tensor(shape=(2,), dtype=mixtrain.int32).asnumpy().tolist() == [0, 0]
    for sizes in ([3, None], (3, -1)):
        described = mixtrain.Tensor(shape=sizes, dtype=mixtrain.float32)
        assert repr(described) == "Tensor(shape=[3, -1], dtype=Float32, value= )"
        assert (described.shape, described.ndim, described.dtype) == ((3, None), 2, "float32")
    net = nn.ReLU()
    net.set_inputs(mixtrain.Tensor(shape=[None, 2], dtype=mixtrain.float32))
    assert net.get_inputs()[0].shape == (None, 2)
    assert net(mixtrain.Tensor([[-1.0, 2.0]])).asnumpy().tolist() == [[0.0, 2.0]]
