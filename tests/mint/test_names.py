"""Every name of MindSpore 2.10's `mint` is here: recorded, tested beside, or refused with what to write."""

from __future__ import annotations

import importlib
import inspect
import json
import pathlib
import pickle
import re
from typing import Any, Final

import numpy as np
import pytest

from mixtrain import Generator, Parameter, Tensor, mint, nn, ops
from mixtrain.compat.mindspore.refused_names import is_refused
from mixtrain.mint import distributed, optim
from tests.mint.test_recorded import RECORDED

# MindSpore 2.10's lists of public names, by module.
NAMES: Final[dict[str, str]] = json.loads((pathlib.Path(__file__).parent / "names.json").read_text())
LETTERS: Final = {"": "m", "nn": "N", "nn.functional": "F", "linalg": "L", "special": "S"}
# They have no oracle on a CPU: tested below by what they mean.
BESIDE: Final = {
    "m.batch_norm_elemt", "m.batch_norm_stats", "m.batch_norm_gather_stats_with_counts", "m.addr_", "m.npu_gelu",
    "F.sigmoid_",
}
# What processes would exchange in pairs, or in parts of several sizes.
REFUSED: Final = {
    "P2POp", "all_gather_into_tensor_uneven", "batch_isend_irecv", "irecv", "isend", "recv", "recv_object_list",
    "reduce_scatter_tensor_uneven", "send", "send_object_list",
}


def named(module: str) -> Any:
    return importlib.import_module(f"mixtrain.mint.{module}".rstrip("."))


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_there_or_refused(module: str) -> None:
    refused = {name for name in NAMES[module].split() if is_refused(getattr(named(module), name))}
    assert refused == (REFUSED if module == "distributed" else set())


def test_every_function_and_cell_is_in_the_recorded_calls_or_tested_beside() -> None:
    called = {name for call in RECORDED for name in re.findall(r"\b[mFNLS]\.\w+", call)}
    wanted = {f"{letter}.{name}" for module, letter in LETTERS.items() for name in NAMES[module].split()}
    assert wanted - called == BESIDE


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_what_to_write(name: str) -> None:
    with pytest.raises(NotImplementedError, match=r"Write "):
        getattr(distributed, name)(Tensor([1.0]))


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: mint.unique(Tensor([[1, 2]]), dim=1), NotImplementedError),
    (lambda: mint.nn.functional.embedding(Tensor([0]), mint.eye(2), scale_grad_by_freq=True), NotImplementedError),
    (lambda: mint.nn.Embedding(2, 2, sparse=True), ValueError),
    (lambda: mint.nn.Dropout(p=2.0), ValueError),
    (lambda: distributed.all_reduce(Tensor([1.0]), async_op=True), NotImplementedError),
    (lambda: distributed.all_reduce(Tensor([1.0]), op="bad"), TypeError),
    (lambda: distributed.get_rank(group=1), TypeError),
    (lambda: distributed.new_group([1]), NotImplementedError),
    (lambda: optim.AdamW([Parameter(np.ones(2, np.float32), name="w")], lr="1"), TypeError),
    (lambda: optim.Adam([Parameter(np.ones(2, np.float32), name="w")], betas=(0.9, 1.0)), ValueError),
    (lambda: optim.Adam([Parameter(np.ones(2, np.float32), name="w")], lr=-1.0), ValueError),
    (lambda: optim.SGD([Parameter(np.ones(2, np.float32), name="w")], lr=0.1, nesterov=True), ValueError),
])
def test_what_mint_does_not_take_is_an_error(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()


def test_functions_have_signatures_of_mindspore() -> None:
    assert list(inspect.signature(mint.add).parameters) == ["input", "other", "alpha"]
    with pytest.raises(TypeError, match=r"add\(\) missing 1 required positional argument: 'other'"):
        mint.add(Tensor([1.0]))


def test_einsum_takes_lists_of_axes_and_sums_over_dots() -> None:
    x, y = (np.random.default_rng(n).standard_normal((3, 4)).astype(np.float32) for n in (0, 1))
    for parts, expected in (
        ((Tensor(x), [0, 1], Tensor(y), [2, 1], [0, 2]), x @ y.T), ((Tensor(x), [..., 1], [...]), x.sum(1)),
        (("...->", Tensor(x)), x.sum()), (("...i, ...i -> i", Tensor(x), Tensor(y)), (x * y).sum(0)),
    ):
        np.testing.assert_allclose(mint.einsum(*parts).asnumpy(), expected, 1e-4, 1e-5)


def test_parts_of_batch_normalization_make_one() -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((6, 3, 4)).astype(np.float32))
    whole, parts = mint.batch_norm_stats(x, 1e-5), [mint.batch_norm_stats(part, 1e-5) for part in (x[:2], x[2:])]
    rows = [mint.stack([part[n] for part in parts]) for n in (0, 1)]
    running_mean, running_var = mint.zeros(3), mint.ones(3)
    joint = mint.batch_norm_gather_stats_with_counts(
        x, *rows, running_mean, running_var, 0.1, 1e-5, Tensor([8.0, 16.0])
    )
    values = x.asnumpy()
    for one, other in zip(joint, whole, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), 1e-5)
    np.testing.assert_allclose(running_mean.asnumpy(), values.mean((0, 2)) * 0.1, 1e-5, 1e-7)
    np.testing.assert_allclose(running_var.asnumpy(), 0.9 + 0.1 * values.var((0, 2), ddof=1), 1e-5)
    y = mint.batch_norm_elemt(x, mint.full((3,), 2.0), mint.ones(3), *joint)
    expected = (values - values.mean((0, 2))[:, None]) / np.sqrt(values.var((0, 2)) + 1e-5)[:, None] * 2 + 1
    np.testing.assert_allclose(y.asnumpy(), expected, 1e-4, 1e-5)


def test_functions_in_place_write_to_their_input() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    result = mint.addr_(x, Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), beta=0.5, alpha=2)
    assert result is x and x.asnumpy().tolist() == [[6.5, 9.0], [13.5, 18.0]]
    y = Tensor([0.0])
    assert mint.nn.functional.sigmoid_(y) is y and y.asnumpy().tolist() == [0.5]
    assert mint.npu_gelu(Tensor([0.0])).asnumpy().tolist() == [0.0]


def test_a_generator_repeats_its_numbers() -> None:
    draws = {
        "rand": lambda generator: mint.rand(2, 3, generator=generator),
        "randint": lambda generator: mint.randint(0, 9, (5,), generator=generator),
        "normal": lambda generator: mint.normal(Tensor([1.0, 2.0]), Tensor([1.0, 3.0]), generator=generator),
        "bernoulli": lambda generator: mint.bernoulli(mint.full((9,), 0.5), generator=generator),
        "multinomial": lambda generator: mint.multinomial(mint.ones(9), 4, generator=generator),
        "replaced": lambda generator: mint.multinomial(mint.ones((2, 3)), 5, True, generator=generator),
        "randperm": lambda generator: mint.randperm(6, generator=generator),
    }
    for name, draw in draws.items():
        one, other = (draw(Generator().manual_seed(4)).asnumpy().tolist() for _ in range(2))
        assert one == other, name


def test_initial_values_are_pytorchs() -> None:
    linear, conv = mint.nn.Linear(400, 300), mint.nn.Conv2d(4, 100, 5)
    for parameter, bound in ((linear.weight, 1 / 20), (linear.bias, 1 / 20), (conv.weight, 0.1), (conv.bias, 0.1)):
        largest = np.abs(parameter.asnumpy()).max()
        assert 0.9 * bound < largest <= bound
    table = mint.nn.Embedding(300, 50, padding_idx=2).weight.asnumpy()
    assert abs(table.std() - 1) < 0.03 and not table[2].any()
    names = [p.name for p in mint.nn.BatchNorm2d(3).get_parameters()]
    assert names == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def test_cells_repeat_pickle_and_print() -> None:
    cell = pickle.loads(pickle.dumps(mint.nn.ELU))
    assert cell is mint.nn.ELU and "Conv1d" in repr(mint.nn.Conv1d(1, 2, 3))
    assert nn.LayerNormExt is mint.nn.LayerNorm and nn.Linear is mint.nn.Linear


def test_one_process_is_a_group_of_its_own() -> None:
    x, two = Tensor([1.0, 2.0]), [Tensor([0.0, 0.0])]
    distributed.destroy_process_group()  # What another test has joined.
    assert (distributed.get_rank(), distributed.get_world_size(), distributed.get_backend()) == (0, 1, "hccl")
    assert distributed.is_available() and not distributed.is_initialized()
    assert distributed.get_process_group_ranks() == [0] and distributed.new_group() == distributed.new_group([0])
    assert distributed.get_global_rank(None, 0) == distributed.get_group_rank(None, 0) == 0
    for name, args in {
        "all_gather": (two, x), "all_gather_into_tensor": (two[0], x), "gather": (x, two), "scatter": (two[0], [x]),
        "reduce_scatter": (two[0], [x]), "reduce_scatter_tensor": (two[0], x), "all_to_all": (two, [x]),
        "all_to_all_single": (two[0], x),
    }.items():
        two[0].copy_(mint.zeros(2))
        assert getattr(distributed, name)(*args) is None
        assert two[0].asnumpy().tolist() == [1.0, 2.0], name
    for name, args in {"all_reduce": (x, "avg"), "reduce": (x, 0), "broadcast": (x, 0), "barrier": ()}.items():
        assert getattr(distributed, name)(*args) is None
        assert x.asnumpy().tolist() == [1.0, 2.0]
    for name, make in {
        "all_gather_object": lambda got: (got, {"a": 1}), "gather_object": lambda got: ({"a": 1}, got),
        "scatter_object_list": lambda got: (got, [{"a": 1}]),
    }.items():
        got: list[Any] = [None]
        getattr(distributed, name)(*make(got))
        assert got == [{"a": 1}], name
    both = [1, "two"]
    distributed.broadcast_object_list(both)
    assert both == [1, "two"]
    distributed.init_process_group()
    assert distributed.is_initialized()
    distributed.destroy_process_group()


def test_a_start_may_count_from_the_end_and_large_integers_are_all_drawn() -> None:
    assert mint.narrow(Tensor([[1.0, 2.0, 3.0]]), 1, -2, 2).asnumpy().tolist() == [[2.0, 3.0]]
    with pytest.raises(ValueError, match="ops.narrow: start must be at least 0; got -2"):
        ops.narrow(Tensor([[1.0, 2.0, 3.0]]), 1, -2, 2)
    drawn = mint.randint(2**30, 2**30 + 10, (1000,), generator=Generator()).asnumpy()
    assert set(drawn.tolist()) == set(range(2**30, 2**30 + 10))
