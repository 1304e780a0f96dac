"""`PipelineCell` and `MicroBatchInterleaved`: a network that computes a batch in parts, and adds the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mixtrain import checks, ops
from mixtrain.boundary import is_any_tensor
from mixtrain.cell.cell import Cell
from mixtrain.lazy_names import serve_names
from mixtrain.typing import Network, Tensor

__all__ = ["MicroBatchInterleaved", "Pipeline", "PipelineCell"]


class PipelineCell(Cell):
    """The sum of the outputs of a network for each of `micro_size` equal parts of the batch.

    Activations of all parts are kept for the gradients; to save memory, use ``Model(..., accumulate_steps=n)``.

    Args:
        network: A Cell that returns a tensor, as `WithLossCell`.
        micro_size: Number of parts, at least 1, which divides the batch.
        stage_config, segment_config: Which device computes which cells; on one device without effect.

    Raises:
        TypeError: An argument, or an input of a call, has the wrong type.
        ValueError: `micro_size` is under 1, or does not divide the batch.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = nn.WithLossCell(nn.Identity(), nn.MSELoss())
        >>> x, y = mixtrain.Tensor([[1.0], [3.0]]), mixtrain.Tensor([[0.0], [0.0]])
        >>> float(net(x, y)), float(PipelineCell(net, 2)(x, y))
        (5.0, 10.0)
    """

    def __init__(
        self, network: Cell, micro_size: int, stage_config: Mapping[str, int] | None = None,
        segment_config: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(auto_prefix=False)
        where = type(self).__name__
        checks.instance(where, "network", network, Cell, "nn.WithLossCell(network, loss_fn)")
        self.network = network
        self.micro_size = checks.integer(where, "micro_size", micro_size, at_least=1)

    def construct(self, *inputs: Tensor) -> Tensor:
        """Return the sum of the network's outputs for the parts of `inputs`, whose first axis is that of the batch."""
        total, *others = _outputs(self, self.network, inputs, self.micro_size)
        for output in others:
            total = ops.add(total, output)
        return total


class Pipeline(PipelineCell):
    """`PipelineCell` by its name in `parallel.nn`. Example: ``Pipeline(net_with_loss, 4)``."""


class MicroBatchInterleaved(Cell):
    """The sum of the outputs of a network for each of `interleave_num` equal parts of the batch.

    Args:
        network: A network that returns a tensor, as `WithLossCell`.
        interleave_num: Number of parts, at least 1, which divides the batch.

    Raises:
        TypeError: `interleave_num` is not an int, or an input of a call is not a tensor.
        ValueError: `interleave_num` is under 1, or does not divide the batch.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> MicroBatchInterleaved(nn.Identity(), 2)(mixtrain.Tensor([1.0, 2.0, 3.0, 4.0])).asnumpy().tolist()
        [4.0, 6.0]
    """

    def __init__(self, network: Network, interleave_num: int = 2) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.interleave_num = checks.integer(type(self).__name__, "interleave_num", interleave_num, at_least=1)

    def construct(self, *inputs: Tensor) -> Tensor:
        """Return the sum of the network's outputs for the parts of `inputs`, whose first axis is that of the batch."""
        total: Any = 0.0
        for output in _outputs(self, self.network, inputs, self.interleave_num):
            total = ops.add(total, output)
        return total


def _outputs(cell: Cell, network: Any, inputs: tuple[Tensor, ...], count: int) -> Iterator[Tensor]:
    where = type(cell).__name__
    for value in inputs:
        if not is_any_tensor(value):
            raise checks.fail_type(where, "each input must be a tensor", value, "Tensor(x)")
        if value.shape[0] % count:
            raise checks.fail_value(
                where, f"the first axis must be divisible by {count}", value.shape[0], "batch(n, drop_remainder=True)"
            )
    sizes = [value.shape[0] // count for value in inputs]
    for part in range(count):
        output = network(*(
            value[part * size : (part + 1) * size] for value, size in zip(inputs, sizes, strict=True)
        ))
        if not is_any_tensor(output):
            raise checks.fail_type(where, "network must return a tensor", output, "nn.WithLossCell(network, loss_fn)")
        yield output


serve_names(__name__)
