"""One network trained on one device and on several, with a batch that overflows on the last of them alone.

A CPU is made to count as several devices, so that it runs anywhere. The script prints the losses of both runs, and the
steps that were skipped.

    python examples/several_devices.py --devices 2
    KERAS_BACKEND=jax python examples/several_devices.py --devices 4
"""

from __future__ import annotations

import argparse
import contextlib
import warnings

import keras
import numpy as np


def make_devices(count: int) -> None:
    """Let the CPU count as several devices; before the backend starts."""
    if keras.backend.backend() == "jax":
        import jax

        jax.config.update("jax_num_cpu_devices", count)
    else:
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    make_devices(arguments.devices)

    import mixtrain
    from mixtrain import DynamicLossScaleManager, Model
    from mixtrain.distribution import data_parallel

    draw = np.random.default_rng(0)
    rows = 8 * arguments.devices
    x = draw.standard_normal((40, rows, 6)).astype(np.float32)
    labels = np.argmax(x @ draw.standard_normal((6, 3)), axis=-1).astype(np.int32)
    x[7, -1, 0] = np.inf  # The last row belongs to the last device.
    warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
    for name, spread in (
        ("1 device", contextlib.nullcontext()),
        (f"{arguments.devices} devices", data_parallel(arguments.devices)),
    ):
        mixtrain.set_seed(0)
        layers = [keras.Input((6,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(3)]
        with spread:
            model = Model(
                keras.Sequential(layers), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                keras.optimizers.Adam(0.01), loss_scale_manager=DynamicLossScaleManager(2**10, 2, 50),
            )
        history = model.train(arguments.epochs, list(zip(x, labels, strict=True)), verbose=0)
        losses = ", ".join(f"{loss:.6f}" for loss in history["loss"])
        print(f"{name}: losses {losses}; {sum(history['skipped_steps'])} steps skipped")


if __name__ == "__main__":
    main()
