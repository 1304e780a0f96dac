"""`GradOperation`, `grad` and `value_and_grad`: the shapes of results that MindSpore 2.10 gives, and its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, backend, nn, ops

X, Y = mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([3.0, 4.0])
W, U = mixtrain.Parameter([2.0, 5.0], name="w"), mixtrain.Parameter([1.0, 1.0], name="u")
DX, DY, DW, DU = [6.0, 20.0], [2.0, 10.0], [3.0, 8.0], [0.0, 0.0]


class Net(nn.Cell):
    """The product of two inputs and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.z = mixtrain.Parameter([2.0, 5.0], name="w"), mixtrain.Parameter([1.0], name="z")

    def construct(self, a: Any, b: Any) -> Any:
        return a * b * self.w


def product(a: Any, b: Any) -> Any:
    return a * b * W


def several(a: Any, b: Any) -> Any:
    return a * b * W, a + b, b


def plain(values: Any) -> Any:
    """Return a structure with lists in place of tensors."""
    return keras.tree.map_structure(lambda v: backend.to_numpy(v).tolist() if backend.is_tensor(v) else v, values)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0,), DX), (((0,),), DX), (((0, 1),), (DX, DY)), ((None, W), DW), ((None, [W]), (DW,)),
        ((None, mixtrain.ParameterTuple([W, U])), (DW, DU)), ((0, W), (DX, DW)), (((0, 1), [W]), ((DX, DY), (DW,))),
        ((0, None, False, True), (0, DX)), (((0, 1), None, False, True), ((0, DX), (1, DY))),
        (((0,), [W], False, True), ((0, DX), (("w", DW),))), ((None, W, False, True), ("w", DW)),
        ((0, [W, U], False, True), ((0, DX), (("w", DW), ("u", DU)))),
    ],
)
def test_gradients_come_in_the_shape_that_the_arguments_ask_for(arguments: Any, expected: Any) -> None:
    assert plain(mixtrain.grad(product, *arguments)(X, Y)) == expected
    assert plain(mixtrain.value_and_grad(product, *arguments)(X, Y)) == ([6.0, 40.0], expected)


@pytest.mark.parametrize("fn", [product, Net()])
def test_inputs_by_keyword_follow_those_by_position_in_the_order_of_the_call(fn: Any) -> None:
    assert plain(mixtrain.grad(fn, (0, 1))(X, b=Y)) == (DX, DY)
    assert plain(mixtrain.grad(fn, (0, 1), return_ids=True)(b=Y, a=X)) == ((0, DY), (1, DX))
    assert plain(mixtrain.value_and_grad(fn, 0)(b=Y, a=X)) == ([6.0, 40.0], DY)
    assert plain(mixtrain.grad(fn, 0)(X, b=2.0)) == [4.0, 10.0]
    both = ops.GradOperation(get_all=True)
    assert plain(both(fn)(X, b=Y)) == (DX, DY)
    sens = mixtrain.Tensor([2.0, 1.0])
    assert plain(ops.GradOperation(get_all=True, sens_param=True)(fn)(X, b=Y, sens=sens)) == ([12.0, 20.0], [4.0, 10.0])
    assert plain(nn.ForwardValueAndGrad(fn, get_all=True)(X, b=Y)) == ([6.0, 40.0], (DX, DY))


def test_without_a_tensor_among_the_inputs_the_gradient_is_empty() -> None:
    assert ops.GradOperation()(lambda: X)() == ()
    assert ops.GradOperation(get_all=True)(lambda a, b: a * b)(2.0, 3.0) == ()
    assert plain(mixtrain.value_and_grad(lambda: X)()) == ([1.0, 2.0], ())
    assert mixtrain.grad(product, 1)(X, 2.0) == ()


def test_further_outputs_are_differentiated_or_handed_through() -> None:
    outputs = ([6.0, 40.0], [4.0, 6.0], [3.0, 4.0])
    assert plain(mixtrain.grad(several, has_aux=True)(X, Y)) == (DX, outputs[1:])
    assert plain(mixtrain.value_and_grad(several, has_aux=True)(X, Y)) == (outputs, DX)
    assert plain(mixtrain.grad(several, None, [W], True)(X, Y)) == ((DW,), outputs[1:])
    assert plain(mixtrain.value_and_grad(several)(X, Y)) == (outputs, [7.0, 21.0])


def test_inputs_may_be_numpy_by_keyword_numbers_integers_and_tuples() -> None:
    assert plain(mixtrain.grad(product, (0, 1))(np.float32([1, 2]), backend.to_numpy(Y))) == (DX, DY)
    assert plain(mixtrain.grad(product)(X, b=Y)) == DX
    assert plain(mixtrain.grad(lambda a, b: a * b, (0, 1))(X, 2.0)) == [2.0, 2.0]
    whole = mixtrain.Tensor(np.array([1, 2], np.int32))
    assert plain(mixtrain.grad(lambda a, b: a * ops.cast(b, a.dtype), (0, 1))(X, whole)) == ([1.0, 2.0], [0, 0])
    assert plain(mixtrain.grad(lambda pair: pair[0] * pair[1])((X, Y))) == ([3.0, 4.0], [1.0, 2.0])


def test_the_start_of_the_gradient_can_be_given() -> None:
    sens = mixtrain.Tensor([10.0, 100.0])
    assert plain(mixtrain.grad(product, sens_param=True)(X, Y, sens)) == [60.0, 2000.0]
    assert plain(ops.GradOperation(sens_param=True)(product)(X, Y, sens=sens)) == [60.0, 2000.0]
    both = ops.GradOperation(True, False, True)(lambda a, b: (a * b, a))(X, Y, (mixtrain.Tensor([1.0, 1.0]), sens))
    assert plain(both) == ([13.0, 104.0], [1.0, 2.0])
    for one in (2.0, [2.0], [[2.0]]):  # MindSpore takes a scalar's by its one element.
        total = ops.GradOperation(sens_param=True)(lambda a: a.sum())(X, mixtrain.Tensor(np.float32(one)))
        assert total.asnumpy().tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"grad: sens must have the shape of the output \(2,\); got \(3,\)"):
        mixtrain.grad(product, sens_param=True)(X, Y, mixtrain.Tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("get_all", "get_by_list", "expected"),
    [(False, False, DX), (True, False, (DX, DY)), (False, True, (DW, [0.0])), (True, True, ((DX, DY), (DW, [0.0])))],
)
def test_grad_operation_gives_what_its_settings_say(get_all: bool, get_by_list: bool, expected: Any) -> None:
    net, sens = Net(), mixtrain.Tensor([1.0, 1.0])
    assert plain(ops.GradOperation(get_all, get_by_list)(net, net.trainable_params())(X, Y)) == expected
    assert plain(ops.GradOperation(get_all, get_by_list)(net)(X, Y)) == expected
    assert plain(ops.GradOperation(get_all, get_by_list, True)(net, net.trainable_params())(X, Y, sens)) == expected


def test_one_parameter_gives_one_gradient_and_keras_variables_are_weights_too() -> None:
    net, dense = Net(), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    assert plain(ops.GradOperation(get_by_list=True)(net, net.w)(X, Y)) == DW
    assert plain(ops.GradOperation()(net, net.w)(X, Y)) == DX  # Without get_by_list, weights are unused.
    dense.build((None, 2))
    assert plain(mixtrain.grad(lambda x: dense(x[None]), None, dense.trainable_weights)(X)) == ([[1.0], [2.0]],)


def test_half_meets_float32_in_a_plain_function_and_each_gradient_has_the_format_of_its_source() -> None:
    half = ops.cast(X, mixtrain.float16)
    value, (dx, dw) = mixtrain.value_and_grad(lambda a: a * W, 0, W)(half)
    assert (value.dtype.name, dx.dtype.name, dw.dtype.name) == ("float32", "float16", "float32")


def test_a_half_network_is_differentiated_from_a_float32_start() -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False).to_float(mixtrain.float16)
    gradient = ops.GradOperation(get_by_list=True, sens_param=True)(net, [net.weight])
    (result,) = gradient(mixtrain.Tensor([[0.5]]), mixtrain.Tensor([[1024.0]]))
    assert (result.dtype.name, float(result[0, 0])) == ("float32", 512.0)


def test_gradients_are_found_inside_a_cell_that_casts_its_parameters() -> None:
    class Step(nn.Cell):
        def __init__(self, net: nn.Cell) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.grad = net, ops.GradOperation(get_by_list=True)

        def construct(self, x: Any) -> Any:
            return self.grad(self.net, self.net.trainable_params())(x)

    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    (result,) = Step(net).to_float(mixtrain.float16)(mixtrain.Tensor([[3.0]]))
    assert float(result[0, 0]) == 3.0


def test_gradients_of_gradients() -> None:
    assert plain(mixtrain.grad(mixtrain.grad(lambda a: a * a * a))(X)) == [6.0, 12.0]


def test_a_sparse_gradient_comes_dense() -> None:
    table = mixtrain.Parameter(np.ones((3, 2), np.float32), name="table")
    rows = mixtrain.Tensor(np.array([1, 1]))
    (result,) = mixtrain.grad(lambda i: keras.ops.sum(keras.ops.take(table, i, axis=0)), None, [table])(rows)
    assert plain(result) == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]


def test_no_gradient_passes_stop_gradient() -> None:
    assert plain(mixtrain.grad(lambda a: a * ops.stop_gradient(a))(X)) == [1.0, 2.0]


def test_what_is_compared_has_gradients_of_zeros() -> None:
    gradients = mixtrain.grad(lambda a, b: a == b, (0, 1))(X, Y)
    assert all(not gradient.asnumpy().any() for gradient in gradients)


def test_the_gradient_of_outputs_may_be_the_outputs_themselves_with_numbers_among_them() -> None:
    def both(a: Any) -> Any:
        return {"square": a * a, "times": 2}

    gradient = ops.GradOperation(sens_param=True)(both)(X, both(X))
    assert gradient.asnumpy().tolist() == [2.0, 16.0]


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: mixtrain.grad(product, None), ValueError, "grad: grad_position and weights must not both be None"),
    (lambda: mixtrain.grad(product, (0, 0)), ValueError, "grad_position must name inputs, each once"),
    (lambda: mixtrain.grad(product, -1), ValueError, "grad_position must be at least 0"),
    (lambda: mixtrain.grad(product, 5)(X, Y), ValueError, "grad_position must be below 2"),
    (lambda: mixtrain.grad(product, "a"), TypeError, "grad_position must be an int or a tuple of ints"),
    (lambda: mixtrain.grad(product, has_aux=True)(X, Y), ValueError, "has_aux=True needs a function with more"),
    (lambda: mixtrain.value_and_grad(3), TypeError, "value_and_grad: fn must be a Cell or a function"),  # type: ignore
    (lambda: mixtrain.grad(product, None, [X]), TypeError, "each of the weights must be a"),
    (lambda: mixtrain.grad(lambda a: None)(X), TypeError, "the function must return a float tensor"),
    (lambda: ops.GradOperation("yes"), TypeError, "GradOperation: get_all must be True or False"),  # type: ignore
    (lambda: ops.GradOperation(get_by_list=True)(product), ValueError, "get_by_list needs weights"),
    (lambda: ops.GradOperation(sens_param=True)(product)(), ValueError, "sens_param=True needs one more argument"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arguments_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_a_hook_on_the_way_back_sees_values_and_may_replace_gradients() -> None:
    seen: list[Any] = []
    look, triple = ops.HookBackward(seen.append), ops.HookBackward(lambda gradients: gradients[0] * 3.0)

    def function(x: Any, y: Any) -> Any:
        x, y = look(x, y)
        return triple(x * y) * y

    x, y = mixtrain.Tensor([2.0]), mixtrain.Tensor([5.0])
    of_x, of_y = mixtrain.grad(function, (0, 1))(x, y)
    assert [backend.to_numpy(value).tolist() for value in (of_x, of_y)] == [[75.0], [40.0]]
    assert [backend.to_numpy(value).tolist() for value in seen[0]] == [[75.0], [40.0]]
    assert backend.to_numpy(look(x)).tolist() == [2.0] and len(seen) == 1
    with pytest.raises(TypeError, match="HookBackward: hook_fn must be a function; got int 3"):
        ops.HookBackward(3)


def test_a_hook_passes_over_integers() -> None:
    seen: list[Any] = []
    hook = ops.HookBackward(lambda gradients: seen.append(gradients[1]))
    mixtrain.grad(lambda x: hook(x, mixtrain.Tensor([1]))[0])(mixtrain.Tensor([2.0]))
    assert seen == [None]


def test_a_tensor_that_is_an_input_and_the_gradient_of_the_output_is_differentiated_by_as_the_input_alone() -> None:
    x = Tensor([1.0, 2.0])
    assert ops.GradOperation(sens_param=True)(lambda a: a * a)(x, x).asnumpy().tolist() == [2.0, 8.0]
    (product,) = ops.vjp(lambda a: a * a, x)[1](x)
    assert product.asnumpy().tolist() == [2.0, 8.0]


def test_an_input_that_is_passed_twice_has_a_gradient_for_each_place() -> None:
    def cubic(a: Any, b: Any) -> Any:
        return a * a * b

    for second in (X, X.copy()):
        assert plain(mixtrain.grad(cubic, (0, 1))(X, second)) == ([2.0, 8.0], [1.0, 4.0])
        assert plain(mixtrain.grad(cubic, 1)(X, second)) == [1.0, 4.0]
    assert plain(mixtrain.grad(lambda a: a * a * X)(X)) == [2.0, 8.0]
    assert plain(mixtrain.vjp(cubic, X, X)[1](X)) == ([2.0, 16.0], [1.0, 8.0])


C = mixtrain.Tensor(np.array([1 + 2j, 3 - 1j, 0.5 + 0.5j, -2 + 1j], np.complex64))
SENS = mixtrain.Tensor(np.array([1 - 1j, 2 + 0.5j, -1j, 3 + 2j], np.complex64))
R = mixtrain.Tensor([1.0, 2.0, 3.0, 5.0])


# Recorded with mindspore 2.10.0, without the quotient and `Complex`, whose gradients are wrong there.
@pytest.mark.parametrize(
    ("fn", "at", "sens", "expected"),
    [
        (ops.fft, R, SENS, [6.0, 2.5, -4.0, -0.5]), (ops.rfft, R, SENS[:3], [3.0, 0.5, -1.0, 1.5]),
        (ops.fft, C, SENS, [6 + 0.5j, 2.5 - 1j, -4 - 4.5j, -0.5 + 1j]),
        (ops.ifft, C, SENS, [1.5 + 0.125j, -0.125 + 0.25j, -1 - 1.125j, 0.625 - 0.25j]),
        (ops.conj, C, SENS, [1 + 1j, 2 - 0.5j, 1j, 3 - 2j]), (ops.imag, C, R, [1j, 2j, 3j, 5j]),
        (ops.angle, C, R, [-0.4 + 0.2j, 0.2 + 0.6j, -3 + 3j, -1 - 2j]), (ops.sum, C, SENS[0], [1 - 1j] * 4),
        (ops.exp, C, SENS, [-3.60293 - 1.34052j, 13.25383 + 39.22892j, -0.79044 - 1.44689j, 0.44713 - 0.1954j]),
        (lambda z: z / SENS, C, SENS, [SENS.asnumpy()[k] / SENS.asnumpy()[k].conjugate() for k in range(4)]),
        (lambda x: ops.Complex()(x, R), R, SENS, [1.0, 2.0, 0.0, 3.0]),
        (lambda x: ops.Complex()(R, x), R, SENS, [-1.0, 0.5, -1.0, 2.0]),
    ],
)
def test_gradients_of_complex_outputs(fn: Any, at: Any, sens: Any, expected: Any) -> None:
    gradient = ops.GradOperation(sens_param=True)(fn)(at, sens)
    assert gradient.dtype == at.dtype
    np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-4, atol=1e-4)


def test_the_quotient_of_complex_tensors_is_complex() -> None:
    first, second = C.asnumpy(), SENS.asnumpy()
    for quotient, expected in (
        (C / SENS, first / second), (ops.div(C, SENS), first / second), (ops.RealDiv()(C, R), first / R.asnumpy()),
        (R / C, R.asnumpy() / first), (C / 2, first / 2), (2j / R, 2j / R.asnumpy()), (1 / C, 1 / first),
        (ops.true_divide(C, 2j), first / 2j), (ops.DivNoNan()(C, SENS), first / second),
    ):
        np.testing.assert_allclose(quotient.asnumpy(), expected, rtol=1e-5)


N1, N2 = mixtrain.Tensor([1, 2, 3], mixtrain.int32), mixtrain.Tensor([4, 5, 6], mixtrain.int32)


# Recorded with mindspore 2.10.0: the gradients of the same numbers as floats, rounded towards zero.
@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda a, b: a * b, ([4, 5, 6], [1, 2, 3])), (lambda a, b: a * 2.5 * b, ([10, 12, 15], [2, 5, 7])),
        (lambda a, b: ops.cast(a, mixtrain.float32) * b, ([4, 5, 6], [1, 2, 3])),
        (lambda a, b: b % a, ([-4, -2, -2], [1, 1, 1])), (lambda a, b: a > b, ([0, 0, 0], [0, 0, 0])),
        (lambda a, b: (a * b, a + b), ([5, 6, 7], [2, 3, 4])), (lambda a, b: (a * b).sum(), ([4, 5, 6], [1, 2, 3])),
        (lambda a, b: ops.gather(R, a, 0), ([0, 0, 0], [0, 0, 0])), (lambda a, b: ops.argmax(a), ([0] * 3, [0] * 3)),
        (lambda a, b: ops.where(a > 1, a, b), ([0, 1, 1], [1, 0, 0])), (ops.bitwise_and, ([0] * 3, [0] * 3)),
    ],
)
def test_gradients_by_integers_alone_are_integers(fn: Callable[..., Any], expected: Any) -> None:
    value, gradients = mixtrain.value_and_grad(fn, (0, 1))(N1, N2)
    assert plain(value) == plain(fn(N1, N2)) and plain(gradients) == expected
    assert {gradient.dtype for gradient in gradients} == {mixtrain.int32}
    assert plain(ops.GradOperation(get_all=True)(fn)(N1, b=N2) if fn is not ops.bitwise_and else expected) == expected


def test_products_with_jacobians_of_integers_are_integers() -> None:
    assert plain(mixtrain.jvp(lambda a, b: a * b, (N1, N2), (N1, N2))) == ([4, 10, 18], [8, 20, 36])
    assert plain(mixtrain.vjp(lambda a, b: a * b, N1, N2)[1](N2)) == ([16, 25, 36], [4, 10, 18])
    with pytest.raises(ValueError, match="sens must have the shape of the output"):
        mixtrain.vjp(lambda a: a.sum(), N1)[1](N2)
    assert plain(mixtrain.grad(lambda a, b: a * b, (0, 1))(R[:3], N2)) == ([4.0, 5.0, 6.0], [0, 0, 0])
    assert plain(mixtrain.grad(lambda a: a * 2.0)(mixtrain.Tensor([True, False]))) == [False, False]
    arrays = np.array([1, 2], np.int32)
    assert plain(mixtrain.grad(lambda a, b: a * b, (0, 1))(arrays, mixtrain.Tensor(arrays))) == ([1, 2], [1, 2])


def test_a_function_of_integers_that_fails_of_its_own_fails_in_its_gradient() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        mixtrain.grad(lambda a: a * mixtrain.Tensor([1, 2], mixtrain.int32))(N1)


def test_the_mean_and_variance_of_a_layer_normalization_have_no_gradients() -> None:
    x, scale, shift = Tensor([[1.0, 2.0, 4.0]]), Tensor([1.0, 1.0, 1.0]), Tensor([0.0, 0.0, 0.0])

    def statistic(index: int) -> Any:
        return mixtrain.grad(lambda x: ops.LayerNorm(1, 1)(x, scale, shift)[index])(x)

    assert [statistic(index).asnumpy().tolist() for index in (1, 2)] == [[[0.0] * 3]] * 2
    whole = mixtrain.grad(lambda x: sum(part.sum() for part in ops.LayerNorm(1, 1)(x, scale, shift)))(x)
    np.testing.assert_allclose(whole.asnumpy(), np.zeros((1, 3)), atol=1e-6)


class _Counting(nn.Cell):
    """A network of integers, which writes one of its Parameters by what it reads of it."""

    def __init__(self) -> None:
        super().__init__()
        self.a = mixtrain.Parameter(Tensor(5, mixtrain.int32), name="a")
        self.b = mixtrain.Parameter(Tensor(4, mixtrain.int32), name="b")

    def construct(self, x: Tensor) -> Tensor:
        out = self.a
        if self.a > self.b:
            x = x + 3
            if x > self.a:
                self.b += 4
                x = x + self.a
        self.b += 2
        for _ in range(5):
            out = out + self.b
        return out * x


def test_a_network_of_integers_is_differentiated_by_inputs_and_weights_and_writes_once() -> None:
    # Recorded on MindSpore 2.10, PyNative mode.
    network = _Counting()
    gradients = ops.GradOperation(get_all=True, get_by_list=True)(network, network.trainable_params())
    (by_x,), by_weights = gradients(Tensor(5, mixtrain.int32))
    assert [int(by_x), *map(int, by_weights)] == [55, 68, 65]
    assert {by_x.dtype, *(value.dtype for value in by_weights)} == {mixtrain.int32}
    assert [int(network.a), int(network.b)] == [5, 10]


@pytest.mark.parametrize("compiled", [False, True])
def test_weights_of_integers_have_gradients_of_integers(compiled: bool) -> None:
    first, second = (mixtrain.Parameter(Tensor([[1, 2], [3, 4]], mixtrain.int32), name=name) for name in "vw")
    constant, x = Tensor([[1, 2], [3, 4]], mixtrain.int32), Tensor([[7, 8], [9, 0]], mixtrain.int32)

    def call(x: Tensor) -> Any:
        return mixtrain.grad(lambda x: constant * first * second * x, None, [first, second])(x)

    of_first, of_second = (mixtrain.jit(call) if compiled else call)(x)
    assert of_first.asnumpy().tolist() == of_second.asnumpy().tolist() == [[7, 32], [81, 0]]


@pytest.mark.parametrize("fn", [ops.Size(), lambda x: x.shape, lambda x: 3])
def test_sizes_have_gradients_of_zeros_and_floats_without_one_are_refused(fn: Callable[..., Any]) -> None:
    assert plain(mixtrain.grad(fn)(X)) == [0.0, 0.0]
    assert plain(mixtrain.grad(fn)(Tensor([1, 2]))) == [0, 0]
    with pytest.raises(TypeError, match="the function must return a float tensor; got float 2.5"):
        mixtrain.grad(lambda x: 2.5)(X)


def test_a_compiled_function_keeps_nothing_of_the_trial_of_its_gradient() -> None:
    weight = mixtrain.Parameter(Tensor([2, 3], mixtrain.int32), name="w")

    @mixtrain.jit
    def product(x: Tensor) -> Tensor:
        return weight * x

    x = Tensor([5, 7], mixtrain.int32)
    by_weight = mixtrain.grad(product, None, weight)
    assert by_weight(x).asnumpy().tolist() == [5, 7]
    weight.set_data(Tensor([4, 4], mixtrain.int32))
    assert product(Tensor([5.0, 7.0], mixtrain.float64)).asnumpy().tolist() == [20.0, 28.0]
    assert mixtrain.grad(product)(x).asnumpy().tolist() == [4, 4]


def test_the_trial_of_a_gradient_draws_what_the_call_draws_and_moves_no_stream() -> None:
    def scaled(x: Tensor) -> Tensor:
        return (x * (ops.rand(1) * 1000)).sum()

    mixtrain.set_seed(5)
    value, gradient = mixtrain.value_and_grad(scaled)(Tensor([1], mixtrain.int32))
    assert int(gradient[0]) == int(float(value))
    following = ops.rand(2).asnumpy().tolist()
    mixtrain.set_seed(5)
    assert float(scaled(Tensor([1], mixtrain.int32))) == float(value)
    assert ops.rand(2).asnumpy().tolist() == following


def test_gradients_out_of_the_range_of_a_narrow_dtype_wrap_on_every_backend() -> None:
    assert int(mixtrain.grad(lambda x: x * x)(Tensor([200], mixtrain.uint8))[0]) == 144  # As MindSpore 2.10.


def test_distances_of_equal_rows_have_gradients_of_zero() -> None:
    gradient = mixtrain.grad(lambda x: ops.cdist(x, x).sum())(Tensor([[1.0, 3.0], [0.0, 2.0]]))
    np.testing.assert_allclose(gradient.asnumpy(), [[2**0.5] * 2, [-(2**0.5)] * 2], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_parameter_that_is_read_after_it_was_written_has_the_gradient(compiled: bool) -> None:
    # As on MindSpore 2.10.
    weight = mixtrain.Parameter(Tensor([1.0]), name="w")

    def doubled(x: Tensor) -> Tensor:
        weight.set_data(weight * 2.0)
        return (weight * x).sum()

    def squared(x: Tensor) -> Tensor:
        ops.assign(weight, x)
        return (weight * weight).sum()

    for function, x, expected, by_x in ((doubled, [1.0], [1.0], [2.0]), (squared, [3.0], [6.0], [0.0])):
        def call(x: Tensor, function: Callable[..., Any] = function) -> Any:
            weight.set_data(Tensor([1.0]))
            return mixtrain.grad(function, 0, [weight])(x)

        of_x, (of_weight,) = (mixtrain.jit(call) if compiled else call)(Tensor(x))
        assert (of_x.asnumpy().tolist(), of_weight.asnumpy().tolist()) == (by_x, expected)


@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_results_in_a_no_grad_block_are_constants_of_a_gradient(mode: int) -> None:
    mixtrain.set_context(mode=mode)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = mixtrain.Parameter(np.float32([5.0]), name="weight")
            self.conv = nn.Conv2d(1, 1, 1, weight_init="ones")

        def construct(self, x: Any) -> Any:
            y = self.weight * x
            with mixtrain._no_grad():
                m = y * self.weight
                image = self.conv(ops.ones((1, 1, 2, 2)) * x).sum()
            return m * y + image

    net, x = Net(), mixtrain.Tensor([2.0])
    with mixtrain._no_grad():
        assert net(x).asnumpy().tolist() == [508.0]
    assert ops.grad(net)(x).asnumpy().tolist() == [250.0]
    assert plain(ops.grad(net, None, net.trainable_params())(x)[0]) == [100.0]


def test_no_grad_decorates_a_function_and_leaves_what_was_compiled_in_it_alone() -> None:
    @mixtrain._no_grad()
    def square(x: Any) -> Any:
        return x * x

    @mixtrain.jit
    def cube(x: Any) -> Any:
        return x * x * x

    x = mixtrain.Tensor([3.0])
    assert ops.grad(lambda x: square(x) * x)(x).asnumpy().tolist() == [9.0]
    assert mixtrain.jit(ops.grad(lambda x: square(x) * x))(x).asnumpy().tolist() == [9.0]
    with mixtrain._no_grad():
        assert cube(x).asnumpy().tolist() == [27.0]
        with pytest.raises(RuntimeError, match="grad: expected a place with gradients; got one in a no_grad block"):
            ops.grad(cube)(x)
    assert ops.grad(cube)(x).asnumpy().tolist() == [27.0]
    with pytest.raises(ZeroDivisionError), mixtrain._no_grad():
        _ = 1 / 0
    assert ops.grad(lambda x: x * x)(x).asnumpy().tolist() == [6.0]
