"""Saving and loading: checkpoints of networks, of lists of parameters and of optimizers, by hand and by callback."""

import os

import numpy as np

import mindspore
from mindspore import Parameter, Tensor, nn
from mindspore.train import CheckpointConfig, Model, ModelCheckpoint


def network():
    model = nn.SequentialCell(nn.Flatten(), nn.Dense(36, 12), nn.ReLU(), nn.Dense(12, 5))
    return model


path = "model.ckpt"

# ---- save and load weights ----
model = network()
mindspore.save_checkpoint(model, path)
assert os.path.getsize(path) > 4 * (36 * 12 + 12 + 12 * 5 + 5)

other = network()
param_dict = mindspore.load_checkpoint(path)
print({name: value.shape for name, value in param_dict.items()})
assert list(param_dict) == ["1.weight", "1.bias", "3.weight", "3.bias"]
assert isinstance(param_dict["1.weight"], Parameter) and param_dict["1.weight"].dtype == mindspore.float32
param_not_load, checkpoint_not_load = mindspore.load_param_into_net(other, param_dict)
print(param_not_load, checkpoint_not_load)
assert param_not_load == [] and checkpoint_not_load == []

x = Tensor(np.linspace(-1, 1, 72).reshape(2, 6, 6).astype(np.float32))
np.testing.assert_array_equal(model(x).asnumpy(), other(x).asnumpy())

# ---- what has no place is named ----
smaller = nn.SequentialCell(nn.Flatten(), nn.Dense(36, 12))
missing, unused = mindspore.load_param_into_net(smaller, mindspore.load_checkpoint(path))
assert missing == [] and sorted(unused) == ["3.bias", "3.weight"]
wider = nn.SequentialCell(nn.Flatten(), nn.Dense(36, 12), nn.ReLU(), nn.Dense(12, 5), nn.Dense(5, 5))
missing, unused = mindspore.load_param_into_net(wider, mindspore.load_checkpoint(path))
assert sorted(missing) == ["4.bias", "4.weight"] and unused == []
mindspore.load_checkpoint(path, net=wider)
np.testing.assert_array_equal(wider[1].weight.asnumpy(), model[1].weight.asnumpy())

# ---- a list of parameters, a number beside them, and a choice of them ----
values = [{"name": "alpha", "data": Tensor([1.0, 2.0])}, {"name": "beta", "data": Tensor(3, mindspore.int32)}]
mindspore.save_checkpoint(values, "list", append_dict={"epoch_num": 7, "rate": 0.5})
read = mindspore.load_checkpoint("list.ckpt")
print(sorted(read))
assert sorted(read) == ["alpha", "beta", "epoch_num", "rate"]
assert read["alpha"].asnumpy().tolist() == [1.0, 2.0]
assert int(read["beta"]) == 3 and read["beta"].dtype == mindspore.int32
assert int(read["epoch_num"]) == 7 and float(read["rate"]) == 0.5

chosen = "chosen.ckpt"
mindspore.save_checkpoint(model, chosen, choice_func=lambda name: name.startswith("1."))
assert list(mindspore.load_checkpoint(chosen)) == ["1.weight", "1.bias"]
few = mindspore.load_checkpoint(path, filter_prefix="3")
assert list(few) == ["1.weight", "1.bias"]

# ---- parameters changed by hand between reading and loading ----
param_dict = mindspore.load_checkpoint(path)
param_dict["3.bias"] = Parameter(Tensor(np.arange(5).astype(np.float32)), name="3.bias")
param_dict["1.weight"].set_data(Tensor(np.zeros((12, 36), np.float32)))
mindspore.load_param_into_net(other, param_dict)
assert str(other[3].bias.asnumpy()) == "[0. 1. 2. 3. 4.]" and float(other[1].weight.sum()) == 0.0

# ---- while training: checkpoints written by a callback ----
generator = np.random.default_rng(0)
points = generator.standard_normal((24, 6, 6)).astype(np.float32)
labels = generator.integers(0, 5, 24).astype(np.int32)
dataset = mindspore.dataset.NumpySlicesDataset((points, labels), ["x", "y"], shuffle=False).batch(8)
config = CheckpointConfig(save_checkpoint_steps=3, keep_checkpoint_max=2)
writer = ModelCheckpoint(prefix="points", directory=".", config=config)
optimizer = nn.Adam(model.trainable_params(), learning_rate=1e-3)
trainer = Model(model, nn.CrossEntropyLoss(), optimizer)
trainer.train(3, dataset, callbacks=[writer], dataset_sink_mode=False)
written = sorted(name for name in os.listdir(".") if name.startswith("points") and name.endswith(".ckpt"))
print(written)
assert written == ["points-2_3.ckpt", "points-3_3.ckpt"]
last = mindspore.load_checkpoint(written[-1])
np.testing.assert_array_equal(last["3.bias"].asnumpy(), model[3].bias.asnumpy())
restored = network()
assert mindspore.load_param_into_net(restored, last)[0] == []
np.testing.assert_array_equal(restored(x).asnumpy(), model(x).asnumpy())

# ---- an optimizer's state, and an optimizer that resumes ----
mindspore.save_checkpoint(optimizer, "adam.ckpt")
state = mindspore.load_checkpoint("adam.ckpt")
assert int(state["global_step"]) == 9 and "moment1.1.weight" in state and "moment2.3.bias" in state
resumed = nn.Adam(restored.trainable_params(), learning_rate=1e-3)
mindspore.load_param_into_net(resumed, state)
assert int(resumed.global_step) == 9
