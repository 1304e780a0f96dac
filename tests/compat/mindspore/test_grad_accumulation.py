"""Train cells of public projects that accumulate gradients by `boost.GradientAccumulation`, compiled and not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, nn, ops
from mixtrain.boost import GradientAccumulation
from mixtrain.boost.grad_accumulation import gradient_accumulation_op, gradient_clear_op
from tests.backends import quick_every


class Accumulating(GradientAccumulation):
    """As written in a public project: clears in its own branch, and reads the rate in the other."""

    def construct(self, loss: Any, grads: Any) -> Any:
        loss = ops.depend(
            loss,
            self.hyper_map(
                ops.partial(gradient_accumulation_op, self._max_accumulation_step), self._grad_accumulation, grads
            ),
        )
        self._accumulation_step += 1
        if self._accumulation_step >= self._max_accumulation_step:
            loss = ops.depend(loss, self.optimizer(self._grad_accumulation))
            loss = ops.depend(loss, self.hyper_map(ops.partial(gradient_clear_op), self._grad_accumulation))
            self._accumulation_step = 0
        else:
            loss = ops.depend(loss, self.optimizer.get_lr())
        return loss


@quick_every(3)
@pytest.mark.parametrize("kind", [GradientAccumulation, Accumulating])
@pytest.mark.parametrize("compiled", [False, True])
def test_every_second_step_updates_by_the_mean(kind: type[GradientAccumulation], compiled: bool) -> None:
    w = Parameter(np.zeros(2, np.float32), name="w")
    cell = kind(2, nn.SGD([w], 1.0))
    step = mixtrain.jit(cell) if compiled else cell
    seen = []
    for gradient in (1.0, 3.0, 5.0, 7.0):
        loss = step(Tensor(0.5), (Tensor([gradient, 0.0]),))
        seen.append(w.asnumpy().tolist())
        assert float(loss) == 0.5
    assert seen == [[0, 0], [-2, 0], [-2, 0], [-8, 0]]


def test_other_names_of_boost_are_refused() -> None:
    from mixtrain.boost import AutoBoost

    with pytest.raises(NotImplementedError, match=r'mixtrain\.boost\.AutoBoost: boost changes .* amp_level="O2"'):
        AutoBoost()
