"""The devices of the tests: a CPU as several, which a backend must be told before it starts."""

from __future__ import annotations

import os
from typing import Final

import keras

# Two are no more than a CPU has cores, and leave the number of threads, and so the numbers, as one device has them.
COUNT: Final = int(os.environ.get("MIXTRAIN_TEST_DEVICES", "2"))

if keras.backend.backend() == "jax":
    import jax

    jax.config.update("jax_num_cpu_devices", COUNT)
else:
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * COUNT
    )
