"""A network's function as one compiled call, recompiled when what it was compiled for has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain import backend, boundary, context
from mixtrain.autocast.state import autocast_in_force
from mixtrain.common.referenced_layers import referenced_layers
from mixtrain.precision.formats import choose_step_jit
from mixtrain.trace_version import TraceState


class CompiledCall:
    """A function as one compiled call, recompiled when one of its layers, or how to compile, has changed.

    Changes of other networks come and go without a trace here. Which cells are in training is not looked at: a call
    is compiled for one mode, which its caller sets.

    Args:
        function: Takes and returns tensors; runs the network.
        network: The Cell or Keras layer that it runs.
        choice: Returns how it is compiled for the formats it computes in now; by default as the network asks for.
        compile_function: Takes the function and `choice`, returns what is called.
        prepare: Called before each call: puts in force what the function is to be compiled under.

    """

    def __init__(
        self,
        function: Callable[..., Any],
        network: Any,
        choice: Callable[[], backend.JitChoice] | None = None,
        *,
        compile_function: Callable[..., Any] = backend.compile_function,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._function = function
        self._labels = backend.ClassLabels(self._traced)
        self._network = network
        self._choose = choice
        self._compile_function = compile_function
        self._prepare = prepare
        self._settings: tuple[Any, ...] = ()
        self._state: TraceState | None = None
        self._compiled: Any = None

    def __call__(self, *inputs: Any) -> Any:
        results = self.run(*boundary.settled(inputs))
        return boundary.wrapped(results) if boundary.wants_tensors(inputs) else results

    def run(self, *inputs: Any) -> Any:
        """Call with backend tensors, and return what the function returns."""
        return backend.call_with_branches(self._call, *inputs)

    def _call(self, *inputs: Any) -> Any:
        """Call, once the labels among the inputs were found to be class numbers."""
        compiled = self.compiled()
        # A function that is being traced calls this one.
        self._state.note()  # type: ignore[union-attr]
        # Where nothing is compiled, losses look for themselves; and most functions were seen to have no labels.
        rules = self._labels.rules_of(inputs)
        if rules != () and context.graph_mode() and not backend.is_tracing():
            if rules is None:
                backend.trace_for(compiled, *inputs)
            self._labels.check(inputs)
        return compiled(*inputs)

    def _traced(self, *inputs: Any) -> Any:
        """Run the function; while it is traced, note the cells that it calls, some of which no attribute may name."""
        if self._state is None or not backend.is_tracing():
            return self._function(*inputs)
        with self._state.tracing():
            return self._function(*inputs)

    def compiled(self) -> Any:
        """Return the compiled call for the layers and the settings as they are now."""
        self._prepare()
        settings = context.get_context("mode"), context.get_context("jit_level"), autocast_in_force()
        if self._state is None or self._settings != settings or not self._state.holds():
            self._labels.forget()
            self._state = None
            self._compiled = self._compile_function(self._labels, choice=self.choice())
            self._settings, self._state = settings, TraceState(referenced_layers([self._network, self._function]))
        return self._compiled

    def choice(self) -> backend.JitChoice:
        """Return how the function is compiled for the formats that its network computes in now."""
        return choose_step_jit(self._network) if self._choose is None else self._choose()

    def ignored_labels(self) -> set[int]:
        """Return the labels that losses inside were told to ignore."""
        return self._labels.ignored()

    def traces(self) -> int:
        """Return how often the present compiled call was traced."""
        return backend.trace_count(self.compiled())
