"""`ForwardValueAndGrad` and `WithGradCell`: cells that return the gradients of a network."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.parameter import ParameterTuple
from mixtrain.nn.wrap.loss_cell import WithLossCell
from mixtrain.ops.gradient import check_function, differentiate, like_weights, split_sens, tensor_positions, weights_of
from mixtrain.typing import LossFn, Network, Tree


class ForwardValueAndGrad(Cell):
    """A cell whose call returns ``(outputs of the network, gradients)``.

    Args:
        network: A Cell or a function.
        weights: With `get_by_list`, the Parameter or list of Parameters to differentiate with respect to.
        get_all: Whether to differentiate with respect to all tensors among the inputs, rather than the first.
        get_by_list: Whether to differentiate with respect to the weights: instead of the first input, or with
            `get_all` in addition to all inputs.
        sens_param: Whether calls take one more argument, last: the gradient of the output, of its shape.

    Raises:
        TypeError: `network` is neither, `get_by_list` goes without `weights`, or another argument has the wrong type.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
        >>> step = ForwardValueAndGrad(net, weights=net.trainable_params(), get_by_list=True)
        >>> output, (gradient,) = step(mixtrain.Tensor([[3.0, 4.0]]))
        >>> output.numpy().tolist(), gradient.numpy().tolist()
        ([[7.0]], [[3.0, 4.0]])
    """

    def __init__(
        self,
        network: Network,
        weights: Any = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        where = self.cls_name
        check_function(where, network)
        self.network = network
        self.get_all = checks.boolean(where, "get_all", get_all)
        self.get_by_list = checks.boolean(where, "get_by_list", get_by_list)
        self.sens_param = checks.boolean(where, "sens_param", sens_param)
        if get_by_list and weights is None:
            raise checks.fail_type(
                where, "weights must be Parameters with get_by_list=True", weights, "weights=net.trainable_params()"
            )
        listed = weights_of(where, weights)
        object.__setattr__(self, "weights", ParameterTuple(weights) if isinstance(weights, (list, tuple)) else weights)
        self._weights = listed if get_by_list else None

    def construct(self, *inputs: Any, **named: Any) -> tuple[Tree, Tree]:
        """Return the outputs of the network and their gradients."""
        inputs, named, sens = split_sens(self.cls_name, inputs, named, self.sens_param)
        positions = tensor_positions((*inputs, *named.values())) if self.get_all else () if self.get_by_list else (0,)
        outputs, of_inputs, gradients = differentiate(
            self.cls_name, self.network, inputs, named, positions, self._weights, sens
        )
        of_weights = like_weights(self.weights, gradients)
        if self.get_all:
            return outputs, (of_inputs, of_weights) if self.get_by_list else of_inputs
        return outputs, of_weights if self.get_by_list else of_inputs[0]


class WithGradCell(Cell):
    """A cell whose call returns the gradients of the weights of a network.

    Args:
        network: The Cell to differentiate with respect to its weights.
        loss_fn: The loss of the output and the last input; None if the network computes the loss.
        sens: The gradient of the loss, a tensor of its shape or a number; None for ones.

    Raises:
        TypeError: `network` is not a Cell, or `loss_fn` cannot be called.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
        >>> (gradient,) = WithGradCell(net, nn.MAELoss())(mixtrain.Tensor([[3.0, 4.0]]), mixtrain.Tensor([[1.0]]))
        >>> gradient.asnumpy().tolist()
        [[3.0, 4.0]]
    """

    def __init__(self, network: Network, loss_fn: LossFn | None = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        checks.instance(self.cls_name, "network", network, Cell, "network=net")
        self.network, self.loss_fn = network, loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        object.__setattr__(self, "_step", ForwardValueAndGrad(
            self.network_with_loss, self.weights, get_by_list=True, sens_param=sens is not None
        ))

    def construct(self, *inputs: Any) -> Tree:
        """Return the gradients of the weights, in their order."""
        sens = () if self.sens is None else (self.sens,)
        return self._step(*inputs, *sens)[1]
