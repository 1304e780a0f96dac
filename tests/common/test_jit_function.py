"""`jit`: what compiles, what is retraced, and that compiled and eager runs give the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn, ops
from mixtrain.amp import DynamicLossScaler, LossScaler, StaticLossScaler, all_finite
from tests.backends import ON_TENSORFLOW, quick_every

BOTH_MODES = pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE], ids=["graph", "eager"])


class Counted:
    """Counts how often Python ran a function: once for each time it was compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.count = 0
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.function(*args, **kwargs)


@BOTH_MODES
def test_tensors_are_traced_and_other_arguments_are_constants_in_both_modes(mode: int) -> None:
    mixtrain.set_context(mode=mode)
    run = Counted(lambda x, power, flag=True: x**power if flag else x)
    compiled = mixtrain.jit(run)
    x = np.float32([1, 2])
    for value in (x, 2 * x, mixtrain.Tensor(3 * x)):
        assert backend.to_numpy(compiled(value, 2)).tolist() == (backend.to_numpy(value) ** 2).tolist()
    assert run.count == 1
    compiled(x, 3)
    compiled(x, power=2)
    compiled(x, 2, flag=False)
    compiled(x[:1], 2)
    compiled(x.astype(np.int32), 2)
    assert run.count == 6
    assert compiled(x, True, False).dtype == compiled(x, 1, False).dtype
    assert run.count == 8


def test_functions_run_eagerly_where_they_are_not_jitted() -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    eager, jitted = Counted(lambda x: x * x), Counted(lambda x: x * x)
    gradient, compiled = mixtrain.value_and_grad(eager), mixtrain.jit(jitted)
    for value in (1.0, 2.0, 3.0):
        assert [float(output) for output in gradient(mixtrain.Tensor(value))] == [value**2, 2 * value]
        assert float(compiled(mixtrain.Tensor(value))) == value**2
    assert (eager.count, jitted.count) == (3, 1)


def test_results_keep_their_structure_and_constants() -> None:
    weight = mixtrain.Parameter(2.0, name="w")
    result = mixtrain.jit(lambda x, n: {"x": (x, [n, "name", None, True]), "w": weight})(mixtrain.Tensor(1.0), 7)
    assert (float(result["x"][0]), result["x"][1], float(result["w"])) == (1.0, [7, "name", None, True], 2.0)


def test_every_way_to_write_it() -> None:
    double = mixtrain.jit(lambda x: x * 2)
    x = mixtrain.Tensor(2.0)

    @mixtrain.jit(jit_level="O1", capture_mode="trace", dynamic=1, fullgraph=True, backend="ms_backend", more=3)
    def triple(x: Any) -> Any:
        """Say so."""
        return x * 3

    @mixtrain.ms_function
    def old(x: Any) -> Any:
        return double(triple(x))

    assert [float(f(x)) for f in (double, triple, old, mixtrain.jit(fn=abs), mixtrain.jit(double))] == [4, 6, 12, 2, 4]
    assert float(mixtrain.ms_function(input_signature=x)(lambda x: x + 1)(x)) == 3
    assert (triple.__name__, triple.__doc__) == ("triple", "Say so.")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"function": 3}, TypeError, "jit: function must be a function, a method or a Cell"),
        ({"function": nn.Dense}, TypeError, "jit: function must be a function, a method or a Cell"),
        ({"jit_level": "O9"}, ValueError, "jit: jit_level must be one of O0, O1, O2"),
        ({"capture_mode": "x"}, ValueError, "jit: capture_mode must be one of"),
        ({"fullgraph": 1}, TypeError, "jit: fullgraph must be True or False"),
    ],
)
def test_bad_arguments_are_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mixtrain.jit(**options)


@pytest.mark.tensorflow  # tests/backend/test_branches.py has what JAX says to it.
def test_branches_and_loops_may_depend_on_tensors() -> None:
    @mixtrain.jit
    def halved(x: Any, limit: Any) -> Any:
        steps = 0
        while x > limit:
            x = x / 2
            steps = steps + 1
        if steps > 2:
            x = -x
        for step in range(2):
            x = x + step
        return x, steps

    assert [float(v) for v in halved(mixtrain.Tensor(8.0), mixtrain.Tensor(1.5))] == [0.0, 3.0]
    assert [float(v) for v in halved(mixtrain.Tensor(2.0), mixtrain.Tensor(1.5))] == [2.0, 1.0]


def positive(x: Any) -> Any:
    if x > 0:
        return x
    return -x


@pytest.mark.slow
def test_tensors_of_any_dtype_with_one_element_decide_as_in_python() -> None:
    @mixtrain.jit
    def decided(x: Any, y: Any) -> Any:
        z = x and y, x or y
        if not x:
            return *z, y - 1
        return *z, y if x else x

    for kind in (np.int64, np.float16, np.uint8):
        for x, y in ((3, 2), (0, 2)):
            got = decided(mixtrain.Tensor(np.array([x], kind)), mixtrain.Tensor(np.array([y], kind)))
            assert [value.asnumpy().tolist() for value in got] == [[x and y], [x or y], [y if x else y - 1]]


def test_values_of_branches_that_cannot_be_joined_are_refused() -> None:
    @mixtrain.jit
    def by_if(x: Any) -> Any:
        return x if x.sum() > 0 else x.astype(mixtrain.float16)

    @mixtrain.jit
    def by_and(x: Any) -> Any:
        return x and 5

    for function in (by_if, by_and):
        with pytest.raises(TypeError, match=r"Cannot join the return values .* Write ops\.cast"):
            function(mixtrain.Tensor(np.float32([1])))


def test_a_tensor_may_decide_a_branch_in_a_function_or_object_that_is_called() -> None:
    class Signs:
        def __call__(self, x: Any) -> Any:
            return self.of(x)

        def of(self, x: Any) -> Any:
            if x > 0:
                sign = x * 0 + 1
            else:
                sign = x * 0 - 1
            return sign

    signs = Signs()
    of_both = mixtrain.jit(lambda x: (positive(x), signs(x)))
    for value, expected in ((-2.0, [2.0, -1.0]), (3.0, [3.0, 1.0])):
        assert [float(output) for output in of_both(mixtrain.Tensor(value))] == expected


@pytest.mark.tensorflow
def test_a_function_with_a_branch_whose_source_cannot_be_read_runs_uncompiled() -> None:
    names: dict[str, Any] = {}
    exec("def hidden(x):\n    if x > 0:\n        return x\n    return -x", names)
    with pytest.warns(UserWarning, match="lets a tensor decide in code that is not compiled, .* so it runs uncompiled"):
        assert float(mixtrain.jit(lambda x: names["hidden"](x))(mixtrain.Tensor(-2.0))) == 2


def test_a_method_is_compiled_for_each_object_and_parameters_are_written() -> None:
    class Counter:
        def __init__(self, step: float) -> None:
            self.step, self.total = step, mixtrain.Parameter(0.0, name="total")

        @mixtrain.jit
        def add(self, x: Any) -> Any:
            self.total.assign_add(self.step * x)
            return self.total

    small, large = Counter(1.0), Counter(10.0)
    assert [float(counter.add(mixtrain.Tensor(2.0))) for counter in (small, large, small)] == [2.0, 20.0, 4.0]
    assert (float(small.total), float(large.total)) == (4.0, 20.0)


class Net(nn.Cell):
    """A dense layer and dropout, whose forward pass is compiled by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.drop = nn.Dense(4, 64, weight_init="ones"), nn.Dropout(p=0.5)
        self.count = 0

    @mixtrain.jit
    def construct(self, x: Any) -> Any:
        self.count += 1
        return self.drop(self.dense(x))


def test_a_cell_is_traced_anew_when_its_mode_or_precision_changes_and_only_then() -> None:
    net, x = Net(), mixtrain.Tensor(np.ones((2, 4), np.float32))
    traced = net.count
    for mode in (True, False, True, False):
        assert bool((backend.to_numpy(net.set_train(mode)(x)) == 0).any()) is mode
        traced = traced or net.count  # On JAX the first trace of two finds out which variables there are.
    assert net.count == 2 * traced
    assert net(x).dtype.name == "float32"
    assert net.to_float(mixtrain.float16)(x).dtype.name == "float16"
    count = net.count
    assert net(x).dtype.name == "float16"
    assert net.count == count > 2


@pytest.mark.slow
def test_a_function_sees_the_modes_of_cells_in_its_closure_in_partials_and_in_objects() -> None:
    net, x = nn.Dropout(p=0.5), mixtrain.Tensor(np.ones(64, np.float32))
    holder = type("Holder", (), {})()
    holder.networks = {"first": [net]}
    functions = (
        lambda x: net(x), functools.partial(lambda net, x: net(x), net), lambda x: holder.networks["first"][0](x), net,
        mixtrain.grad(lambda x: net(x)),
    )
    for compiled in map(mixtrain.jit, functions):
        dropped = [bool((backend.to_numpy(compiled(x)) == 0).any()) for _ in map(net.set_train, (True, False))]
        assert dropped == [True, False]


def test_functions_that_switch_the_mode_themselves_are_each_traced_once() -> None:
    net, runs = nn.SequentialCell(nn.Dense(3, 3), nn.Dropout(p=0.5)), []

    def calling(mode: bool) -> Any:
        def call(x: Any) -> Any:
            runs.append(mode)
            return net.set_train(mode)(x)

        return mixtrain.jit(call)

    step, evaluate, x = calling(True), calling(False), mixtrain.Tensor(np.ones((2, 3), np.float32))
    for _ in range(2):
        step(x), evaluate(x)
    traced = len(runs)
    for _ in range(3):
        step(x), evaluate(x)
    assert len(runs) == traced


def test_a_jitted_cell_is_still_the_cell() -> None:
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    compiled = mixtrain.jit(net)
    assert backend.to_numpy(compiled(mixtrain.Tensor([[1.0, 2.0]]))).tolist() == [[3.0]]
    assert compiled.trainable_params()[0] is net.weight


def test_dropout_and_random_numbers_are_drawn_anew_at_each_call_as_eager_ones_are() -> None:
    def draw(x: Any) -> Any:
        return ops.dropout(x, 0.5), ops.rand(4)

    drawn = []
    for function in (draw, mixtrain.jit(draw)):
        mixtrain.set_seed(5)
        drawn.append([[backend.to_numpy(v).tolist() for v in function(ops.ones((8, 8)))] for _ in range(2)])
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


@pytest.mark.tensorflow
def test_half_is_compiled_with_xla_on_a_cpu_and_float32_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = []
    choose = backend.choose_jit
    monkeypatch.setattr(
        "mixtrain.backend.tensorflow.compile.choose_jit", lambda *a: choices.append(choose(*a)) or choices[-1]
    )
    net = nn.Dense(2, 2)
    compiled = mixtrain.jit(lambda x: net(x))
    compiled(mixtrain.Tensor([[1.0, 2.0]]))
    net.to_float(mixtrain.float16)
    assert compiled(mixtrain.Tensor([[1.0, 2.0]])).dtype.name == "float16"
    assert [choice.jit for choice in choices] == [False, backend.describe_device().kind == "CPU"]


# ---- custom loops -------------------------------------------------------------------------------------------------
BATCHES = 8


def train(scaler: LossScaler, decorate: Callable[[Any], Any], *, dtype: Any, branch: bool) -> list[Any]:
    """Run MindSpore's own loop with a scaler; return losses, scales, and the weights at the end."""
    mixtrain.set_seed(1)
    rng = np.random.default_rng(3)
    data = rng.standard_normal((BATCHES, 16, 5)).astype(np.float32)
    labels = (data.sum(-1) > 0).astype(np.int32)
    data[3, 0, 0] = np.inf  # One step overflows.
    net = nn.SequentialCell(nn.Dense(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 2)).to_float(dtype).set_train()
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), nn.piecewise_constant_lr([4, 20], [0.1, 0.05]), 0.9)

    def forward(x: Any, y: Any) -> Any:
        logits = net(x)
        return scaler.scale(loss_fn(logits, y)), logits

    grad_fn = mixtrain.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    @decorate
    def step_with_if(x: Any, y: Any) -> Any:
        (loss, _), grads = grad_fn(x, y)
        finite = all_finite(grads)
        if finite:
            optimizer(scaler.unscale(grads))
        scaler.adjust(finite)
        return scaler.unscale(loss), finite

    @decorate
    def step_with_depend(x: Any, y: Any) -> Any:
        (loss, _), grads = grad_fn(x, y)
        loss = scaler.unscale(loss)
        finite = all_finite(grads)
        applied = ops.HyperMap()(lambda g: ops.select(finite, g, ops.zeros_like(g)), scaler.unscale(grads))
        loss = ops.depend(loss, optimizer(applied))
        return ops.depend(loss, scaler.adjust(finite)), finite

    step, seen = step_with_if if branch else step_with_depend, []
    for x, y in zip(data, labels, strict=True):
        loss, finite = step(x, y)
        seen.append((float(loss), bool(finite), float(scaler.scale_value)))  # type: ignore[attr-defined]
    return [np.array(seen), *(backend.to_numpy(weight) for weight in net.trainable_params())]


SCALERS: dict[str, Callable[[], LossScaler]] = {
    "static": lambda: StaticLossScaler(1024), "dynamic": lambda: DynamicLossScaler(2**10, 2, 3)
}


@pytest.mark.slow
@pytest.mark.parametrize("branch", [pytest.param(True, marks=pytest.mark.tensorflow), False], ids=["if", "depend"])
@pytest.mark.parametrize("kind", SCALERS)
def test_a_loop_with_a_scaler_gives_the_same_numbers_compiled_and_eager(kind: str, branch: bool) -> None:
    eager = train(SCALERS[kind](), lambda f: f, dtype=mixtrain.float32, branch=branch)
    compiled = train(SCALERS[kind](), mixtrain.jit, dtype=mixtrain.float32, branch=branch)
    for expected, actual in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(expected, actual, rtol=1e-4, atol=1e-6)
    assert eager[0][:, 1].tolist() == [True] * 3 + [False] + [True] * 4
    scales = [1024, 1024, 2048, 1024, 1024, 1024, 2048, 2048] if kind == "dynamic" else [1024] * 8
    assert compiled[0][:, 2].tolist() == scales
    assert np.isfinite(compiled[1]).all()


@pytest.mark.slow
def test_a_half_loop_gives_the_same_scales_and_near_losses() -> None:
    eager = train(SCALERS["dynamic"](), lambda f: f, dtype=mixtrain.float16, branch=ON_TENSORFLOW)
    compiled = train(SCALERS["dynamic"](), mixtrain.jit, dtype=mixtrain.float16, branch=ON_TENSORFLOW)
    assert eager[0][:, 1:].tolist() == compiled[0][:, 1:].tolist()
    np.testing.assert_allclose(np.delete(eager[0][:, 0], 3), np.delete(compiled[0][:, 0], 3), rtol=2e-2)


@pytest.mark.slow
def test_a_compiled_step_inside_a_compiled_function_is_part_of_it() -> None:
    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5))
    assert float(mixtrain.jit(lambda x, y: step(x, y) * 1.0)(np.float32([[1.0]]), np.float32([[2.0]]))) == 4.0
    assert net.weight.asnumpy().tolist() == [[2.0]]


def test_a_keras_model_can_be_trained_in_a_jitted_function() -> None:
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    optimizer = keras.optimizers.SGD(0.5)
    optimizer.build(model.trainable_weights)
    grad_fn = mixtrain.value_and_grad(
        lambda x, y: ops.mse_loss(model(x, training=True), y), None, model.trainable_weights
    )

    @mixtrain.jit
    def step(x: Any, y: Any) -> Any:
        loss, grads = grad_fn(x, y)
        optimizer.apply(list(grads), model.trainable_weights)
        return loss

    x, y = np.float32([[1.0, 0.0]]), np.float32([[2.0]])
    assert [float(step(x, y)) for _ in range(2)] == [4.0, 4.0]
    assert backend.to_numpy(model.layers[0].kernel).tolist() == [[0.0], [0.0]]


def test_a_function_that_makes_cells_runs_uncompiled() -> None:
    @mixtrain.jit
    def run(x: Any) -> Any:
        return nn.Dense(2, 1, weight_init="ones", has_bias=False)(x)

    x = mixtrain.Tensor([[1.0, 2.0]])
    with pytest.warns(UserWarning, match="jit: run creates Parameters, so it runs uncompiled. Create the Cell before"):
        assert run(x).asnumpy().tolist() == [[3.0]]
    assert run(x).asnumpy().tolist() == [[3.0]]


def test_a_function_that_reads_values_runs_uncompiled() -> None:
    @mixtrain.jit
    def run(x: Any) -> Any:
        return float(x.asnumpy()[0]), x + 1

    with pytest.warns(UserWarning, match="jit: run reads a Tensor's values, so it runs uncompiled. Call asnumpy"):
        value, updated = run(mixtrain.Tensor([2.0]))
    assert value == 2.0 and updated.asnumpy().tolist() == [3.0]
    assert run(mixtrain.Tensor([5.0]))[0] == 5.0


@pytest.mark.filterwarnings("ignore:jit. .* lets a tensor decide in code that is not compiled")
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: [all(x > 0), any(value > 2 for value in x)], [True, False]),
        (lambda x: ((x[0], x[1]), (x[1], x[1])).count((x[0] + 1, x[1])), 1),
        (lambda x: x[0] + 1 in (5, x[1]), True),
        (lambda x: (x[0], 1) < (x[0], x[1]), True),
        (lambda x: sorted([x[1], x[0]])[0], 1),
    ],
)
def test_python_s_own_functions_may_ask_for_values(function: Any, expected: Any) -> None:
    results = mixtrain.jit(function)(mixtrain.Tensor([1, 2]))
    assert (list(map(bool, results)) if isinstance(expected, list) else int(results)) == expected


def test_a_class_of_cells_compiles_their_construct() -> None:
    traced = []

    @mixtrain.jit
    class Twice(nn.Cell):
        def construct(self, x: Any) -> Any:
            traced.append(x)
            return 2 * x

    network = Twice()
    assert isinstance(network, nn.Cell)
    for _ in range(3):
        assert network(mixtrain.Tensor([1.0])).asnumpy().tolist() == [2.0]
    assert len(traced) == 1


@pytest.mark.filterwarnings("ignore:jit. .* fails where a tensor decides")
@pytest.mark.parametrize("inner", [False, True])
def test_a_check_that_raises_refuses_only_what_it_is_about(inner: bool) -> None:
    def check(x: Any) -> None:
        if x.sum() < 0:
            raise ValueError("negative input")

    @mixtrain.jit
    def run(x: Any) -> Any:
        if inner:
            check(x)
        elif x.sum() < 0:
            raise ValueError("negative input")
        return 2 * x

    assert run(mixtrain.Tensor([1.0, 2.0])).asnumpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match="^negative input$"):
        run(mixtrain.Tensor([-1.0, -2.0]))


@pytest.mark.parametrize("where", ["around", "argument"])
def test_a_function_that_sets_attributes_of_other_objects_than_cells_sets_them_in_each_call(where: str) -> None:
    class Counts:
        calls = 0

    counts = Counts()

    @mixtrain.jit
    def of_variable(x: Any) -> Any:
        counts.calls = counts.calls + 1
        return x * counts.calls

    @mixtrain.jit
    def of_argument(x: Any, counts: Any) -> Any:
        counts.calls += 1
        return x * counts.calls

    run = of_variable if where == "around" else lambda x: of_argument(x, counts)
    with pytest.warns(UserWarning, match="sets an attribute of an object that is no Cell.*uncompiled. Return the"):
        assert float(run(mixtrain.Tensor(1.0))) == 1
    assert [float(run(mixtrain.Tensor(1.0))) for _ in range(2)] == [2, 3] and counts.calls == 3


@pytest.mark.filterwarnings("ignore:jit. .* lets a tensor decide")
def test_what_runs_uncompiled_writes_to_its_arguments_as_a_compiled_function() -> None:
    def by_index(x: Any) -> Any:
        x[0] = 10
        return max(x[0], x[1])

    def in_place(x: Any) -> Any:
        x.add_(1)
        return max(x[0], x[1])

    for function, expected in ((by_index, [[1, 2], [1, 2]]), (in_place, [[2, 3], [3, 4]])):
        x, compiled, seen = mixtrain.Tensor([1.0, 2.0]), mixtrain.jit(function), []
        for _ in range(2):
            compiled(x)
            seen.append(x.asnumpy().tolist())
        assert seen == expected


# ---- writes in branches and loops that a tensor decides -------------------------------------------------------------
def _in_one_way(x: Any, p: Any) -> Any:
    y = ops.zeros_like(x)
    if p[0] == 1:
        y[0] = 1.0
    return (y * x).sum()


def _in_every_way(x: Any, p: Any) -> Any:
    y = ops.zeros_like(x)
    if p[0] == 1:
        y[0] += 2.0
        y[1] -= 1.0
    elif p[1] == 1:
        y[1] = x[0]
    else:
        y[:] = x
    return y


def _by_a_method(x: Any, p: Any) -> Any:
    y = ops.zeros_like(x)
    if p[0] == 1:
        y.add_(x)
    return y


def _in_a_while(x: Any, p: Any) -> Any:
    y, i = ops.zeros_like(x), p[1]
    while i < 2:
        y[i] = x[i] + 1.0
        y[:, i] += 1.0
        i = i + 1
    return y


def _nested(x: Any, p: Any) -> Any:
    y = ops.zeros_like(x)
    for i in range(2):
        if p[i] == 1:
            y[i] = x[1 - i]
            if p[1] == 1:
                y[0] = y[0] + 10.0
    return y


def _rebound_after(x: Any, p: Any) -> Any:
    y = ops.zeros_like(x)
    if p[0] == 1:
        y[0] = 5.0
        y = y * 2
        y[1] = 1.0
    return y


def _to_an_argument(x: Any, p: Any) -> Any:
    if p[0] == 1:
        x[0] = 7.0
    return x * 1


def _in_a_gradient(x: Any, p: Any) -> Any:
    return mixtrain.grad(_in_every_way_summed)(x, p)


def _in_every_way_summed(x: Any, p: Any) -> Any:
    return (_in_every_way(x, p) * x).sum()


@quick_every(3)
@pytest.mark.parametrize("function", [
    _in_one_way, _in_every_way, _by_a_method, _in_a_while, _nested, _rebound_after, _to_an_argument, _in_a_gradient,
])
@pytest.mark.filterwarnings("ignore:jit. _in_a_while lets a tensor decide")  # On JAX.
def test_writes_where_a_tensor_decides_are_those_of_an_uncompiled_call(function: Any) -> None:
    values = np.array([[0.5, 1.0], [2.0, 3.0]], np.float32)
    compiled = mixtrain.jit(function)
    for ways in ((1, 0), (0, 1), (0, 0), (1, 1)):
        p = mixtrain.Tensor(ways, mixtrain.int32)
        results = [run(mixtrain.Tensor(values), p).asnumpy() for run in (compiled, function)]
        np.testing.assert_array_equal(*results)
