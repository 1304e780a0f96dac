"""A network exported with its graph, loaded and called without the class that made it."""

import os

import numpy as np

import mindspore
from mindspore import Tensor, nn

mindspore.set_context(mode=mindspore.GRAPH_MODE)
weight = Tensor(np.linspace(-1, 1, 24).reshape(4, 6).astype(np.float32))
model = nn.SequentialCell(nn.Flatten(), nn.Dense(6, 4, weight_init=weight, bias_init="ones"), nn.ReLU())
inputs = Tensor(np.ones([2, 2, 3]).astype(np.float32))
expected = model(inputs)

mindspore.export(model, inputs, file_name="model", file_format="MINDIR")
assert os.path.exists("model.mindir")

graph = mindspore.load("model.mindir")
loaded = nn.GraphCell(graph)
outputs = loaded(inputs)
print(outputs.shape, outputs)
assert outputs.shape == (2, 4)
np.testing.assert_allclose(outputs.asnumpy(), expected.asnumpy(), rtol=1e-6)
np.testing.assert_allclose(outputs.asnumpy()[0], np.maximum(weight.asnumpy().sum(axis=1) + 1, 0), rtol=1e-5, atol=1e-6)
