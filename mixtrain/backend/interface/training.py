"""Steps of training: gradients, undone writes, compiled loops, devices and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np

from mixtrain.backend.info import GroupInfo, JitChoice
from mixtrain.backend.share import Written
from mixtrain.typing import Tensor, Tree

Row = tuple[Any, ...]
# How many steps a compiled call runs best.
GROUPS: GroupInfo

def value_and_gradient(
    function: Callable[..., tuple[Tensor, Tree]], variables: Sequence[keras.Variable], tensors: Sequence[Tensor] = (),
    factor: Tensor | None = None,
) -> tuple[Tensor, Tree, list[Tensor]]:
    """Run `function` and differentiate its first result.

    Args:
        function: Takes `tensors` and returns ``(value, auxiliary)``; `value` is the tensor to differentiate.
        variables: Variables that it reads.
        tensors: Arguments of `function`.
        factor: Factor of the gradients, the seed of the backward pass: a scalar tensor; None for 1.

    Returns:
        ``(value, auxiliary, gradients)``, of the variables, then of the tensors; a gradient is None where `value` does
        not depend on it, and may be sparse where the backend has that.
    """

def tapped_gradients(
    function: Callable[[Callable[[Tensor], Tensor]], tuple[Tensor, Tree]], variables: Sequence[keras.Variable],
    factor: Tensor | float,
) -> tuple[Tensor, Tree, list[Tensor]]:
    """Run `function` and differentiate its first result times a factor, with respect to tensors inside it too.

    Args:
        function: Takes `tap` and returns ``(value, auxiliary)``. `tap` takes a floating-point tensor and returns the
            tensor to use in its place. The function may run more than once.
        variables: Variables that it reads.
        factor: A scalar tensor.

    Returns:
        As `value_and_gradient`: the gradients of the variables, then those of the tapped tensors in their order.
    """

def with_backward_hook(
    values: Sequence[Tensor], hook: Callable[[tuple[Tensor, ...]], Sequence[Tensor | None]]
) -> tuple[Tensor, ...]:
    """Return tensors unchanged, with a hook that transforms their gradients.

    Args:
        values: Floating-point tensors.
        hook: Takes the tuple of their gradients, zeros where nothing depends on a tensor, and returns the gradients to
            use. In eager code they have values.
    """

def with_backward_rule(
    values: Sequence[Tensor], outputs: Sequence[Tensor],
    rule: Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]],
) -> tuple[Tensor, ...]:
    """Return tensors that were computed, with another function for the gradients of what they depend on.

    Args:
        values: Floating-point tensors that the outputs were computed from.
        outputs: The computed floating-point tensors, through which no gradient passes.
        rule: Takes the values, the outputs and the outputs' gradients, and returns the values' gradients.
    """

def is_sparse(gradient: Any) -> bool:
    """Whether a gradient is sparse: values and the indices of their rows."""

def densified(gradient: Any) -> Any:
    """Return a gradient as a dense tensor."""

def map_values(function: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
    """Apply `function`, which must keep zeros and shapes, to a gradient's values, dense or sparse."""

def all_finite(gradients: Sequence[Tensor | None]) -> Tensor:
    """Whether every value of every gradient is finite, a scalar bool tensor; None entries are ignored."""

def non_finite_counts(gradients: Sequence[Tensor | None], all_finite: Tensor) -> Tensor:
    """Count the non-finite values of each gradient, int32 (n,); 0 for None entries.

    Args:
        gradients: The gradients.
        all_finite: Whether all are finite, a scalar bool tensor: if so, a CPU skips the count.
    """

def global_norm(gradients: Sequence[Tensor | None]) -> Tensor:
    """Compute the L2 norm of all gradients as one vector, a float32 scalar; None entries are ignored.

    It is infinite where the sum of squares overflows float32, even if every value is finite.
    """

def finite_and_norm(gradients: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return whether every value of every gradient is finite, a scalar bool tensor, and their `global_norm`."""

class Rollback:
    """Runs a function and undoes its variable writes on request.

    In a compiled function, the written variables are detected.

    Args:
        likely: Returns the variables that the function is likely to write; in eager mode only these can be undone.

    Example:
        >>> from mixtrain import backend
        >>> variable = keras.Variable(1.0)
        >>> _, undo = backend.Rollback(lambda: [variable]).run(lambda: variable.assign(2.0))
        >>> undo()
        >>> float(variable)
        1.0
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None: ...

    def run(self, function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        """Run a function; return its result, and a function that restores the variables that it wrote.

        Raises:
            TraceAgain: In a graph of TensorFlow: the function must be retraced.
        """

def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Callable[[], keras.Variable], *, own: str,
    likely: Callable[[], Iterable[keras.Variable]], on_skip: Callable[[], None], noted: keras.Variable,
) -> Callable[..., Any]:
    """Return a train step that restores what it wrote if its optimizer skipped the step.

    Args:
        model: The compiled model.
        train_step: Its train step, from ``data`` to ``logs``; on JAX from ``(state, data)`` to ``(logs, state)``.
        skipped: Returns the variable of the model's optimizer whose last element counts the skipped steps.
        own: The name scope of the optimizer's update, which itself writes nothing in a skipped step.
        likely: Returns the variables that a step may write; in eager mode only these are restored.
        on_skip: Called in a skipped step before its writes are undone; reads metrics, writes `noted`.
        noted: A variable of the model's optimizer.
    """

def with_values(
    function: Callable[[], Any], variables: Sequence[keras.Variable], values: Sequence[Tensor]
) -> list[Any]:
    """Run a function that reads and writes variables with given values of them; return their values after it.

    Raises:
        ValueError: The backend writes variables in place, as TensorFlow does; it refuses as Keras does.
    """

class Stacked(Sequence[Row]):
    """Elements of one spec, kept as stacked columns; a single element is sliced out on access.

    Args:
        columns: The columns, in the structure of an element, each with one row per element.
    """

    def __init__(self, columns: Any) -> None: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> Any: ...

class DevicePut:
    """Copies elements to the device, one at a time."""

    @property
    def ahead(self) -> bool:
        """Whether to copy an element before the previous step: a device with its own memory overlaps both."""

    def __call__(self, columns: tuple[np.ndarray, ...]) -> Row:
        """Copy an element whose arrays are not written any more."""

    def lend(self, columns: tuple[np.ndarray, ...]) -> Row:
        """Copy an element whose arrays may be written again once `take_back` has returned."""

    def take_back(self) -> None:
        """Wait until lent arrays are not read any more."""

class CompiledSteps:
    """A compiled training step that can be called in three ways.

    Args:
        function: Takes the columns of a batch, tensors, and returns a tuple of tensors of fixed shapes; it writes
            variables by `assign`.
        choice: How the step is compiled.

    Attributes:
        sizes: The number of rows of each batch of the last call of `run_stream`, int (n,); None where only the function
            knows, because it may be compiled for batches of any size.

    Example:
        >>> from mixtrain import backend
        >>> steps = backend.CompiledSteps(lambda x: (2 * x,), choice=backend.JitChoice(False, "an example"))
        >>> (rows,), _ = steps.run_batches([(backend.to_tensor([x]),) for x in (1.0, 2.0, 3.0)])
        >>> [backend.to_numpy(values).ravel().tolist() for values in (*steps.run(backend.to_tensor([4.0])), rows)]
        [[8.0], [2.0, 4.0, 6.0]]
    """

    sizes: Any

    def __init__(self, function: Callable[..., Row], *, choice: JitChoice) -> None: ...

    def run(self, *batch: Tree) -> Row:
        """Run the step on a batch; return its results.

        Raises:
            RefusedBatch: The batch has no rows, or a label that is not a class number; nothing has run.
        """

    def run_stream(self, iterator: Any, count: int) -> Row:
        """Run `count` steps on batches read from an iterator of the backend.

        Returns:
            The results of the steps, stacked on a new first axis of length `count`.

        Raises:
            RefusedBatch: A batch has no rows, or a label that is not a class number; the steps before it have run.
        """

    def run_stream_until(self, iterator: Any, count: int, last: Callable[[Row], Tensor]) -> tuple[Row, Row]:
        """Run steps as `run_stream` does, up to and including the first one that is the last.

        Args:
            iterator: The backend's iterator.
            count: The maximum number of steps.
            last: Takes the results of a step and returns whether it is the last, a scalar bool tensor. Every call must
                pass the same function.

        Returns:
            The results of the steps that ran, stacked; and the batch of the last of them.

        Raises:
            RefusedBatch: As `run_stream`.
        """

    def run_batches(
        self, batches: Sequence[Row], last: Callable[[Row], Tensor] | None = None
    ) -> tuple[Row, Callable[[], None]]:
        """Run a step on each of several batches.

        Args:
            batches: Batches of the same structure, shapes and dtypes; at least one.
            last: Whether a step is the last one to run, as for `run_stream_until`.

        Returns:
            The results of the steps that ran, stacked on a new first axis; and a function that restores all variables.

        Raises:
            RefusedBatch: The batch has no rows, or a label that is not a class number; nothing has run.
            Exception: Raised by a step; all variables are restored.
        """

    def traces(self) -> int:
        """Return how often the step was traced for batches of one spec."""

def find_devices(devices: int | Sequence[Any] | None) -> list[Any]:
    """Return the given devices, the first `devices` ones of this process, or all of them.

    Args:
        devices: Names of logical devices or, on JAX, devices; a number of them; or None.

    Raises:
        TypeError: One is not a device or its name.
        ValueError: There are fewer, or `devices` is empty or has duplicates.
    """

def devices_in_force() -> list[Any] | None:
    """Return the devices of the user's `tf.distribute` strategy or `keras.distribution.DataParallel`; None without one.

    Raises:
        ValueError: The strategy does not mirror its variables on the devices of this process.
    """

class Replicas:
    """Devices that run replicas of one part of a training step.

    Args:
        devices: What `find_devices` returned.
        likely: Returns the variables that the part is likely to write, for a backend that does not detect them.
        whole: Whether one of them runs the part on all rows, since it computes statistics of the whole batch.

    Attributes:
        count: The number of replicas.
    """

    def __init__(
        self, devices: Sequence[Any], likely: Callable[[], Iterable[keras.Variable]], whole: bool = False
    ) -> None: ...

    def jit_choice(self, choice: JitChoice) -> JitChoice:
        """Return how a step of these replicas is compiled, given the choice for a single device."""

    def run(
        self, part: Callable[..., tuple[list[Tensor], Tree]], columns: Sequence[Tensor], largest: Sequence[int] = ()
    ) -> tuple[list[Tensor], Tree]:
        """Run a part of a step on each device, on its rows of the batch.

        Where the number of rows is not divisible by the number of devices, one device computes all rows, or each does
        and the results are averaged. In PYNATIVE_MODE the part runs once, on all rows.

        Args:
            part: Takes a `Share` and its columns; returns ``(totals, others)``. It may read and write variables.
            columns: The columns of the batch.
            largest: The indexes of `totals` whose largest value over the replicas is taken instead of the sum.

        Returns:
            The sum of `totals` over the replicas, None where they are None; and `others`, of which tensors with one
            entry per row are concatenated, other floats averaged, and everything else is that of the first replica.
            Writes to variables are merged: see `share.merge_of`.

        Raises:
            ValueError: A strategy of `tf.distribute` is in force.
            TraceAgain: The calling function must be retraced.
        """

def join_processes() -> tuple[int, int]:
    """Connect to the other processes, if the environment or the user has configured some.

    Returns:
        ``(rank, size)``; ``(0, 1)`` without others.

    Raises:
        RuntimeError: The backend has already started.
        ValueError: The environment does not say which processes there are and which this is, or this process has more
            GPUs than the backend lets it use.
    """

def leave_processes() -> None:
    """End the communication with other processes."""

def naming_lost_process(where: str) -> AbstractContextManager[None]:
    """Raise the backend's error after another process has ended as one that names that process, if it is known.

    Raises:
        RuntimeError: Another process has ended while it was needed.
    """

def all_reduce(values: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
    """Reduce each of the tensors over all processes.

    Args:
        values: Tensors of the same shapes and dtypes in each process.
        op: "sum", "max", "min" or "prod".
    """

def all_gather(value: Tensor) -> Tensor:
    """Concatenate the tensors of all processes along axis 0."""

def reduce_scatter(value: Tensor, op: str = "sum") -> Tensor:
    """Reduce a tensor over all processes and return this process's part along axis 0."""

def process_index() -> Tensor:
    """Return this process's rank, a scalar tensor."""

def process_jit(choice: JitChoice) -> JitChoice:
    """Return how a step with collectives is compiled, given the choice for a single process."""

class RecordedWrites:
    """Detects which variables a function writes.

    Args:
        likely: Returns the variables that the function is likely to write; in eager mode, all of them.
    """

    def __init__(self, likely: Callable[[], Iterable[keras.Variable]]) -> None: ...

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[Written]]:
        """Run a function; return its result and its writes.

        Raises:
            TraceAgain: In a graph of TensorFlow: the function must be retraced.
        """
