"""`Deviations`: warns of layers whose outputs are far from those in float32, though nothing overflows."""

from __future__ import annotations

import functools
from typing import Final

from mixtrain import backend, boundary
from mixtrain.diagnostics.deviation import LayerError, Pass, deviating, layer_errors, run_pass
from mixtrain.diagnostics.float8_scales import float8_scales, misfits, scaled_layers
from mixtrain.train.networks import Networks
from mixtrain.train.run_context import RunContext
from mixtrain.train.watch import FIRST_ONLY, Watch
from mixtrain.typing import Batch

# Epochs between two looks: weights, and what they compute, change slowly.
EVERY_EPOCHS: Final = 10
# Where the layer alone is not enough, as its inputs are rounded.
_SEARCH: Final = "suggest_rules(model, dataset) finds the layers to keep in float32"


class Deviations(Watch):
    """Compares the first batch of a run, and of every tenth epoch after it, with a float32 pass, layer by layer.

    A layer is told of once. What is advised is tried on the batch.

    Args:
        networks: The networks of the Model.
    """

    def __init__(self, networks: Networks) -> None:
        super().__init__(networks)
        self._first_epoch: int | None = None
        self._paths: set[str] = set()
        # Whether the next epoch is looked at, as scales of float8 products were not known yet.
        self._soon = False

    def _low(self) -> bool:
        """Whether layers compute in half, or multiply in float8."""
        float8 = any(row.float8 is not None for row in self._networks.precision.plan.rows)
        return super()._low() or float8 or bool(scaled_layers(self._networks.examined))

    def on_train_begin(self, run_context: RunContext) -> None:
        """Start anew, with the first epoch."""
        self._first_epoch, self._paths = None, set()
        super().on_train_begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Sample the first step of the epoch if it is due."""
        arguments = run_context.original_args()
        first = self._first_epoch = self._first_epoch or arguments.cur_epoch_num
        if first < arguments.cur_epoch_num and (self._soon or (arguments.cur_epoch_num - first) % EVERY_EPOCHS == 0):
            self._soon = False
            self.sample_every = arguments.cur_step_num

    def on_train_sample(self, run_context: RunContext) -> None:
        """Compare the batch of the step in both precisions."""
        arguments = run_context.original_args()
        self.sample_every = FIRST_ONLY
        batch = boundary.to_backend_tensors(arguments.train_dataset_element)
        with self._networks.keeping_float32([""]):
            plain = self._pass(batch)
        result = self._pass(batch)
        # The first step knows no magnitudes yet, by which to scale: the second epoch is looked at instead.
        scaled = {scale.path: scale.history.any() for scale in float8_scales(scaled_layers(self._networks.examined))}
        unknown = {path for path, known in scaled.items() if not known}
        self._soon = bool(unknown)
        inputs = [(path, values) for path, values, _ in result.calls if path not in unknown]
        for path, fault in misfits(self._networks.examined, inputs).items():
            if path not in self._paths | unknown:
                self._paths.add(path)
                self.tell(f"{path}, step {arguments.cur_step_num}: {fault}.")
        for layer in self._new(result, plain):
            if layer.path in unknown:
                continue
            with self._networks.keeping_float32([layer.path]):
                kept = layer_errors(self._pass(batch), plain)
            cured = all(other.path != layer.path for other in deviating(kept))
            cure = "keep it in float32, to_float(mixtrain.float32)" if cured else _SEARCH
            self._paths.add(layer.path)
            self.tell(
                f"the outputs of {layer.path or 'the network itself'} are {layer.forward:.0%} off in half precision at "
                f"step {arguments.cur_step_num}, without an overflow: {cure}."
            )

    def _new(self, result: Pass, plain: Pass) -> list[LayerError]:
        return [layer for layer in deviating(layer_errors(result, plain)) if layer.path not in self._paths]

    def _pass(self, batch: Batch) -> Pass:
        networks = self._networks
        choice = networks.step.jit_choice()
        compiled = functools.partial(backend.compile_function, choice=choice)
        # XLA may keep in float32 what lies between operations that it fuses.
        fuses = choice.jit or backend.EAGER_COMPILES
        scale = networks.loss_scale
        return run_pass(networks.examined, networks.with_loss, batch, scale, compiled if fuses else None)
