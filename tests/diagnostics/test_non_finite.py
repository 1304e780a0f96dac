"""Finding where numbers go wrong: inputs, layers, the loss, gradients of outputs and of parameters."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend, boundary, nn
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.non_finite import find_non_finite
from mixtrain.diagnostics.replay import PassInfo, Replay
from tests.backends import quick_every

LABEL = np.zeros((1, 1), np.float32)


def _chain(*weights: float) -> nn.SequentialCell:
    return nn.SequentialCell(*[nn.Dense(1, 1, weight_init=weight, has_bias=False) for weight in weights])


def _keras_chain(*weights: float) -> Any:
    return keras.Sequential([keras.Input((1,)), *(
        keras.layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Constant(weight), name=f"layer{n}")
        for n, weight in enumerate(weights)
    )])


def _find(network: Any, value: Any, *, loss: Any = "mae", loss_scale: float = 1.0, label: Any = LABEL) -> Finding:
    data = np.array([[value]], np.float32)
    batch = [backend.to_tensor(data), backend.to_tensor(label)]
    with_loss = nn.WithLossCell(network, loss)
    finding = find_non_finite(Replay(network, with_loss), batch, loss_scale)
    compiled = functools.partial(backend.compile_function, choice=backend.JitChoice(False, "a test"))
    assert str(find_non_finite(Replay(network, with_loss, compiled=compiled), batch, loss_scale)) == str(finding)
    replay = _RecordingReplay(network, with_loss)
    counts = _step_counts(replay, with_loss, batch, loss_scale)
    assert str(find_non_finite(replay, batch, loss_scale, step_counts=counts)) == str(finding)
    return finding


class _RecordingReplay(Replay):
    """Records the scales of its forward and backward passes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scales: list[float] = []

    def run(self, batch: Any, loss_scale: float, factor: float = 1.0) -> PassInfo:
        self.scales.append(loss_scale)
        return super().run(batch, loss_scale, factor)


def _step_counts(replay: Replay, with_loss: Any, batch: Any, loss_scale: float) -> dict[str, list[int]]:
    """Return the counts of non-finite values in the gradients of a step on a batch."""
    weights = [weight for owned in replay.parameters.values() for weight in owned]
    if not weights:
        return {path: [] for path in replay.parameters}
    scale = backend.to_tensor(np.float32(loss_scale))

    def scaled() -> tuple[Any, None]:
        return keras.ops.cast(boundary.to_backend_tensors(with_loss(*batch)), "float32") * scale, None

    gradients = backend.value_and_gradient(scaled, weights)[2]
    counts = iter(backend.to_numpy(backend.non_finite_counts(gradients, backend.to_tensor(False))).tolist())
    return {path: [next(counts) for _ in owned] for path, owned in replay.parameters.items()}


@quick_every(3)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_an_input_that_is_not_finite_is_found_first(value: float) -> None:
    finding = _find(_chain(1.0), value)
    assert (finding.kind, finding.layer) == ("input", None)
    name = "NaN" if np.isnan(value) else "inf"
    assert str(finding) == (
        f"column 0 of the batch: 1 of 1 values not finite (1 {name}); a smaller loss scale cannot help: look at the "
        "data"
    )
    assert _find(_chain(1.0), 1.0, label=np.full((1, 1), value, np.float32)).kind == "input"


@pytest.mark.slow
@pytest.mark.parametrize(("make", "path"), [(_chain, "1"), (_keras_chain, "layer1")])
def test_the_first_layer_whose_output_is_not_finite_is_named(make: Any, path: str) -> None:
    finding = _find(make(1.0, 1e30, 1.0), 1e10)
    assert (finding.kind, finding.layer) == ("forward", path)
    assert str(finding) == (
        f"output of layer {path}: 1 of 1 values not finite (1 inf); a smaller loss scale cannot help: look at its "
        "weights and its inputs"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("make", "path"), [(_chain, "1"), (_keras_chain, "layer1")])
def test_a_half_layer_overflows_where_a_full_one_does_not(make: Any, path: str) -> None:
    network = make(1.0, 2.0**10, 1.0)
    assert _find(network, 2.0**7).kind == "none"
    amp.auto_mixed_precision(network, "O3")
    assert _find(network, 2.0**7) == Finding("forward", path)


@pytest.mark.slow
def test_a_cell_inside_a_cell_is_named_before_the_one_around_it() -> None:
    network = nn.SequentialCell(_chain(1.0), nn.SequentialCell(nn.ReLU(), _chain(1e30, 1.0)))
    assert _find(network, 1e10).layer == "1.1.0"


def test_a_layer_of_keras_inside_a_cell_is_named() -> None:
    class Holder(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(1e30), use_bias=False)
            self.inner.keras_layer.build((None, 1))

        def construct(self, x: Any) -> Any:
            return self.inner(x)

    finding = _find(Holder(), 1e10)
    assert (finding.kind, finding.layer) == ("forward", "inner")


def test_the_network_itself_is_named_where_no_layer_below_it_is_to_blame() -> None:
    class Direct(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 1e30

    finding = _find(Direct(), 1e10)
    assert (finding.kind, finding.layer) == ("forward", "")
    assert str(finding).startswith("output of the network itself: 1 of 1 values not finite (1 inf)")


def test_a_loss_that_alone_is_not_finite_is_told_apart() -> None:
    finding = _find(_chain(1.0), 1e30, loss="mse")
    assert (finding.kind, finding.layer) == ("loss", None)
    assert str(finding) == (
        "the loss: 1 of 1 values not finite (1 inf), every layer's output is finite; a smaller loss scale cannot help: "
        "look at the loss function and the labels"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("make", "paths"), [(_chain, "012"), (_keras_chain, ("layer0", "layer1", "layer2"))])
def test_a_gradient_of_an_output_is_found_from_the_loss_backwards(make: Any, paths: Any) -> None:
    # dL/d(output of the first layer) = scale * 2**60 * 2**60
    network = make(2.0**-120, 2.0**60, 2.0**60)
    assert _find(network, 1.0, loss_scale=2.0**7).kind == "none"
    finding = _find(network, 1.0, loss_scale=2.0**8)
    assert (finding.kind, finding.layer) == ("gradient", paths[0])
    assert str(finding) == (
        f"gradient of layer {paths[0]}'s output: 1 of 1 values above 3.40282e+38, the largest 3.4e+38; forward finite; "
        "scale 128 would do"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("make", "path"), [(_chain, "0"), (_keras_chain, "layer0")])
def test_a_gradient_of_a_parameter_alone_is_found(make: Any, path: str) -> None:
    # dL/d(first weight) = scale * 2**20 * 2**100, of its output only scale * 2**20
    network = make(2.0**-100, 2.0**20)
    assert _find(network, 2.0**100, loss_scale=2.0**7).kind == "none"
    finding = _find(network, 2.0**100, loss_scale=2.0**8)
    assert (finding.kind, finding.layer) == ("parameter", path)
    assert str(finding) == (
        f"gradient of a parameter of layer {path}: 1 of 1 values above 3.40282e+38, the largest 3.4e+38; forward "
        "finite; scale 128 would do"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "kind", "layer"), [((2.0**8, 2.0**7), "parameter", "1"), ((2.0**4, 2.0**8), "gradient", "0")]
)
def test_of_a_parameter_and_the_output_before_it_the_one_nearer_to_the_loss_is_named(
    weights: tuple[float, float], kind: str, layer: str
) -> None:
    network = _chain(*weights)
    amp.auto_mixed_precision(network, "O3")
    finding = _find(network, 1.0, loss_scale=2.0**9)
    assert (finding.kind, finding.layer, finding.forward_finite) == (kind, layer, True)
    assert (finding.largest, finding.scale) == (2.0**17, 2.0**7)


@pytest.mark.slow
def test_a_parameter_that_its_holder_reads_is_found_as_well() -> None:
    class Reader(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.held = nn.Dense(1, 1, weight_init=2.0**-100, has_bias=False)

        def construct(self, x: Any) -> Any:
            return x * self.held.weight * 2.0**20

    assert _find(Reader(), 2.0**100, loss_scale=2.0**8) == Finding("parameter", "held")


@pytest.mark.slow
def test_half_gradients_overflow_in_the_format_that_the_step_computes_in() -> None:
    network = amp.auto_mixed_precision(_chain(1.0, 1.0), "O3")
    assert _find(network, 1.0, loss_scale=2.0**15).kind == "none"
    assert _find(network, 1.0, loss_scale=2.0**24).kind == "gradient"


def _find_with_counts(network: Any, value: np.ndarray, loss_scale: float) -> tuple[Finding, list[float]]:
    """Find by the counts of a step, compare with a search without them, and return the finding and the scales used."""
    batch = [backend.to_tensor(value.astype(np.float32)), backend.to_tensor(np.zeros((len(value), 1), np.float32))]
    with_loss = nn.WithLossCell(network, "mae")
    replay = _RecordingReplay(network, with_loss)
    finding = find_non_finite(replay, batch, loss_scale, step_counts=_step_counts(replay, with_loss, batch, loss_scale))
    assert str(find_non_finite(Replay(network, with_loss), batch, loss_scale)) == str(finding)
    return finding, replay.scales


@pytest.mark.parametrize(("weights", "kind"), [((2.0**8, 2.0**7), "parameter"), ((2.0**4, 2.0**8), "gradient")])
def test_a_step_whose_counts_are_known_needs_one_pass_at_the_next_smaller_scale(
    weights: tuple[float, float], kind: str
) -> None:
    network = amp.auto_mixed_precision(_chain(*weights), "O3")
    finding, scales = _find_with_counts(network, np.ones((1, 1)), 2.0**8)
    assert (finding.kind, finding.count, finding.largest, finding.scale) == (kind, 1, 2.0**16, 2.0**7)
    assert scales == [2.0**7]


@pytest.mark.slow
def test_what_no_scale_helps_is_named_as_it_is_at_the_smallest_scale() -> None:
    # The gradient of the first output is 2**19 times the scale; that of the last overflows at large scales only.
    network = amp.auto_mixed_precision(_chain(2.0**-10, 2.0**15, 2.0**4), "O3")
    for loss_scale in (1.0, 2.0**13, 2.0**17):
        finding = _find(network, 1.0, loss_scale=loss_scale)
        assert (finding, finding.scale, finding.count) == (Finding("gradient", "0"), None, 1)


def test_a_sum_that_overflows_on_its_way_is_known_by_the_counts_of_the_step() -> None:
    class Shifted(nn.Cell):
        """Adds a parameter whose gradient is eight times as large on its way as in the end."""

        def __init__(self) -> None:
            super().__init__()
            self.gain = mixtrain.Parameter(np.ones((1,), np.float32), name="gain")
            self.shift = mixtrain.Parameter(np.zeros((1,), np.float32), name="shift")

        def construct(self, x: Any) -> Any:
            gain, shift = self.gain.astype(mixtrain.float16), self.shift.astype(mixtrain.float16)
            return x.astype(mixtrain.float16) * gain + shift * 0.125 * 8.0

    finding, scales = _find_with_counts(Shifted(), np.ones((1, 1)), 2.0**13)
    assert (finding, finding.count, finding.largest) == (Finding("parameter", ""), 1, 2.0**13)
    assert scales == [2.0**12]


def test_what_overflows_on_its_way_through_a_layer_without_parameters_is_found_by_a_pass_at_the_scale_of_the_step(
) -> None:
    class Detour(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x.astype(mixtrain.float16) * 0.125 * 8.0

    dense = [nn.Dense(1, 1, weight_init=1.0, has_bias=False) for _ in range(2)]
    finding, scales = _find_with_counts(nn.SequentialCell(dense[0], Detour(), dense[1]), np.ones((1, 1)), 2.0**13)
    assert (finding, finding.count, finding.largest) == (Finding("gradient", "0"), 1, 2.0**13)
    assert scales == [2.0**12, 2.0**13]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_counts_of_a_step_change_nothing_of_what_is_found(seed: int) -> None:
    draw = np.random.default_rng(seed)
    widths = [4, *draw.integers(2, 6, 3).tolist(), 1]
    mixtrain.set_seed(seed)
    cells = [nn.Dense(inputs, outputs) for inputs, outputs in itertools.pairwise(widths)]
    network = amp.auto_mixed_precision(nn.SequentialCell(*cells), "O3")
    for power in range(12, 25, 3):
        _find_with_counts(network, draw.standard_normal((8, 4)) * 2.0 ** draw.integers(0, 6), 2.0**power)


@pytest.mark.slow
def test_a_layer_that_is_called_twice_is_no_obstacle() -> None:
    class Twice(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.shared = nn.Dense(1, 1, weight_init=2.0**40, has_bias=False)

        def construct(self, x: Any) -> Any:
            return self.shared(self.shared(x))

    assert _find(Twice(), 2.0**-80, loss_scale=2.0**20).kind == "none"
    assert _find(Twice(), 2.0**-80, loss_scale=2.0**100) == Finding("gradient", "shared")
    assert _find(Twice(), 2.0**60) == Finding("forward", "shared")


@pytest.mark.slow
def test_a_gradient_that_is_too_large_for_half_only_as_a_sum_in_float32_is_finite() -> None:
    class Added(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.shared = nn.Dense(1, 1, weight_init=1.0, has_bias=False).to_float(mixtrain.float16)

        def construct(self, x: Any) -> Any:
            return self.shared(x) + self.shared(x)

    assert _find(Added(), 2.0, loss_scale=2.0**14).kind == "none"
    assert _find(Added(), 2.0, loss_scale=2.0**15) == Finding("parameter", "shared")


@pytest.mark.slow
def test_several_inputs_and_outputs_are_looked_into() -> None:
    class Pair(nn.Cell):
        def construct(self, x: Any) -> Any:
            return {"one": x, "other": (x * 1e30, 3)}

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pair = Pair()

        def construct(self, x: Any) -> Any:
            return self.pair(x)["one"]

    assert _find(Net(), 1.0).kind == "none"
    assert _find(Net(), 1e10) == Finding("forward", "pair")


def test_integer_columns_are_finite() -> None:
    network = nn.Dense(1, 2, weight_init="ones")
    batch = [mixtrain.Tensor([[1.0]]), mixtrain.Tensor(np.array([1], np.int32))]
    with_loss = nn.WithLossCell(network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    assert find_non_finite(Replay(network, with_loss), batch, 1.0).kind == "none"


@pytest.mark.parametrize("norm", [lambda: nn.BatchNorm1d(2), keras.layers.BatchNormalization])
def test_the_network_is_left_as_it_was(norm: Any) -> None:
    network = nn.SequentialCell(nn.Dense(1, 2), norm(), nn.Dense(2, 1)).set_train()
    network(mixtrain.Tensor([[1.0], [2.0]]))
    before = [backend.to_numpy(parameter).tobytes() for parameter in network.get_parameters()]
    attributes = [set(vars(cell)) for _, cell in network.cells_and_names()]
    batch = [mixtrain.Tensor([[1.0], [2.0]]), mixtrain.Tensor([[1.0], [2.0]])]
    assert find_non_finite(Replay(network, nn.WithLossCell(network, "mse")), batch, 1.0).kind == "none"
    assert [backend.to_numpy(parameter).tobytes() for parameter in network.get_parameters()] == before
    assert [set(vars(cell)) for _, cell in network.cells_and_names()] == attributes
