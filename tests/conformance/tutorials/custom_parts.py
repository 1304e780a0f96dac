"""Parts of one's own: a cell, a loss, an optimizer, a metric and a callback, and Model with all of them."""

import numpy as np

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, Metric, Model, rearrange_inputs


# ---- data: points on a line, with a little noise ----
def points(count, slope=2.0, offset=3.0):
    generator = np.random.default_rng(7)
    for _ in range(count):
        x = generator.uniform(-1.0, 1.0)
        noise = generator.normal(0, 0.01)
        yield np.array([x]).astype(np.float32), np.array([x * slope + offset + noise]).astype(np.float32)


def create_dataset(count=64, batch_size=8):
    dataset = GeneratorDataset(list(points(count)), column_names=["data", "label"], shuffle=False)
    return dataset.batch(batch_size)


# ---- a cell ----
class Linear(nn.Cell):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.weight = Parameter(Tensor(np.full((in_channels, out_channels), 0.02), ms.float32), name="w")
        self.bias = Parameter(Tensor(np.zeros(out_channels), ms.float32), name="b")
        self.matmul = ops.MatMul()

    def construct(self, x):
        return self.matmul(x, self.weight) + self.bias

    def extend_repr(self):
        return f"shape={self.weight.shape}"


net = Linear(1, 1)
print(net)
assert str(net) == "Linear(shape=(1, 1))"


# ---- a loss: as function, as Cell, as LossBase ----
def mean_absolute(output, target):
    return (output - target).abs().mean()


class MeanAbsolute(nn.Cell):
    def construct(self, output, target):
        return ops.ReduceMean()(ops.Abs()(output - target))


class BaseAbsolute(nn.LossBase):
    def __init__(self, reduction="mean"):
        super().__init__(reduction)
        self.abs = ops.Abs()

    def construct(self, base, target):
        return self.get_loss(self.abs(base - target))


output, target = Tensor([0.1, 0.2, 0.3]), Tensor([0.1, 0.2, 0.9])
for loss in (mean_absolute, MeanAbsolute(), BaseAbsolute()):
    np.testing.assert_allclose(loss(output, target).asnumpy(), 0.2, rtol=1e-5)
np.testing.assert_allclose(BaseAbsolute("sum")(output, target).asnumpy(), 0.6, rtol=1e-5)


# ---- an optimizer ----
class MomentumLike(nn.Optimizer):
    def __init__(self, params, learning_rate, momentum=0.9):
        super().__init__(learning_rate, params)
        self.momentum = Parameter(Tensor(momentum, ms.float32), name="moment")
        self.moments = self.parameters.clone(prefix="moments", init="zeros")

    def construct(self, gradients):
        lr = self.get_lr()
        params = self.parameters
        for i in range(len(params)):
            ops.assign(self.moments[i], self.moments[i] * self.momentum + gradients[i])
            ops.assign(params[i], params[i] - self.moments[i] * lr)
        return params


# ---- a metric ----
class MyMAE(Metric):
    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._abs_error_sum = 0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred = self._convert_data(inputs[0])
        y = self._convert_data(inputs[1])
        self._abs_error_sum += np.abs(y.reshape(y_pred.shape) - y_pred).sum()
        self._samples_num += y.shape[0]

    def eval(self):
        return self._abs_error_sum / self._samples_num


error = MyMAE()
error.clear()
error.update(Tensor([[0.1], [0.2]]), Tensor([[0.3], [0.1]]))
error.update(np.array([[1.0]]), np.array([[0.4]]))
np.testing.assert_allclose(error.eval(), 0.3, rtol=1e-6)


# ---- a callback ----
class StopAt(Callback):
    """Ends training where the loss is small enough; knows where in training it is called."""

    def __init__(self, enough):
        super().__init__()
        self.enough, self.calls, self.losses = enough, [], []

    def on_train_begin(self, run_context):
        self.calls.append("begin")

    def on_train_epoch_begin(self, run_context):
        self.calls.append(f"epoch {run_context.original_args().cur_epoch_num}")

    def on_train_step_end(self, run_context):
        cb_params = run_context.original_args()
        loss = cb_params.net_outputs
        self.losses.append(loss.asnumpy())
        if loss < self.enough:
            self.calls.append(f"stop at {cb_params.cur_epoch_num}, {cb_params.cur_step_num} of {cb_params.batch_num}")
            run_context.request_stop()

    def on_train_end(self, run_context):
        self.calls.append("end")


stop = StopAt(0.05)
model = Model(net, BaseAbsolute(), MomentumLike(net.trainable_params(), 0.05), metrics={"mae": MyMAE()})
model.train(20, create_dataset(), callbacks=[stop], dataset_sink_mode=False)
print(stop.calls, stop.losses[:3], net.weight.asnumpy(), net.bias.asnumpy())
result = model.eval(create_dataset(), dataset_sink_mode=False)
print(result)
assert stop.calls == ["begin", *(f"epoch {number}" for number in range(1, 7)), "stop at 6, 48 of 8", "end"]
np.testing.assert_allclose(stop.losses[:3], [2.784110, 2.982988, 2.634299], rtol=1e-4)
np.testing.assert_allclose([net.weight.asnumpy()[0, 0], net.bias.asnumpy()[0]], [1.945654, 3.117659], rtol=1e-4)
np.testing.assert_allclose(result["mae"], 0.119855, rtol=1e-3)
