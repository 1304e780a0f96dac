"""Steps of training: gradients, undone writes, compiled loops, devices and processes."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import keras
import numpy as np

from mixtrain.backend.class_labels import ClassLabels
from mixtrain.backend.info import GroupInfo, JitChoice
from mixtrain.backend.share import Written
from mixtrain.backend.signatures import BackwardRule, Differentiable, Gradients, IsLast, Likely, Row, Variables
from mixtrain.backend.user_code import Operation
from mixtrain.typing import Tensor, Tree

# How many steps a compiled call runs best.
GROUPS: GroupInfo
# Whether Keras divides weights over the devices of a mesh.
SHARDS_WEIGHTS: bool

def value_and_gradient(
    function: Differentiable, variables: Variables, tensors: Sequence[Tensor] = (), factor: Tensor | None = None
) -> tuple[Tensor, Tree, list[Tensor]]:
    """Run a function of tensors, which reads variables, and differentiate its value times a scalar factor; None for 1.

    Returns: ``(value, auxiliary, gradients)``, of the variables, then of the tensors; a gradient is None where `value`
    does not depend on it, and may be sparse where the backend has that.
    """

def tapped_gradients(
    function: Differentiable, variables: Variables, factor: Tensor | float
) -> tuple[Tensor, Tree, list[Tensor]]:
    """Differentiate as `value_and_gradient` does, with respect to tensors inside the function instead of its arguments.

    `function`: Takes `tap`, which takes a floating-point tensor and returns the one to use in its place. It may run
    more than once. The gradients are those of the variables, then of the tapped tensors in their order.
    """

def run_operations(function: Callable[[], Tree], inside: types.CodeType) -> tuple[Tree, list[Operation]]:
    """Run a function operation by operation; return its results and the operations inside another that it calls.

    `function`: Returns a structure of tensors. `inside`: The code of the other function: operations count that have its
    frame on their stack, and lines of the user's code above that frame. Only operations with float outputs count.
    TensorFlow sees none inside compiled functions; on JAX the function is traced, and may not read values.
    """

def finite_gradients(
    function: Callable[[], Tensor], factor: Tensor | float, inside: types.CodeType
) -> tuple[list[Operation], Tensor]:
    """Run a function and its backward pass; return whether the gradients of its operations are finite.

    `function`: Returns a scalar. `factor`: The seed of the backward pass. `inside`: As of `run_operations`.

    Returns: The operations, and for each whether the gradients of its outputs are finite, and then those that it passes
    to its inputs: bool (n, 2). On TensorFlow what an operation passes to an input may be by way of earlier operations,
    which are among the operations then.
    """

def with_backward_hook(values: Sequence[Tensor], hook: Callable[[tuple[Tensor, ...]], Gradients]) -> tuple[Tensor, ...]:
    """Return floating-point tensors unchanged, with a hook that takes their gradients and returns those to use.

    The gradients are zeros where nothing depends on a tensor. In eager code they have values.
    """

def custom_gradient_count() -> int:
    """Return how often a gradient was replaced by a rule or hook that is lost where the backend maps a function."""

def with_backward_rule(values: Sequence[Tensor], outputs: Sequence[Tensor], rule: BackwardRule) -> tuple[Tensor, ...]:
    """Return tensors that were computed from values, with a rule for the gradients of the values.

    All are floating-point tensors. No other gradient passes through the outputs.
    """

def is_sparse(gradient: Any) -> bool:
    """Whether a gradient is sparse: values and the indices of their rows."""

def densified(gradient: Any) -> Any:
    """Return a gradient as a dense tensor."""

def map_values(function: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
    """Apply `function`, which must keep zeros and shapes, to a gradient's values, dense or sparse."""

def all_finite(gradients: Gradients) -> Tensor:
    """Whether every value of every gradient is finite, a scalar bool tensor; None entries are ignored."""

def non_finite_counts(gradients: Gradients, all_finite: Tensor) -> Tensor:
    """Count the non-finite values of each gradient, int32 (n,); 0 for None entries.

    A CPU counts nothing if all are finite.
    """

def check_gradients(
    gradients: Gradients, variables: Variables, *, finite: bool = True
) -> tuple[list[Tensor | None], Tensor, Tensor]:
    """Check the gradients of variables, in as few operations of the device as possible.

    Returns: The same gradients, to be used from here on; whether every value is finite, a scalar bool tensor, True
    without `finite`; and the L2 norm of all gradients as one vector, a float32 scalar, which is infinite where the sum
    of squares overflows float32, even if every value is finite. None entries are ignored.
    """

class Rollback:
    """Undoes the variable writes of some code on request.

    In a compiled function, the written variables are detected. In eager mode all variables of the process are kept in
    mind, which are searched for before the first run, and the `likely` ones, also those created after it.

    Example:
        >>> from mixtrain import backend
        >>> variable = keras.Variable(1.0)
        >>> with backend.Rollback(lambda: [variable]).recorded() as undo:
        ...     _ = variable.assign(2.0)
        >>> undo()
        >>> float(variable)
        1.0
    """

    def __init__(self, likely: Likely) -> None: ...

    def recorded(self) -> AbstractContextManager[Callable[[], None]]:
        """Yield a function that, called afterwards, restores the variables that the code inside wrote.

        Raises: TraceAgain in a graph of TensorFlow: the function must be retraced.
        """

def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Likely, *, own: str,
    kept: Likely, likely: Likely, on_skip: Callable[[], None], noted: keras.Variable,
) -> Callable[..., Any]:
    """Return a train step that restores what it wrote if its optimizer skipped the step.

    `model`: The compiled model. `train_step`: Its train step, from ``data`` to ``logs``; on JAX from ``(state, data)``
    to ``(logs, state)``. `skipped`: Returns the variables of the model's optimizers whose last elements count the
    skipped updates. `own`: The name scope of an optimizer's update, which itself writes nothing in a skipped step.
    `kept`: Returns the variables that such updates write, for eager execution. `on_skip`: Called in a skipped step
    before its writes are undone; reads metrics, writes `noted`, a variable of the optimizer.
    """

def with_values(function: Callable[[], Any], variables: Variables, values: Sequence[Tensor]) -> list[Any]:
    """Run a function that reads and writes variables with given values of them; return their values after it.

    Raises: ValueError if the backend writes variables in place, as TensorFlow does.
    """

class Stacked(Sequence[Row]):
    """Elements of one spec, kept as stacked columns; a single element is sliced out on access.

    `columns`: The columns, in the structure of an element, each with one row per element.
    """

    def __init__(self, columns: Any) -> None: ...

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

    `function`: Takes the columns of a batch, tensors, and returns a tuple of tensors of fixed shapes; it writes
    variables by `assign`. `labels`: The class labels in the batches, which a trace of the function notes.

    Example:
        >>> from mixtrain import backend
        >>> steps = backend.CompiledSteps(lambda x: (2 * x,), choice=backend.JitChoice(False, "an example"))
        >>> (rows,), _ = steps.run_batches([(backend.to_tensor([x]),) for x in (1.0, 2.0, 3.0)])
        >>> [backend.to_numpy(values).ravel().tolist() for values in (*steps.run(backend.to_tensor([4.0])), rows)]
        [[8.0], [2.0, 4.0, 6.0]]
    """

    # The number of rows of each batch of the last call of `run_stream`, int (n,); None where only the function knows,
    # because it may be compiled for batches of any size.
    sizes: Any

    def __init__(
        self, function: Callable[..., Row], *, choice: JitChoice, labels: ClassLabels | None = None
    ) -> None: ...

    def run(self, *batch: Tree) -> Row:
        """Run the step on a batch that `refuse_empty` accepts; return its results.

        Raises: RefusedBatch if a label is not a class number; nothing has run.
        """

    def run_stream(self, iterator: Any, count: int) -> Row:
        """Run `count` steps on batches of the backend's iterator; return their results, stacked on a new first axis.

        Raises: RefusedBatch if a batch has no rows, or a label that is not a class number; the steps before it have
        run.
        """

    def run_stream_until(self, iterator: Any, count: int, last: IsLast) -> tuple[Row, Row]:
        """Run at most `count` steps as `run_stream` does, up to and including the first one that is the last.

        Returns: The results of the steps that ran, stacked; and the batch of the last of them. Every call must pass the
        same `last`.
        """

    def run_batches(self, batches: Sequence[Row], last: IsLast | None = None) -> tuple[Row, Callable[[], None]]:
        """Run a step on each of one or more batches of one spec, up to and including the first one that is the last.

        Returns: The results of the steps that ran, stacked on a new first axis; and a function that restores all
        variables.

        Raises: RefusedBatch if the batch has no rows, or a label that is not a class number; nothing has run. What a
        step raises; all variables are restored.
        """

    def traces(self) -> int:
        """Return how often the step was traced for batches of one spec."""

def find_devices(
    devices: int | Sequence[Any] | None, where: str = "data_parallel", *, of_all_processes: bool = False
) -> list[Any]:
    """Return the given devices, the first `devices` ones of this process, or all of them.

    `devices`: Names of logical devices or, on JAX, devices; a number of them; or None. `where`: The caller, for errors.
    `of_all_processes`: Whether the devices of other processes count too, on JAX.

    Raises: TypeError if one is not a device or its name. ValueError if there are fewer, or `devices` is empty or has
    duplicates.
    """

def devices_in_force() -> Any:
    """Return the devices of the user's `tf.distribute` strategy or `keras.distribution.DataParallel`; None without one.

    Of a `keras.distribution.ModelParallel` it is the mesh, over which weights are sharded.

    Raises: ValueError if the strategy does not mirror its variables on the devices of this process.
    """

def in_several_processes(devices: Any) -> bool:
    """Whether the devices that `devices_in_force` returned are those of several processes."""

def reads_own_rows(devices: Any) -> bool:
    """Whether other processes read other rows of each batch, as the devices of this process have a part of them."""

def join_rows(batch: Tree, devices: Any) -> Tree:
    """Return the joint batch of the processes of some devices, given the rows that this process has read of it.

    `devices`: What `devices_in_force` returned. Every process must call it, with a batch of the same spec.
    """

def joined_sum(value: Tensor | float) -> Tensor | None:
    """Return the sum of a value over the replicas that join their statistics; None outside of such a step."""

class Replicas:
    """Devices that run replicas of one part of a training step.

    `devices`: What `find_devices` or `devices_in_force` returned; on a mesh replicas are along the axis of rows.
    `likely`: For a backend that does not detect which variables the part writes. `whole`: Whether one of them runs the
    part on all rows, since it computes statistics of the whole batch. `joined`: Whether batch statistics are those of
    the rows of all replicas: see `joined_sum`.
    """

    count: int  # The number of replicas.

    def __init__(self, devices: Any, likely: Likely, whole: bool = False, joined: bool = False) -> None: ...

    def jit_choice(self, choice: JitChoice) -> JitChoice:
        """Return how a step of these replicas is compiled, given the choice for a single device."""

    def run(
        self, part: Callable[..., tuple[list[Tensor], Tree]], columns: Sequence[Tensor],
        like: Sequence[keras.Variable | None], largest: Sequence[int] = (),
    ) -> tuple[list[Tensor], Tree]:
        """Run a part of a step on each device, on its rows of the batch.

        Where the number of rows is not divisible by the number of devices, one device computes all rows, or each does
        and the results are averaged. In PYNATIVE_MODE the part runs once, on all rows.

        `part`: Takes a `Share` and its columns; returns ``(totals, others)``. It may read and write variables. `like`:
        For each of `totals` the variable that it updates, or None. `largest`: The indexes of `totals` whose largest
        value over the replicas is taken instead of the sum.

        Returns: The sum of `totals` over the replicas, None where they are None; and `others`, of which tensors with
        one entry per row are concatenated, other floats averaged, and everything else is that of the first replica.
        Writes to variables are merged: see `share.merge_of`.

        Raises: ValueError if a strategy of `tf.distribute` is in force. TraceAgain if the calling function must be
        retraced.
        """

def join_processes() -> tuple[int, int]:
    """Connect to the other processes, if the environment or the user has configured some.

    Returns: ``(rank, size)``; ``(0, 1)`` without others.

    Raises: RuntimeError if the backend has already started. ValueError if the environment does not say which processes
    there are and which this is, or this process has more GPUs than the backend lets it use.
    """

def leave_processes() -> None:
    """End the communication with other processes."""

def naming_lost_process(where: str) -> AbstractContextManager[None]:
    """Raise the backend's error after another process has ended as one that names that process, if it is known.

    Raises: RuntimeError if another process has ended while it was needed.
    """

def all_reduce(values: Sequence[Tensor], op: str = "sum") -> list[Tensor]:
    """Reduce each of the tensors over all processes.

    `values`: Tensors of the same shapes and dtypes in each process. `op`: "sum", "max", "min" or "prod".
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
    """Detects which variables a function writes; in eager mode, those that `likely` returns."""

    def __init__(self, likely: Likely) -> None: ...

    def of(self, function: Callable[[], Any]) -> tuple[Any, list[Written]]:
        """Run a function; return its result and its writes.

        Raises: TraceAgain in a graph of TensorFlow: the function must be retraced.
        """
