"""`OwnStep`: a `train_step` as users write it, for losses, weights and metrics of `compile`, on either backend."""

from __future__ import annotations

from typing import Any

import keras

from tests.backends import ON_TENSORFLOW


class OnTensorFlow:
    """With a gradient tape."""

    def train_step(self: Any, data: Any) -> dict[str, Any]:
        import tensorflow as tf

        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x, y, outputs, weights)
            scaled = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables, strict=True))
        return results(self, loss, x)


class OnJax:
    """As a function of the state."""

    def train_step(self: Any, state: Any, data: Any) -> Any:
        import jax

        trained, others, slots, metrics = state
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)

        def compute(trained: Any) -> Any:
            mapping = [
                *zip(self.trainable_variables, trained, strict=True),
                *zip(self.non_trainable_variables, others, strict=True),
                *zip(self.metrics_variables, metrics, strict=True),
            ]
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
                loss = self.compute_loss(x, y, self(x, training=True), weights)
            after = [[scope.get_current_value(variable) for variable in group]
                     for group in (self.non_trainable_variables, self.metrics_variables)]
            with keras.StatelessScope(state_mapping=list(zip(self.optimizer.variables, slots, strict=True))):
                return self.optimizer.scale_loss(loss), (loss, *after)

        (_, (loss, others, metrics)), gradients = jax.value_and_grad(compute, has_aux=True)(trained)
        trained, slots = self.optimizer.stateless_apply(slots, gradients, trained)
        mapping = list(zip(self.metrics_variables, metrics, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            logs = results(self, loss, x)
        metrics = [scope.get_current_value(variable) for variable in self.metrics_variables]
        return logs, (trained, others, slots, metrics)


def results(network: Any, loss: Any, x: Any) -> dict[str, Any]:
    """Update the mean of the loss by the rows of a batch, and return the metrics by name."""
    for metric in network.metrics:
        if metric.name == "loss":
            metric.update_state(loss, sample_weight=keras.ops.shape(keras.tree.flatten(x)[0])[0])
    return {metric.name: metric.result() for metric in network.metrics}


OwnStep: Any = OnTensorFlow if ON_TENSORFLOW else OnJax
