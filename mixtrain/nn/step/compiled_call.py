"""A cell's function as one compiled call, compiled anew when what it was compiled for has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain import context, engine
from mixtrain.common.changes import precision_version


class CompiledCall:
    """A function as one compiled call, compiled anew when some layer's precision, or how to compile, has changed.

    Args:
        function: Takes and returns tensors.
        choice: Returns how it is compiled for the formats it computes in now.
        compile_function: Takes the function and `choice`, returns what is called.
        prepare: Called before each call: puts in force what the function is to be compiled under.

    Attributes:
        choice: As given.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        choice: Callable[[], engine.JitChoice],
        compile_function: Callable[..., Any] = engine.compile_function,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._labels = engine.ClassLabels(function)
        self.choice = choice
        self._compile_function = compile_function
        self._prepare = prepare
        self._version: tuple[Any, ...] = ()
        self._compiled: Any = None

    def __call__(self, *inputs: Any) -> Any:
        return engine.call_with_branches(self._call, *inputs)

    def _call(self, *inputs: Any) -> Any:
        """Call, once the labels among the inputs were found to be class numbers."""
        compiled = self.compiled()
        # Where nothing is compiled, losses look for themselves.
        if context.graph_mode() and not engine.is_tracing():
            if self._labels.rules is None:
                engine.trace_for(compiled, *inputs)
            self._labels.check(inputs)
        return compiled(*inputs)

    def compiled(self) -> Any:
        """Return the compiled call for the precision and the settings that hold now."""
        self._prepare()
        version = (precision_version(), context.get_context("mode"), context.get_context("jit_level"))
        if self._version != version:
            self._labels.rules = None
            self._compiled = self._compile_function(self._labels, choice=self.choice())
            self._version = version
        return self._compiled

    def ignored_labels(self) -> set[int]:
        """Return the labels that losses inside were told to ignore."""
        return self._labels.ignored()

    def traces(self) -> int:
        """Return how often the present compiled call was traced."""
        return engine.trace_count(self.compiled())
