"""State dicts, hooks, and settings of a Cell for graphs and several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.train import Model


def net() -> Any:
    return nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 1))


X = np.ones((1, 2), np.float32)


def test_state_goes_out_and_into_another_cell() -> None:
    source, target = net(), net()
    state = source.state_dict()
    assert list(state) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert target.load_state_dict({key: value.asnumpy() for key, value in state.items()}) == ([], [])
    assert (backend.to_numpy(source(Tensor(X))) == backend.to_numpy(target(Tensor(X)))).all()
    assert list(source.state_dict(prefix="net.", destination={"step": 1}))[:2] == ["step", "net.0.weight"]


def test_state_that_does_not_fit_names_the_paths_and_changes_nothing() -> None:
    cell = net()
    before = cell.state_dict()["0.weight"].asnumpy().copy()
    state = {"0.weight": np.zeros((3, 2), np.float32), "0.bias": np.zeros(4, np.float32), "fc": np.zeros(1)}
    with pytest.raises(RuntimeError, match=r"0.bias has shape \(3,\) here and \(4,\) .*; missing: 2.weight, 2.bias"):
        cell.load_state_dict(state)
    assert (cell.state_dict()["0.weight"].asnumpy() == before).all()
    del state["0.bias"]
    left = cell.load_state_dict(state, strict=False)
    assert left.missing_keys == ["0.bias", "2.weight", "2.bias"] and left.unexpected_keys == ["fc"]
    assert (cell.state_dict()["0.weight"].asnumpy() == 0).all()
    with pytest.raises(TypeError, match="state_dict must be a Mapping"):
        cell.load_state_dict([1])


def test_cells_are_found_by_their_paths_and_names_are_checked() -> None:
    cell = net()
    assert cell.get_sub_cell("2") is cell[2] and cell.get_sub_cell("") is cell
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        cell.get_sub_cell("x")
    assert list(cell.parameters_broadcast_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert nn.ReLU().parameters_broadcast_dict() is None
    cell.check_names()
    cell.insert_param_to_cell("extra", Parameter(1.0, name="0.bias"))
    with pytest.raises(ValueError, match="got '0.bias' again at 0.bias"):
        cell.check_names()


def test_hooks_see_and_replace_inputs_and_outputs_until_they_are_removed() -> None:
    cell, seen = nn.ReLU(), []
    before = cell.register_forward_pre_hook(lambda cell, inputs: seen.append(len(inputs)) or (inputs[0] + 1.0,))
    after = cell.register_forward_hook(lambda cell, inputs, output: output * 10.0)
    first = cell.register_forward_pre_hook(lambda cell, inputs: -inputs[0], prepend=True)
    assert backend.to_numpy(cell(Tensor([-2.0]))).tolist() == [30.0] and seen == [1]
    first.remove()
    assert backend.to_numpy(cell(Tensor([2.0]))).tolist() == [30.0]
    before.remove()
    before.remove()
    after.remove()
    assert backend.to_numpy(cell(Tensor([2.0]))).tolist() == [2.0]
    with pytest.raises(TypeError, match="register_forward_hook: hook_fn must be a function"):
        cell.register_forward_hook(1)


def test_hooks_with_keywords_take_and_give_both() -> None:
    class Scaled(nn.Cell):
        def construct(self, x: Any, factor: float = 1.0) -> Any:
            return x * factor

    cell = Scaled()
    cell.register_forward_pre_hook(lambda cell, args, kwargs: (args, {"factor": 3.0}), with_kwargs=True)
    cell.register_forward_hook(lambda cell, args, kwargs, y: y + kwargs["factor"], with_kwargs=True)
    assert backend.to_numpy(cell(Tensor([2.0]), factor=2.0)).tolist() == [9.0]


def test_backward_hooks_see_and_replace_gradients_in_the_order_of_their_registration() -> None:
    class Product(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x * y, x + y

    cell, seen = Product(), []

    def first(hooked: Any, of_inputs: Any, of_outputs: Any) -> Any:
        assert hooked is cell
        seen.append([backend.to_numpy(value).tolist() for value in (*of_inputs, *of_outputs)])
        return of_inputs[0] * 10.0, of_inputs[1]

    def second(hooked: Any, of_inputs: Any, of_outputs: Any) -> None:
        seen.append([backend.to_numpy(value).tolist() for value in of_inputs])

    handles = [cell.register_backward_hook(first), cell.register_backward_hook(second)]
    handles.append(cell.register_backward_pre_hook(lambda hooked, of_outputs: (of_outputs[0] * 2.0, of_outputs[1])))
    gradients = mixtrain.grad(lambda x, y: cell(x, y)[0], (0, 1))
    results = gradients(Tensor([2.0]), Tensor([3.0]))
    assert [backend.to_numpy(value).tolist() for value in results] == [[60.0], [4.0]]
    assert seen == [[[6.0], [4.0], [2.0], [0.0]], [[60.0], [4.0]]]
    for handle in handles:
        handle.remove()
    assert [backend.to_numpy(value).tolist() for value in gradients(Tensor([2.0]), Tensor([3.0]))] == [[3.0], [2.0]]
    assert len(seen) == 2


def test_a_backward_hook_of_one_input_may_return_one_gradient_in_compiled_calls_too() -> None:
    cell = nn.Tanh()
    cell.register_backward_hook(lambda hooked, of_inputs, of_outputs: of_inputs[0] * 0.0 + 5.0)
    step = mixtrain.jit(mixtrain.grad(lambda x: cell(x)))
    assert backend.to_numpy(step(Tensor([2.0, 3.0]))).tolist() == [5.0, 5.0]


def test_a_backward_hook_that_loses_a_gradient_is_an_error() -> None:
    cell = nn.SequentialCell(nn.ReLU())
    cell.register_backward_hook(lambda hooked, of_inputs, of_outputs: ())
    with pytest.raises(TypeError, match="register_backward_hook: hook_fn must return 1 gradients, as many as it takes"):
        mixtrain.grad(lambda x: cell(x))(Tensor([2.0]))
    with pytest.raises(TypeError, match="register_backward_hook: hook_fn must be a function; got int 1"):
        cell.register_backward_hook(1)


def test_a_hook_set_between_two_calls_of_a_model_is_heard() -> None:
    cell = net()
    model = Model(cell)
    plain = backend.to_numpy(model.predict(Tensor(X)))
    cell.register_forward_hook(lambda cell, inputs, output: output + 1.0)
    assert backend.to_numpy(model.predict(Tensor(X))) == pytest.approx(plain + 1.0)


def test_what_several_devices_and_graphs_would_need_is_accepted() -> None:
    cell = net()
    assert cell.shard(((1, 1),), out_strategy=None) is cell
    assert cell.set_comm_fusion(2) is cell and cell.set_grad() is cell and cell.requires_grad
    assert cell.get_inputs() is None
    cell.set_inputs(Tensor(X))
    assert len(cell.get_inputs()) == 1
    assert cell.compile(Tensor(X)) is None
    cell.update_cell_type("student")
    cell.update_cell_prefix()
    assert cell.cell_type == "student" and cell[2].param_prefix == "2"
    with pytest.warns(UserWarning, match="activations are kept"):
        assert cell.recompute(mp_comm_recompute=False) is None
    with pytest.raises(ValueError, match="recompute: each option must be one of"):
        cell.recompute(memory=False)
    with pytest.raises(ValueError, match="by position or by name, not both"):
        cell.set_inputs(Tensor(X), x=Tensor(X))
