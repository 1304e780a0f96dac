"""Names that MindSpore's `ops` has without listing them compute what scripts expect of them."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, ops
from mixtrain.ops import composite as C, functional as F, operations as P

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_an_operation_with_a_function_and_a_primitive_of_one_name_has_both() -> None:
    np.testing.assert_array_equal(P.identity()(Tensor(X)).asnumpy(), X)
    np.testing.assert_array_equal(ops.identity(Tensor(X)).asnumpy(), X)


def test_old_names_are_the_primitives_of_today() -> None:
    np.testing.assert_array_equal(P.GatherV2()(Tensor(X), Tensor([1]), 0).asnumpy(), X[1:])
    np.testing.assert_array_equal(P.Pack(axis=1)((Tensor(X), Tensor(X))).asnumpy(), np.stack([X, X], 1))
    np.testing.assert_allclose(F.tensor_pow(Tensor(X), 2.0).asnumpy(), X**2)
    np.testing.assert_allclose(F.tensor_mul(Tensor(X), Tensor(X)).asnumpy(), X * X)
    np.testing.assert_allclose(ops.Einsum("ij,kj->ik")((Tensor(X), Tensor(X))).asnumpy(), X @ X.T)
    np.testing.assert_allclose(ops.Trace()(Tensor(X[:, :2])).asnumpy(), 4)


def test_functions_of_tuples_and_dicts_are_pythons() -> None:
    assert (F.tuple_len((1, 2)), F.tuple_getitem((1, 2), 1), F.make_tuple(1, 2)) == (2, 2, (1, 2))
    assert (F.tuple_setitem((1, 2), 0, 3), F.tuple_reversed((1, 2)), F.make_list(1)) == ((3, 2), (2, 1), [1])
    assert F.in_dict("a", {"a": 1}) and F.not_in_dict("b", {"a": 1}) and F.shape_mul((2, 3)) == 6
    np.testing.assert_array_equal(F.tuple_to_array(range(3)).asnumpy(), [0, 1, 2])


def test_switch_chooses_by_a_bool_compiled_or_not() -> None:
    for call in (F.switch, mixtrain.jit(F.switch)):
        assert [int(call(Tensor(flag), Tensor(1), Tensor(2))) for flag in (True, False)] == [1, 2]


def test_flags_for_mindspores_compiler_change_nothing() -> None:
    @C.add_flags(has_effect=True)
    def double(x: float) -> float:
        return 2 * x

    assert double(3) == 6 and C.core(double) is double


def test_a_mask_of_dropout_keeps_values_divided_by_the_probability() -> None:
    mixtrain.set_seed(3)
    mask = P.DropoutGenMask(1, 2)((20, 50), Tensor(0.5))
    output = P.DropoutDoMask()(Tensor(np.ones((20, 50), np.float32)), mask, Tensor(0.5)).asnumpy()
    assert set(np.unique(output)) == {0.0, 2.0}
    assert abs(output.mean() - 1) < 0.15
    np.testing.assert_array_equal(output == 2, mask.asnumpy())


def test_momentum_with_weight_decay_and_scale_updates_both_parameters() -> None:
    weight, moment = Parameter(Tensor([1.0])), Parameter(Tensor([0.5]))
    P.FusedWeightScaleApplyMomentum()(
        Tensor(0.1), Tensor(0.25), weight, moment, Tensor(0.1), Tensor([8.0]), Tensor(0.9)
    )
    # 0.5 * 0.9 + 8 * 0.25 + 1 * 0.1, and 1 - 0.1 times that.
    np.testing.assert_allclose(moment.asnumpy(), [2.55], rtol=1e-6)
    np.testing.assert_allclose(weight.asnumpy(), [0.745], rtol=1e-6)


def test_a_permutation_is_padded_to_its_length() -> None:
    order = ops.Randperm(5, pad=-1)(Tensor([3])).asnumpy()
    assert sorted(order[:3]) == [0, 1, 2] and order[3:].tolist() == [-1, -1] and order.dtype == np.int32
    with pytest.raises(ValueError, match="Randperm: n must be from 0 to max_length, 5; got 6"):
        ops.Randperm(5)(Tensor([6]))


def test_svd_returns_values_and_vectors() -> None:
    values, left, right = ops.Svd()(Tensor(X))
    np.testing.assert_allclose((left * values).asnumpy() @ right.asnumpy().T, X, atol=1e-5)
    assert ops.Svd(compute_uv=False)(Tensor(X))[0].shape == (2,)


@pytest.mark.parametrize("name", ["NPUAllocFloatStatus", "NPUGetFloatStatus", "DynamicRNN", "FusedCastAdamWeightDecay"])
def test_operators_of_other_devices_can_be_imported_and_say_what_to_write(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}: .*Write"):
        getattr(P, name)()


def test_the_value_of_an_index_chooses_a_layer() -> None:
    x, layers = Tensor([-1.0, 2.0]), (ops.relu, ops.tanh)
    for index, layer in ((0, ops.relu), (1, ops.tanh), (-1, ops.tanh)):
        assert F.switch_layer(Tensor(index), layers)(x).asnumpy().tolist() == layer(x).asnumpy().tolist()
    with pytest.raises(IndexError, match="ops.switch_layer: expected an index from -2 to 1"):
        F.switch_layer(2, layers)
    choose = mixtrain.jit(lambda index, x: F.switch_layer(index, layers)(x))
    with pytest.warns(UserWarning, match="so it runs uncompiled"):
        assert choose(Tensor(-1), x).asnumpy().tolist() == ops.tanh(x).asnumpy().tolist()
