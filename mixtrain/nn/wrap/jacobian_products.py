"""`Jvp` and `Vjp`: cells that compute a network and its products with vectors."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.boundary import in_mode, to_backend_tensors, to_tensors
from mixtrain.cell.cell import Cell
from mixtrain.ops.derivatives import jvp, vjp
from mixtrain.ops.gradient import check_function
from mixtrain.typing import Tree


class Jvp(Cell):
    """Computes a network and its Jacobian-vector product: ``Jvp(net)(x, v)`` is ``(output, product)``.

    With several inputs the last argument is a tuple of vectors, one for each.

    Args:
        fn: A Cell or a function of tensors.

    Raises: TypeError if `fn` is neither, or the vectors do not fit.

    Example:
        >>> import mixtrain
        >>> _, product = Jvp(lambda x: x * x)(mixtrain.Tensor([3.0]), mixtrain.Tensor([2.0]))
        >>> product.asnumpy().tolist()
        [12.0]

    Source: MindSpore, `mindspore.nn.grad.Jvp`.
    """

    def __init__(self, fn: Any) -> None:
        super().__init__(auto_prefix=False)
        check_function(self.cls_name, fn)
        self.fn = fn

    def construct(self, *inputs: Any) -> tuple[Tree, ...]:
        """Return the outputs and the products."""
        with in_mode("tensors"):
            *arguments, vectors = to_tensors(inputs)
            return to_backend_tensors(self._product(arguments, vectors))  # type: ignore[no-any-return]

    def _product(self, inputs: list[Any], vectors: Any) -> tuple[Tree, ...]:
        self._check_vectors(vectors, "inputs", several=len(inputs) > 1)
        return jvp(self.fn, tuple(inputs), vectors)

    def _check_vectors(self, vectors: Any, kind: str, *, several: bool) -> None:
        if isinstance(vectors, (tuple, list)) != several:
            raise checks.fail_type(
                self.cls_name, f"v must be a tuple of vectors for several {kind}, and one vector for one", vectors,
                "(vx, vy)" if several else "v",
            )


class Vjp(Jvp):
    """Computes a network and its vector-Jacobian product: ``Vjp(net)(x, v)`` is ``(output, product)``.

    The last argument has the structure of the outputs.

    Args:
        fn: A Cell or a function of tensors.

    Raises: TypeError if `fn` is neither, or the vectors do not fit.

    Example: ``Vjp(net)(x, v)``.

    Source: MindSpore, `mindspore.nn.grad.Vjp`.
    """

    def _product(self, inputs: list[Any], vectors: Any) -> tuple[Tree, ...]:
        outputs, product = vjp(self.fn, *inputs)
        self._check_vectors(vectors, "outputs", several=isinstance(outputs, (tuple, list)))
        products = product(*vectors) if isinstance(vectors, tuple) else product(vectors)
        return outputs, products if len(inputs) > 1 else products[0]
