"""One compiled call of a train network: a batch (host feed) or many (sink feed), with every step's results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras

from mixtrain import context, engine
from mixtrain.common.changes import precision_version
from mixtrain.nn.step.train_cell import TrainOneStepCell
from mixtrain.precision.formats import choose_step_jit
from mixtrain.train.records import StepRecords


class CompiledCall:
    """A cell as one compiled call, compiled anew when some layer's precision, or how to compile, has changed.

    Args:
        network: A Cell.
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self._version: tuple[Any, ...] = ()
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *inputs: Any) -> Any:
        version = (precision_version(), context.get_context("mode"), context.get_context("jit_level"))
        if self._compiled is None or self._version != version:
            self._version = version
            self._compiled = self._compile()
        return engine.call_with_branches(self._compiled, *inputs)

    def _compile(self) -> Callable[..., Any]:
        return engine.compile_function(self.network, choice=self.choice())

    def choice(self) -> engine.JitChoice:
        """Return how the cell is compiled for the formats it computes in."""
        return choose_step_jit(self.network)

    def traces(self) -> int:
        """Return how often the present compiled call was traced."""
        return 0 if self._compiled is None else engine.trace_count(self._compiled)


class _CompiledLoop(CompiledCall):
    """A cell run on many batches of an engine iterator in one compiled call."""

    structure: Any = None

    def _compile(self) -> Callable[..., Any]:
        return engine.compile_loop(self._flat, choice=self.choice())

    def _flat(self, *batch: Any) -> tuple[Any, ...]:
        outputs = self.network(*batch)
        self.structure = outputs
        return tuple(keras.tree.flatten(outputs))


class Stepper:
    """Runs a train network, compiled once for each way of feeding it.

    Args:
        network: Takes the columns of a batch, returns its outputs; a Cell.
        scaled: Whether outputs that are three mean ``(loss, overflow, loss_scale)``.

    Attributes:
        outputs: The network's outputs at the last step run.
    """

    def __init__(self, network: Any, *, scaled: bool) -> None:
        self._network = network
        self._scaled = scaled
        self._host = CompiledCall(network)
        self._sink = _CompiledLoop(network)
        self.outputs: Any = None

    def step(self, batch: tuple[Any, ...]) -> StepRecords:
        """Train on one batch."""
        with engine.naming_layers("Model"):
            self.outputs = self._host(*batch)
        loss, overflow, scale = self._named(self.outputs)
        return StepRecords([loss], None if overflow is None else [overflow], None if scale is None else [scale])

    def loop(self, iterator: Any, count: int) -> StepRecords:
        """Train on `count` batches of an engine iterator in one call."""
        with engine.naming_layers("Model"), self._state_kept():
            rows = self._sink(iterator, count)
        self.outputs = keras.tree.pack_sequence_as(self._sink.structure, [row[-1] for row in rows])
        return StepRecords(*self._named(keras.tree.pack_sequence_as(self._sink.structure, list(rows))))

    @contextlib.contextmanager
    def _state_kept(self) -> Iterator[None]:
        """Give the network's state (moving statistics) its value back where a call fails.

        In a graph a layer may write its statistics before a later operation of that step fails; weights are written
        after everything else.
        """
        variables = self._network.network_state() if isinstance(self._network, TrainOneStepCell) else []
        values = [engine.snapshot(variable) for variable in variables]
        try:
            yield
        except Exception:
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            raise

    def _named(self, outputs: Any) -> tuple[Any, Any, Any]:
        if self._scaled and isinstance(outputs, (tuple, list)) and len(outputs) == 3:
            return outputs  # type: ignore[return-value]
        return keras.tree.flatten(outputs)[0], None, None

    def traces(self) -> int:
        """Return how often a call was traced, both ways together."""
        return self._host.traces() + self._sink.traces()
