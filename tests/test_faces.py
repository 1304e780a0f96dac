"""What scripts see of the engine's objects is MindSpore's, also where the surface is loaded late."""

from __future__ import annotations

import subprocess
import sys

import pytest

MANAGER_FIRST = """
from mixtrain import DynamicLossScaleManager
manager = DynamicLossScaleManager(16, 2, 3)
import sys
assert "mixtrain.cell.cell" not in sys.modules
from mixtrain import Model, nn
network = nn.Dense(2, 1)
optimizer = nn.SGD(network.trainable_params(), 0.1)
model = Model(network, nn.MSELoss(), optimizer, amp_level="O2", loss_scale_manager=manager)
assert isinstance(model.train_network.scale_sense, type(network.weight)), type(model.train_network.scale_sense)
assert model.train_network.scale_sense.asnumpy() == 16
"""
KERAS_ALONE = """
import sys, keras, numpy as np
from mixtrain import Model
network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model = Model(network, "mse", keras.optimizers.SGD(0.1), ["mae"], amp_level="O2")
batches = [(np.ones((4, 2), "float32"), np.ones((4, 1), "float32"))]
model.fit(1, batches, batches, verbose=0, callbacks=[keras.callbacks.EarlyStopping("loss")])
model.predict(batches[0][0])
assert "mixtrain.cell.cell" not in sys.modules
step, evaluated = model.train_network, model.eval_network
from mixtrain import nn
assert isinstance(step, nn.TrainOneStepWithLossScaleCell) and isinstance(evaluated, nn.WithEvalCell)
assert step is model.train_network and step.optimizer is model.optimizer
before = [weight.numpy().copy() if hasattr(weight, "numpy") else np.array(weight) for weight in network.weights]
loss, overflow, scale = step(*batches[0])
assert not bool(overflow) and float(scale) == model.loss_scale_manager.get_loss_scale()
assert any((np.array(new) != old).any() for new, old in zip(network.get_weights(), before))
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [MANAGER_FIRST, KERAS_ALONE], ids=["manager first", "Keras alone"])
def test_faces_are_those_of_the_surface(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
