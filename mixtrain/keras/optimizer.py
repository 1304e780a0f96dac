"""`PreparedOptimizer`: a Keras optimizer that scales the loss by a manager and skips steps that overflow."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.loss_scale.manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mixtrain.loss_scale.rule import Count
from mixtrain.loss_scale.scaling import scaled, unscaled_gradients
from mixtrain.loss_scale.step_scale import StepScale, scale_of
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.step.optimizer_driver import apply_gradients, check_averages
from mixtrain.typing import Tensor

WHERE: Final = "mixtrain.keras.prepare"
# The name scope of an update, by which its writes are told from those of the rest of a train step.
UPDATE_SCOPE: Final = "mixtrain_update"
# The managers that a saved file names; a user registers their own with Keras.
_MANAGERS: Final[dict[str, Any]] = {
    kind.__name__: kind for kind in (DynamicLossScaleManager, FixedLossScaleManager)
}


class PreparedOptimizer(keras.optimizers.LossScaleOptimizer):
    """The optimizer that `prepare` returns, for `keras.Model.compile`.

    It is a `LossScaleOptimizer`, so that Keras does not wrap it in one. Learning rate, iterations and slots are those
    of the inner optimizer.

    Args:
        inner_optimizer: The Keras optimizer that updates the weights.
        loss_scale_manager: The manager of the loss scale; None for no scaling.
        precision: The arguments of `prepare` that determine the plan.
        name: Its name.
        must_scale: Whether gradients of a loss that was not scaled are an error; else a warning.

    Attributes:
        inner_optimizer: The wrapped optimizer.
        loss_scale_manager: The manager, whose `get_loss_scale` returns the current scale, or None.
        plan: The model's precision plan; None until the model is prepared.

    Raises:
        ValueError: The manager's scale is updated from Python, which a step compiled by Keras cannot do.
    """

    def __init__(
        self, inner_optimizer: keras.optimizers.Optimizer, loss_scale_manager: LossScaleManager | None = None,
        precision: dict[str, Any] | None = None, name: str | None = None, *, must_scale: bool = True,
    ) -> None:
        factor = inner_optimizer.loss_scale_factor
        super().__init__(inner_optimizer, name=name)
        if loss_scale_manager is not None and not loss_scale_manager.get_drop_overflow_update():
            factor = float(loss_scale_manager.get_loss_scale())
        scale = _step_scale(loss_scale_manager)
        # Keras's wrapper resets the inner optimizer's factor, which here scales the loss if no step is skipped.
        inner_optimizer.loss_scale_factor = factor if scale is None else None
        self.loss_scale_manager = loss_scale_manager
        # Keras tracks variables in a list as the optimizer's, so that they are saved and passed to JAX's steps.
        self.scale_variables = [] if scale is None else scale.variables()
        if scale is not None:
            # The sum of the finite losses of skipped steps since the last reset of metrics, and their rows.
            skipped_loss = keras.Variable(np.zeros(2), dtype="float32", trainable=False, name="skipped_loss")
            self.scale_variables.append(skipped_loss)
        # Bypass Keras's tracking: none of these is state of the optimizer.
        untracked: dict[str, Any] = {
            "plan": None, "_scale": scale, "_precision": dict(precision or {}), "_model": None, "_trained": [],
            "_loss_scaled": False, "_must_scale": must_scale, "_applied": False,
        }
        for attribute, value in untracked.items():
            object.__setattr__(self, attribute, value)
        if inner_optimizer.built:
            self.build(())

    # ---- the step -------------------------------------------------------------------------------------------------
    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Create the slots of the inner optimizer for the variables that it trains.

        Raises: ValueError if they are not those of the model that was prepared.
        """
        if self.inner_optimizer.built:
            # By the user, perhaps for a part of the model. Keras has no public name for what an optimizer trains;
            # tests/keras/test_several_optimizers.py fails if this one changes.
            variables = self.inner_optimizer._trainable_variables
        model = None if self._model is None else self._model()
        if model is not None:
            known = set(map(id, model.trainable_variables))
            foreign = [variable.path for variable in variables if id(variable) not in known]
            if foreign:
                raise checks.fail_value(
                    WHERE, f"the optimizer must train the model that it was prepared for, {model.name}", foreign,
                    "prepare(model, optimizer) for each model, with an optimizer of its own",
                )
        check_averages(self.inner_optimizer, variables)
        # Outside of the function that is being traced: variables of a function inside of another last for one call.
        with backend.eager_scope():
            if not self.inner_optimizer.built:
                self.inner_optimizer.build(list(variables))
            # Not LossScaleOptimizer's `build`, whose scale and counter are not used.
            keras.optimizers.Optimizer.build(self, list(variables))
        object.__setattr__(self, "_trained", list(variables))

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Return the loss in float32, multiplied by the current scale.

        Args:
            loss: A scalar.

        Raises:
            RuntimeError: The model that the optimizer was loaded with is not prepared.
        """
        self._check_prepared()
        object.__setattr__(self, "_loss_scaled", True)
        if self._scale is None:
            return self.inner_optimizer.scale_loss(loss)
        return scaled(loss, backend.snapshot(self._scale.variable))

    def apply(self, grads: Sequence[Tensor], trainable_variables: Sequence[keras.Variable] | None = None) -> None:
        """Update the variables if all gradients are finite, and update the scale.

        `grads`: The gradients of the scaled loss; an entry may be None. `trainable_variables`: The variables that they
        belong to, in their order; None for those of `build`.

        Raises: RuntimeError if the model that the optimizer was loaded with is not prepared, or no loss was scaled.
        """
        self._check_prepared()
        object.__setattr__(self, "_applied", True)
        self._check_loss_scaled()
        if not self.built:
            self.build(list(trainable_variables or ()))
        if len(grads) == 0:
            return
        scale = self._scale
        variables = self._trained if trainable_variables is None else list(trainable_variables)
        if scale is None:
            apply_gradients(self.inner_optimizer, grads, variables)
            return
        divisor = backend.snapshot(scale.variable) if self._loss_scaled else backend.to_tensor(np.float32(1))
        gradients = unscaled_gradients(grads, variables, divisor)
        finite = backend.all_finite(gradients)

        def update() -> None:
            apply_gradients(self.inner_optimizer, gradients, variables)
            scale.advance(True)

        with keras.name_scope(UPDATE_SCOPE):
            backend.cond(finite, update, lambda: scale.advance(False), writes=[*variables, *self.variables])

    def stateless_apply(
        self, optimizer_variables: Sequence[Tensor], grads: Sequence[Tensor], trainable_variables: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Do `apply` on values instead of variables, for JAX.

        `optimizer_variables`: The values of `variables`. `grads`: The gradients of the scaled loss.
        `trainable_variables`: The values of the variables of `build`.

        Returns: The values of both after the step, the trainable ones first.
        """
        count = len(self._trained)
        values = backend.with_values(
            lambda: self.apply(grads), [*self._trained, *self.variables], [*trainable_variables, *optimizer_variables]
        )
        return values[:count], values[count:]

    # ---- properties -----------------------------------------------------------------------------------------------
    @property
    def skipped_loss(self) -> keras.Variable:
        """The sum of the finite losses of skipped steps since the last reset of metrics, and their rows: float32 (2,).
        """
        return self.scale_variables[-1]

    def step_counts(self) -> tuple[int, int]:
        """Return the numbers of applied and of skipped steps so far."""
        state = self._scale.state
        return state.current_count(Count.APPLIED_STEPS), state.current_count(Count.SKIPPED_STEPS)

    @property
    def trained(self) -> list[keras.Variable]:
        """The variables that it updates; empty before its first step."""
        return list(self._trained)

    @property
    def skipped_steps(self) -> int:
        """The number of steps skipped so far."""
        return 0 if self._scale is None else self._scale.state.current_count(Count.SKIPPED_STEPS)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def get_config(self) -> dict[str, Any]:
        """Return the configuration: the inner optimizer, the manager and the arguments of `prepare`.

        Raises: TypeError if the manager is of a class of the user's own without `get_config`.
        """
        return {
            "name": self.name,
            "inner_optimizer": keras.saving.serialize_keras_object(self.inner_optimizer),
            "loss_scale_manager": _manager_config(self.loss_scale_manager),
            "precision": dict(self._precision),
            "must_scale": self._must_scale,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> PreparedOptimizer:
        """Create an optimizer from a configuration; its model must be prepared afterwards.

        `config`: The result of `get_config`. `custom_objects`: Classes of the user's own by name.
        """
        inner = keras.saving.deserialize_keras_object(config["inner_optimizer"], custom_objects=custom_objects)
        manager = _manager_of(config["loss_scale_manager"], custom_objects)
        strict = config.get("must_scale", True)
        return cls(inner, manager, config["precision"], config["name"], must_scale=strict)

    # ---- the model ------------------------------------------------------------------------------------------------
    def bind(self, model: keras.Model, plan: PrecisionPlan) -> None:
        """Bind the optimizer to the model that is prepared, referenced weakly, and its precision plan."""
        object.__setattr__(self, "_model", weakref.ref(model))
        object.__setattr__(self, "plan", plan)
        if self._scale is not None:
            self._scale.state.before_reading = functools.partial(_sync, weakref.ref(model))

    @property
    def precision(self) -> dict[str, Any]:
        """The arguments of `prepare` that determine the plan."""
        return dict(self._precision)

    def counts(self) -> keras.Variable:
        """Return the variable of step counts, whose last entry counts the skipped steps."""
        return self._scale.state.counts  # type: ignore[union-attr]

    @property
    def scales(self) -> bool:
        """Whether it scales the loss and may skip steps."""
        return self._scale is not None

    def check_applied(self) -> None:
        """Check after a train step that it is this optimizer that a step updates weights with."""
        if not self._applied:
            self._object(
                "a train_step must update weights by the model's optimizer; got none of its updates, so a step that "
                "overflows is not skipped. Write self.optimizer.apply_gradients(...)", refuse=self._must_scale
            )

    def _check_prepared(self) -> None:
        if self._model is None:
            raise RuntimeError(
                f"{WHERE}: the model of this optimizer must be prepared before it trains; got one that "
                "keras.models.load_model made. Write model = mixtrain.keras.load_model(path)."
            )

    def _check_loss_scaled(self) -> None:
        """Check that what differentiates the loss has scaled it: its gradients are divided by the scale."""
        if not self._loss_scaled and (self.scales or self.inner_optimizer.loss_scale_factor is not None):
            self._object(
                "a train_step that computes gradients itself must scale the loss; got gradients, and no call of "
                "scale_loss, so small ones become 0 in float16. Write gradient(self.optimizer.scale_loss(loss), ...)",
                refuse=self._must_scale or not self.scales,
            )

    def _object(self, message: str, *, refuse: bool) -> None:
        message = f"{WHERE}: {message}, or loss_scale_manager=None."
        if refuse:
            raise RuntimeError(message)
        warnings.warn(message, stacklevel=3)


def _sync(reference: weakref.ref[keras.Model]) -> None:
    """Copy the values of Keras's JAX training loop to the model's variables, between two batches."""
    model = reference()
    if model is not None:
        # Keras does so when a callback reads its `model`.
        callback = keras.callbacks.Callback()
        callback.set_model(model)
        callback.model  # noqa: B018


def _step_scale(manager: LossScaleManager | None) -> StepScale | None:
    """Return the scale that a compiled step updates; None if no step is skipped."""
    if manager is None or not manager.get_drop_overflow_update():
        return None
    scale = scale_of(WHERE, manager)
    if scale is None:
        raise checks.fail_value(
            WHERE, "a manager's scale must be moved inside the step, which keras.Model.fit compiles", manager,
            "get_update_cell() of it to return a nn.Cell that moves the scale, or use mixtrain.Model, which calls "
            "update_loss_scale after every step",
        )
    return scale


def _manager_config(manager: LossScaleManager | None) -> Any:
    if manager is None:
        return None
    if type(manager) in _MANAGERS.values():
        return {"class": type(manager).__name__, "arguments": manager.get_config()}  # type: ignore[attr-defined]
    if not (hasattr(manager, "get_config") and hasattr(manager, "from_config")):
        raise checks.fail_type(
            WHERE, "a manager must have get_config and from_config to be saved with its model", manager,
            "both methods, and @keras.saving.register_keras_serializable() above the class",
        )
    return keras.saving.serialize_keras_object(manager)


def _manager_of(config: Any, custom_objects: dict[str, Any] | None) -> LossScaleManager | None:
    if config is None:
        return None
    if "class" in config:
        return _MANAGERS[config["class"]](**config["arguments"])  # type: ignore[no-any-return]
    return keras.saving.deserialize_keras_object(config, custom_objects=custom_objects)  # type: ignore[no-any-return]
