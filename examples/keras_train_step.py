"""A plain Keras model whose train_step scales its loss: GradScaler under Keras's own compile and fit.

Four kinds of small pictures (bars and corners in noise, made by the script) are learned by a convolutional network in
float16. `fit`, callbacks, metrics and `evaluate` are Keras's; only `train_step` is written anew.

    python examples/keras_train_step.py --epochs 3

It runs on TensorFlow: on JAX, Keras's `train_step` is a function of the state, which mixtrain.keras.prepare scales.
"""

from __future__ import annotations

import argparse

import keras
import numpy as np

import mixtrain as ms
from mixtrain import amp

if keras.backend.backend() != "tensorflow":
    raise SystemExit(
        "keras_train_step.py: the backend must be TensorFlow, whose gradient tape its train_step uses; got "
        f"{keras.backend.backend()}. Write KERAS_BACKEND=tensorflow, or use mixtrain.keras.prepare, which scales the "
        "loss in Keras's own fit on JAX too (docs/from_keras.md)."
    )

import tensorflow as tf  # noqa: E402


class ScaledModel(keras.Model):
    """A functional Keras model that computes in float16 where that is safe, and scales its loss.

    Set `scaler` to an `amp.GradScaler` before `fit`.
    """

    scaler: amp.GradScaler

    def train_step(self, data):
        """Train on one batch; return the metrics, with the loss scale among them."""
        x, y = data
        with tf.GradientTape() as tape:
            with amp.autocast():
                y_pred = self(x, training=True)
                loss = self.compute_loss(x, y, y_pred)
            scaled_loss = self.scaler.scale(loss)
        variables = self.trainable_variables
        grads = tape.gradient(scaled_loss, [variable.value for variable in variables])
        applied = self.scaler.step(self.optimizer, grads, variables)
        self.scaler.update()
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {**self.get_metrics_result(), "applied": applied, "loss_scale": self.scaler.get_scale()}


def pictures(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` pictures, float32 (count, 12, 12, 1), and their kinds, int32 (count,)."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 4, count).astype(np.int32)
    images = rng.normal(0.0, 0.4, (count, 12, 12, 1)).astype(np.float32)
    for image, kind, row, column in zip(images, kinds, *rng.integers(2, 9, (2, count))):
        if kind in (0, 2):
            image[row, 1:10] += 1.0
        if kind in (1, 2):
            image[1:10, column] += 1.0
        if kind == 3:
            image[row - 2:row + 2, column - 2:column + 2] += 1.0
    return images, kinds


def build() -> ScaledModel:
    """Return the network."""
    inputs = keras.Input((12, 12, 1))
    x = keras.layers.Conv2D(8, 3, activation="relu")(inputs)
    x = keras.layers.Conv2D(16, 3, activation="relu")(x)
    x = keras.layers.GlobalMaxPooling2D()(x)
    return ScaledModel(inputs, keras.layers.Dense(4)(x))


class Watch(keras.callbacks.Callback):
    """Keeps the scale after each batch, and counts the batches whose update was skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.scales: list[float] = []
        self.skipped = 0

    def on_train_batch_end(self, batch, logs=None):
        """Look at what `train_step` returned."""
        self.scales.append(float(logs["loss_scale"]))
        self.skipped += not bool(logs["applied"])


def main() -> dict[str, float]:
    """Train and evaluate; return the accuracy and what became of the scale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    epochs = parser.parse_args().epochs
    ms.set_seed(5)
    images, kinds = pictures(1500)
    model = build()
    model.scaler = amp.GradScaler(init_scale=2.0**24, growth_interval=60)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    watch = Watch()
    model.fit(images[:1200], kinds[:1200], batch_size=32, epochs=epochs, callbacks=[watch], verbose=2)
    _, accuracy = model.evaluate(images[1200:], kinds[1200:], verbose=0)
    print(f"accuracy {accuracy:.3f}; {watch.skipped} steps skipped; loss scale {watch.scales[0]:g} after the first, "
          f"{watch.scales[-1]:g} at the end")
    return {"accuracy": float(accuracy), "skipped": watch.skipped, "loss_scale": watch.scales[-1]}


if __name__ == "__main__":
    main()
