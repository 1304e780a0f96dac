"""`prepare`: apply a precision plan and loss scaling to a Keras model, trained by Keras's own `fit`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras.optimizers import LossScaleOptimizer

from mixtrain import backend, checks
from mixtrain.dtype import DType
from mixtrain.keras.epoch_results import EpochResults
from mixtrain.keras.optimizer import UPDATE_SCOPE, WHERE, PreparedOptimizer
from mixtrain.loss_scale.manager import DynamicLossScaleManager
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.marks import OWN_POLICY, RESTORE_TRAIN_STEP
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.walk import all_built
from mixtrain.precision.apply import AppliedPlan, applied_plan, put_in_force
from mixtrain.precision.float8_layers import refuse_delayed
from mixtrain.precision.levels import AmpLevel
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planned import planned
from mixtrain.seed import stream_states
from mixtrain.step.scaling_choice import (
    LEVEL_DEFAULT,
    check_manager,
    default_manager,
    unwrap_loss_scale_optimizer,
    warn_unscaled,
)


def prepare(
    model: keras.Model, optimizer: keras.optimizers.Optimizer | str, amp_level: AmpLevel = "O0", *,
    loss_scale_manager: Any = LEVEL_DEFAULT, keep_batchnorm_fp32: bool | None = None,
    cast_model_type: DType | str | None = None,
) -> PreparedOptimizer:
    """Apply a precision plan to a Keras model, and return the optimizer for `model.compile`.

    The rest is Keras's: `compile`, `fit`, `evaluate`, callbacks, saving. A step whose gradients overflow leaves
    weights, slots, iterations, moving statistics, random states of layers and metrics unchanged.

    Args:
        model: A model whose layers are built.
        optimizer: A Keras optimizer or its name, for this model only.
        amp_level: "O0", "O1", "O2", "O3" or "auto".
        loss_scale_manager: A `LossScaleManager`, or None for no loss scaling. By default, if `Model` would scale
            the loss, a dynamic one with the initial scale of Keras's `LossScaleOptimizer`.
        keep_batchnorm_fp32: Whether normalization is kept in float32; None for the level's rule.
        cast_model_type: float16, bfloat16 or "float8" (see `Model`); None for float16.

    Returns:
        The optimizer. Its `loss_scale_manager` has the current scale, `skipped_steps` the number of steps that
        overflowed, and `plan` the precision plan.

    Raises:
        TypeError: `model`, `optimizer` or `loss_scale_manager` has the wrong type.
        ValueError: The model is not built; an unknown level or dtype; a manager whose scale is updated from Python, or
            that the optimizer's `loss_scale_factor` contradicts; an optimizer that scales the loss itself.

    Example:
        >>> import keras, mixtrain.keras
        >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="head")])
        >>> optimizer = mixtrain.keras.prepare(model, keras.optimizers.SGD(0.1), amp_level="O2")
        >>> model.compile(optimizer, "mse")
        >>> optimizer.loss_scale_manager.get_loss_scale(), optimizer.plan.row("head").compute_dtype
        (32768.0, mixtrain.float16)
    """
    _check_model(model)
    if isinstance(optimizer, str):
        optimizer = keras.optimizers.get(optimizer)
    checks.instance(
        WHERE, "optimizer", optimizer, keras.optimizers.Optimizer,
        "keras.optimizers.Adam(0.001); optimizers of mixtrain.nn train with mixtrain.Model",
    )
    precision = {
        "amp_level": amp_level, "keep_batchnorm_fp32": keep_batchnorm_fp32, "cast_model_type": _name(cast_model_type)
    }
    prepared = _prepared(WHERE, model, optimizer, precision, loss_scale_manager)
    _install(model, [prepared])
    return prepared


def prepare_compiled(
    where: str, model: keras.Model, precision: dict[str, Any], loss_scale_manager: Any = LEVEL_DEFAULT
) -> tuple[list[PreparedOptimizer], Callable[[], None]]:
    """Prepare a compiled model with the optimizers that it holds, each in its place; return those and what undoes it.

    `where`: The caller, for errors. `model`: A model that was compiled, with the layers built that it trains.
    `precision`: As of `PreparedOptimizer`. `loss_scale_manager`: As of `prepare`; several optimizers get one each, and
    each skips its own updates.

    Raises: ValueError if a manager is passed for several optimizers; else as `prepare`.
    """
    kind = keras.optimizers.Optimizer
    held = {name: _as_passed(model, value) for name, value in vars(model).items() if isinstance(value, kind)}
    if len(held) > 1 and loss_scale_manager not in (LEVEL_DEFAULT, None):
        raise checks.fail_value(
            where, f"a manager scales the loss of one optimizer, and {type(model).__name__} has "
            f"{checks.join_names(held)}", loss_scale_manager, "it without a manager, so that each gets its own",
        )
    prepared = {}
    for name, optimizer in held.items():
        own = optimizer.inner_optimizer if isinstance(optimizer, PreparedOptimizer) else optimizer
        own, manager = unwrap_loss_scale_optimizer(own, loss_scale_manager)
        result = _prepared(where, model, own, precision, manager)
        # Others of which nothing is scaled stay the user's, who may look for their variables among the model's.
        if result.scales or optimizer is model.optimizer:
            prepared[name] = result
    for name, optimizer in prepared.items():
        setattr(model, name, optimizer)
    _forget_compiled(model)
    restore_step = _install(model, list(prepared.values()))

    def undo() -> None:
        restore_step()
        for name, optimizer in prepared.items():
            if getattr(model, name, None) is optimizer:
                setattr(model, name, held[name])
        _forget_compiled(model)

    return list(prepared.values()), undo


def _as_passed(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Return an optimizer without the wrapper that Keras's `compile` puts around it for the policy of a plan in force.
    """
    own, now = OWN_POLICY.of(model), model.dtype_policy.name
    by_plan = own is not None and now != own.name and now == "mixed_float16"
    return optimizer.inner_optimizer if by_plan and type(optimizer) is LossScaleOptimizer else optimizer


def _prepared(
    where: str, model: keras.Model, optimizer: keras.optimizers.Optimizer, precision: dict[str, Any], manager: Any
) -> PreparedOptimizer:
    """Return a prepared optimizer with its manager, by default the level's."""
    # For copies of the model, as by `keras.models.clone_model`: Keras makes the optimizer again by its name.
    keras.saving.get_custom_objects().setdefault(PreparedOptimizer.__name__, PreparedOptimizer)
    plan, by_default = _planned(model, precision), manager is LEVEL_DEFAULT
    if by_default:
        manager = default_manager(plan, optimizer)
        if manager is None:
            warn_unscaled(where, plan, optimizer)
        else:
            manager = DynamicLossScaleManager(init_loss_scale=2**15)  # The initial scale of Keras's.
    check_manager(where, manager, optimizer)
    return PreparedOptimizer(optimizer, manager, precision, must_scale=not by_default)


def _forget_compiled(model: keras.Model) -> None:
    """Let Keras compile the steps of a model again, which hold its optimizer."""
    for name in ("train_function", "test_function", "predict_function"):
        setattr(model, name, None)


def load_model(filepath: Any, custom_objects: dict[str, Any] | None = None, **options: Any) -> keras.Model:
    """Load a model that was compiled with a prepared optimizer, and prepare it again.

    Args:
        filepath: A `.keras` file.
        custom_objects: Classes of the user by name.
        **options: Other arguments of `keras.models.load_model`.

    Returns:
        The compiled model: `fit` continues the training of the saved one.

    Raises:
        TypeError: The model was not compiled with a prepared optimizer.
    """
    known = {PreparedOptimizer.__name__: PreparedOptimizer, **(custom_objects or {})}
    model = keras.models.load_model(filepath, custom_objects=known, **options)
    if not isinstance(model.optimizer, PreparedOptimizer):
        raise checks.fail_type(
            "mixtrain.keras.load_model", "the model must be compiled with an optimizer of mixtrain.keras.prepare",
            model.optimizer, "keras.models.load_model(path)",
        )
    _install(model, [model.optimizer])
    return model


def _check_model(model: Any) -> None:
    checks.instance(
        WHERE, "model", model, keras.Model, "a keras.Model; mixtrain.nn.Cell networks train with mixtrain.Model"
    )
    # Layers that the call of a built network does not reach may stay unbuilt, as in Keras.
    if not (all_built(model) or (model.built and model.variables)):
        raise checks.fail_value(
            WHERE, "the layers must be built, so that they are known", f"{type(model).__name__} that is not",
            "keras.Input(...) as its first layer, or call it once on a batch",
        )


def _name(dtype: DType | str | None) -> str | None:
    """Return a dtype as stored in a configuration."""
    return dtype.name if isinstance(dtype, DType) else dtype


def _planned(model: keras.Model, precision: dict[str, Any]) -> PrecisionPlan:
    level, keep, half = (precision[name] for name in ("amp_level", "keep_batchnorm_fp32", "cast_model_type"))
    return refuse_delayed(WHERE, planned(WHERE, model, level, keep, half))


def _install(model: keras.Model, optimizers: Sequence[PreparedOptimizer]) -> Callable[[], None]:
    """Apply the plan of prepared optimizers to their model, and make its train step undo skipped steps.

    Returns: A function that restores the train step.
    """
    _enforce(model, optimizers)
    restore = RESTORE_TRAIN_STEP.of(model)
    if restore is not None:
        restore()
    scaling = [optimizer for optimizer in optimizers if optimizer.scales]
    results = EpochResults(model, scaling) if scaling else None

    def wrap(original: Forward) -> Forward:
        guarded = original
        if results is not None:
            guarded = results.during_step(backend.without_skipped_steps(
                model, original, lambda: [optimizer.counts() for optimizer in scaling], own=UPDATE_SCOPE,
                kept=lambda: _kept(optimizers), likely=lambda: _state(model, optimizers),
                on_skip=results.note_skipped, noted=scaling[0].skipped_loss,
            ))

        @functools.wraps(original)
        def train_step(*args: Any) -> Any:
            if all(model.optimizer is not optimizer for optimizer in optimizers):
                return original(*args)
            # Keras traces this function: the trace has the effect of a `to_float` since the last one.
            _enforce(model, optimizers)
            logs = guarded(*args)
            if len(scaling) == 1:
                scaling[0].check_applied()
            return logs

        return train_step

    restores = [interpose(model, wrap, method="train_step")]
    if results is not None:
        restores += results.install(model)

    def restore_all() -> None:
        for restore in reversed(restores):
            restore()
        RESTORE_TRAIN_STEP.remove(model)

    RESTORE_TRAIN_STEP.put(model, restore_all)
    return restore_all


def _kept(optimizers: Sequence[PreparedOptimizer]) -> list[keras.Variable]:
    """Return what the updates of optimizers write: of several, one may be skipped and another not."""
    weights = [weight for optimizer in optimizers if len(optimizers) > 1 for weight in optimizer.trained]
    return [*(variable for optimizer in optimizers for variable in optimizer.variables), *weights]


def _state(model: keras.Model, optimizers: Sequence[PreparedOptimizer]) -> list[keras.Variable]:
    """Return all variables that a model refers to, those of its optimizers left out, and the states of operations."""
    own = {id(variable) for optimizer in optimizers for variable in optimizer.variables}
    variables = [*referenced_variables([model]), *model.metrics_variables, *stream_states()]
    return [variable for variable in variables if id(variable) not in own]


def _enforce(model: keras.Model, optimizers: Sequence[PreparedOptimizer]) -> None:
    """Apply the model's plan if it is not in force; undo the previous one if the plan casts nothing."""
    plan, current = _planned(model, optimizers[0].precision), applied_plan(model)
    if current is not None and current.plan == plan:
        if not current.in_force:
            current.enforce()
    elif any(row.cast is not None for row in plan.rows):
        put_in_force(AppliedPlan(model, plan, lasting=False))
    elif current is not None:
        current.undo()
    for optimizer in optimizers:
        optimizer.bind(model, plan)
