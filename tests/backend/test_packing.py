"""On a GPU gradients are packed and values selected by masks, which changes no number: here on whatever device."""

from __future__ import annotations

import types
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, backend, nn, set_seed
from mixtrain.backend.info import DeviceInfo
from tests.backends import ON_TENSORFLOW

pytestmark = pytest.mark.skipif(ON_TENSORFLOW, reason="XLA on TensorFlow chooses its kernels itself")

GPU = DeviceInfo("GPU", "a GPU", fast_bfloat16=True)
# Small and large, of the ranks that are treated differently.
SHAPES = ((3,), (), (0, 4), (600, 500), (3, 3, 200, 200), (2, 3, 4), (70, 80, 90), (300_000,))
FORMATS = ("float32", "float32", "float32", "float32", "float32", "float16", "bfloat16", "float32")


def on_gpu(patch: pytest.MonkeyPatch) -> None:
    """Compute as on a GPU where that differs only in the order of the same operations."""
    for file in ("gradient", "control"):
        patch.setattr(f"mixtrain.backend.jax.{file}.describe_device", lambda: GPU)


def drawn() -> list[Any]:
    draw = np.random.default_rng(0)
    arrays = [np.asarray(draw.standard_normal(shape), np.float32) for shape in SHAPES]
    return list(map(backend.to_tensor, arrays, FORMATS))


def checked(gradients: list[Any], *, finite: bool = True) -> tuple[list[Any], bool, float]:
    import jax

    compiled = jax.jit(lambda *values: backend.check_gradients([None, *values], [], finite=finite))
    (first, *same), flag, norm = compiled(*gradients)
    assert first is None
    return same, bool(flag), float(norm)


@pytest.mark.parametrize("place", [None, *range(len(SHAPES))])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_packed_gradients_have_the_same_values_flag_and_norm(
    place: int | None, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients = drawn()
    if place is not None and 0 not in SHAPES[place]:
        gradients[place] = gradients[place].at[(-1,) * len(SHAPES[place])].set(bad)
    _, flag, norm = checked(gradients)
    on_gpu(monkeypatch)
    same, flag_on_gpu, norm_on_gpu = checked(gradients)
    assert flag_on_gpu == flag == (place is None or 0 in SHAPES[place])
    np.testing.assert_allclose(norm_on_gpu, norm, rtol=1e-5)
    for one, other in zip(gradients, same, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one, np.float32), np.asarray(other, np.float32))
    assert checked(gradients, finite=False)[1]


def test_huge_finite_gradients_are_finite_though_their_norm_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch)
    gradients = drawn()[:5]
    gradients[3] = gradients[3] * np.float32(1e30)
    assert checked(gradients)[1:] == (True, np.inf)


def test_sharded_gradients_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    on_gpu(monkeypatch)
    sharding = types.SimpleNamespace(is_fully_replicated=False)
    sharded = types.SimpleNamespace(_value=types.SimpleNamespace(sharding=sharding))

    def packs(variables: list[Any]) -> bool:
        program = jax.make_jaxpr(lambda *values: backend.check_gradients(values, variables))(*drawn()[:2])
        return "optimization_barrier" in str(program)

    assert packs([]) and not packs([sharded])


def small_network() -> keras.Model:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((6, 6, 3)),
        layers.Conv2D(4, 3, use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.Conv2D(4, 3, use_bias=False),
        layers.BatchNormalization(),
        layers.Flatten(),
        layers.Dense(2),
    ])


OPTIMIZERS = {
    "SGD": lambda network: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda network: keras.optimizers.Adam(0.01, clipnorm=1.0),
    "AdamW": lambda network: keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "nn.Momentum": lambda network: nn.Momentum(network.trainable_variables, 0.1, 0.9, weight_decay=0.01),
    "nn.Adam": lambda network: nn.Adam(network.trainable_variables, 0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_that_are_applied_and_skipped_are_those_of_unpacked_gradients(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(1)
    x = draw.standard_normal((3, 8, 6, 6, 3), np.float32)
    y = 100 * draw.standard_normal((3, 8, 2), np.float32)

    def trained() -> tuple[list[np.ndarray], list[bool]]:
        keras.utils.set_random_seed(0)
        set_seed(0)
        network = small_network()
        # So large that the first steps overflow.
        manager = DynamicLossScaleManager(2.0**127, 2**4, 2)
        model = Model(
            network, keras.losses.CategoricalCrossentropy(from_logits=True), OPTIMIZERS[name](network),
            loss_scale_manager=manager,
        )
        history = model.train(1, list(zip(x, y, strict=True)), verbose=0)
        return [np.asarray(variable) for variable in network.variables], list(history["skipped_steps"])

    import jax

    from mixtrain.backend.jax import gradient, packing

    # Operation by operation: XLA rounds differently in other kernels.
    with jax.disable_jit():
        expected, skipped = trained()
        on_gpu(monkeypatch)
        packed: list[int] = []
        check = packing.check_packed
        monkeypatch.setattr(gradient, "check_packed", lambda values, **how: (packed.append(1), check(values, **how))[1])
        values, skipped_on_gpu = trained()
    assert packed
    assert 0 < sum(skipped) < 3
    assert skipped_on_gpu == skipped
    for one, other in zip(expected, values, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("flag", [True, False])
def test_values_of_all_sizes_are_selected_and_written(flag: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu(monkeypatch)
    variables = [keras.Variable(np.zeros(shape, np.float32)) for shape in SHAPES]

    def write(value: float) -> None:
        for variable in variables:
            variable.assign(keras.ops.full(variable.shape, value))

    @backend.compile_once
    def chosen(flag: Any) -> Any:
        backend.cond(flag, lambda: write(1.0), lambda: write(2.0))
        return flag

    @backend.compile_once
    def in_order(loss: Any) -> Any:
        backend.write_after(loss, lambda: write(3.0), variables)
        return loss

    for run, argument, value in ((chosen, flag, 1 if flag else 2), (in_order, 0.5, 3)):
        run(backend.to_tensor(argument))
        assert all(np.all(np.asarray(variable) == value) for variable in variables)
