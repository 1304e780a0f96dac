"""`CompiledCall`: a compiled function of a network, recompiled when the network or the settings change."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from mixtrain import backend, boundary, execution
from mixtrain.autocast.state import autocast_in_force
from mixtrain.network.referenced_layers import referenced_layers
from mixtrain.network.uncompiled import Reason, reason_of, step_reasons
from mixtrain.precision.dtypes import choose_step_jit
from mixtrain.trace_version import TraceState
from mixtrain.typing import Layer


class CompiledCall:
    """A compiled function, recompiled when one of its layers or the settings for compiling change.

    Changes of other networks retrace nothing here. The training mode of cells is not tracked: a call is compiled for
    one mode, which the caller sets. A function that cannot be compiled, as it reads values, runs uncompiled with a
    warning: MindSpore, which starts in PyNative mode, runs it.

    Args:
        function: Takes and returns tensors; runs the network.
        *layers: The Cells and Keras layers that `function` runs.
        choice: Returns how to compile for the current dtypes; None to decide by those of the layers.
        compile_function: Compiles a function; takes it and `choice`.
        prepare: Called before each call; sets what the function depends on while it is traced.

    Attributes: `labels`, the rules for class labels among the inputs.
    """

    def __init__(
        self, function: Callable[..., Any], *layers: Layer, choice: Callable[[], backend.JitChoice] | None = None,
        compile_function: Callable[..., Any] = backend.compile_function, prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._function = function
        self.labels = backend.ClassLabels()
        self._layers = layers
        self._choose = choice
        self._compile_function = compile_function
        self._prepare = prepare
        self._settings: tuple[Any, ...] = ()
        self._state: TraceState | None = None
        self._compiled: Any = None
        self._reasons: list[Reason] = []  # Noted by traces: why the function cannot be compiled.
        self._is_compilable = True

    def __call__(self, *inputs: Any) -> Any:
        results = self.run(*boundary.to_backend_tensors(inputs))
        return boundary.to_tensors(results) if boundary.wants_tensors(inputs) else results

    def run(self, *inputs: Any) -> Any:
        """Call the compiled function with backend tensors."""
        for attempt in self.attempts():
            with attempt:
                results = backend.call_with_branches(self._call, *inputs)
        return results

    def attempts(self) -> Iterator[contextlib.AbstractContextManager[None]]:
        """Yield a context for a call of the compiled function, and a second one if that shows it cannot be compiled.

        A context adds no frame to the call: tests/train/test_call_depth.py counts them.
        """
        was_compilable = self._is_compilable
        yield self._attempt()
        if was_compilable and not self._is_compilable:
            yield self._attempt()

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[None]:
        """Pass over the error of a function that cannot be compiled, which runs uncompiled from then on."""
        if not self._is_compilable:
            with execution.using(graph_mode=False):
                yield
            return
        try:
            yield
        except Exception as error:
            reason = self._reasons[0] if self._reasons else reason_of(error)
            if reason is None or not execution.current.graph_mode or backend.is_tracing():
                raise
            self._is_compilable = False
            problem, advice = reason
            warnings.warn(f"step: the network {problem}, so it runs uncompiled. {advice}", stacklevel=4)

    def _call(self, *inputs: Any) -> Any:
        """Check the labels among the inputs, and call the compiled function."""
        compiled = self.compiled()
        # An outer function that is being traced depends on the layers of this one too.
        self._state.note()  # type: ignore[union-attr]
        # Compiled code cannot raise on a label out of range, so labels are checked before. In eager mode losses check
        # by themselves. Rules are known once the function is traced; () means that it has no labels.
        rules = self.labels.rules_of(inputs)
        if rules != () and execution.current.graph_mode and not backend.is_tracing():
            if rules is None:
                backend.trace_for(compiled, *inputs)
            self.labels.check(inputs)
        return compiled(*inputs)

    def _traced(self, *inputs: Any) -> Any:
        """Run the function; while it is traced, record the cells that it calls, which no attribute need refer to."""
        if self._state is None or not backend.is_tracing():
            with self.labels.noting(inputs):
                return self._function(*inputs)
        token = step_reasons.set(self._reasons)
        try:
            with self.labels.noting(inputs), self._state.tracing():
                # A compiled function returns values: of a Parameter, that after the step. JAX accepts no variables.
                return boundary.to_current_values(self._function(*inputs))
        finally:
            step_reasons.reset(token)

    def compiled(self) -> Any:
        """Return the compiled function for the current layers and settings."""
        self._prepare()
        graph_mode = execution.current.graph_mode and self._is_compilable
        settings = graph_mode, execution.current.jit_level, autocast_in_force()
        if self._state is None or self._settings != settings or not self._state.is_valid():
            self.labels.forget()
            self._state = None
            with execution.using(graph_mode=graph_mode):
                self._compiled = self._compile_function(self._traced, choice=self.choice())
            self._settings, self._state = settings, TraceState(referenced_layers([*self._layers, self._function]))
        return self._compiled

    def choice(self) -> backend.JitChoice:
        """Return how to compile for the dtypes that the layers compute in now."""
        return choose_step_jit(*self._layers) if self._choose is None else self._choose()

    def traces(self) -> int:
        """Return the number of traces of the current compiled function."""
        return backend.trace_count(self.compiled())
