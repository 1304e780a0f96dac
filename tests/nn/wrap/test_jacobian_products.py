"""`Jvp` and `Vjp` compute what the reference does for each form of inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import Tensor, nn

X, Y, V = ([1.0, 2.0], [3.0, 5.0], [2.0, 4.0])


class Both(nn.Cell):
    """Two outputs of two inputs."""

    def construct(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return twice the first and the cube of the second."""
        return 2 * x, y**3


def numbers(values: Any) -> Any:
    """Return a Tensor, or a tuple of Tensors, as lists."""
    return [numbers(value) for value in values] if isinstance(values, tuple) else values.asnumpy().tolist()


def test_one_input_and_one_output() -> None:
    for product in (nn.Jvp, nn.Vjp):
        assert numbers(product(lambda x: x**3)(Tensor(X), Tensor(V))) == [[1, 8], [6, 48]]


def test_several_inputs_and_outputs() -> None:
    vectors = (Tensor(V), Tensor(X))
    for product in (nn.Jvp, nn.Vjp):
        outputs, products = product(Both())(Tensor(X), Tensor(Y), vectors)
        assert numbers(outputs) == [[2, 4], [27, 125]]
        assert numbers(products) == [[4, 8], [27, 150]]


@pytest.mark.parametrize("product", [nn.Jvp, nn.Vjp])
def test_what_cannot_be_differentiated_is_refused(product: Any) -> None:
    with pytest.raises(TypeError, match=f"{product.__name__}: fn must be a Cell or a function; got int 3"):
        product(3)
    with pytest.raises(TypeError, match="inputs must be Tensors; got int 1"):
        product(lambda x: x)(1, Tensor(np.float32(1)))


@pytest.mark.parametrize("product", [nn.Jvp, nn.Vjp])
def test_one_vector_is_none_of_several_and_several_are_no_one(product: type[nn.Cell]) -> None:
    cube, vector = product(lambda x: x**3), Tensor(V)
    for vectors in ((vector,), (vector, vector)):
        with pytest.raises(TypeError, match=f"{product.__name__}: v must be a tuple of vectors for several"):
            cube(Tensor(X), vectors)
    with pytest.raises(TypeError, match=f"{product.__name__}: v must be a tuple of vectors for several"):
        product(Both())(Tensor(X), Tensor(Y), vector)
