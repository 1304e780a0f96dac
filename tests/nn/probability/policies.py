"""Scripts of a user, for either package: a soft actor, a variational autoencoder and a policy of PPO, noise given."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np


def networks(ms: ModuleType, msp: ModuleType) -> dict[str, Any]:
    """Return the networks of losses by name, each with its inputs; `ms` is the package, `msp` its nn.probability."""
    nn, ops = ms.nn, ms.ops
    rng = np.random.default_rng(3)

    def dense(size_in: int, size_out: int) -> Any:
        weight = (rng.standard_normal((size_out, size_in)) / np.sqrt(size_in)).astype(np.float32)
        return nn.Dense(size_in, size_out, weight_init=ms.Tensor(weight), bias_init="zeros")

    class Tanh(msp.bijector.Bijector):
        def __init__(self) -> None:
            super().__init__(name="Tanh", dtype=ms.float32, param={"name": "Tanh"})

        def _forward(self, x: Any) -> Any:
            return ops.tanh(x)

        def _inverse(self, y: Any) -> Any:
            return 0.5 * (ops.log1p(y) - ops.log1p(-y))

        def _forward_log_jacobian(self, x: Any) -> Any:
            return 2.0 * (float(np.log(2.0)) - x - ops.softplus(-2.0 * x))

        def _inverse_log_jacobian(self, y: Any) -> Any:
            return -ops.log1p(-y * y)

    class SoftActor(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.mean, self.log_sd = dense(5, 16), dense(16, 3), dense(16, 3)
            self.normal = msp.distribution.Normal()
            self.tanh = Tanh()
            self.action = msp.distribution.TransformedDistribution(self.tanh, msp.distribution.Normal())

        def construct(self, x: Any, noise: Any) -> Any:
            hidden = ops.relu(self.body(x))
            mean, sd = self.mean(hidden), ops.exp(ops.clip_by_value(self.log_sd(hidden), -5.0, 2.0))
            raw = mean + sd * noise
            log_prob = self.normal.log_prob(raw, mean, sd) - self.tanh("forward_log_jacobian", raw)
            again = self.action("log_prob", self.tanh.forward(raw), mean, sd)
            value = ops.square(self.tanh.forward(raw) - 0.5).sum(-1)
            loss = (0.2 * log_prob.sum(-1) + value).mean() + 0.01 * again.mean()
            return loss - self.normal("entropy", mean, sd).mean()

    class Autoencoder(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.mean, self.sd, self.decode = dense(5, 12), dense(12, 2), dense(12, 2), dense(2, 5)
            self.prior = msp.distribution.Normal(0.0, 1.0)
            self.pixel = msp.distribution.Bernoulli(dtype=ms.float32)
            self.softplus = msp.bijector.Softplus()

        def construct(self, x: Any, noise: Any) -> Any:
            hidden = ops.tanh(self.encode(x))
            mean, sd = self.mean(hidden), self.softplus.forward(self.sd(hidden)) + 1e-3
            decoded = ops.sigmoid(self.decode(mean + sd * noise))
            seen = self.pixel.log_prob(ops.cast(x > 0, ms.float32), decoded).sum(-1)
            one, zero = ops.ones_like(mean), ops.zeros_like(mean)
            divergence = self.prior.kl_loss("Normal", zero, one, mean, sd).sum(-1)
            return (divergence - seen).mean()

    class Policy(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.logits, self.value = dense(5, 16), dense(16, 4), dense(16, 1)
            self.categorical = msp.distribution.Categorical(dtype=ms.int32)

        def construct(self, x: Any, action: Any, advantage: Any, old: Any) -> Any:
            hidden = ops.tanh(self.body(x))
            probs = ops.softmax(self.logits(hidden), -1)
            ratio = ops.exp(self.categorical.log_prob(action, probs) - old)
            clipped = ops.clip_by_value(ratio, 0.8, 1.2)
            gain = ops.minimum(ratio * advantage, clipped * advantage).mean()
            critic = ops.square(self.value(hidden).squeeze(-1) - advantage).mean()
            return 0.5 * critic - gain - 0.01 * self.categorical.entropy(probs).mean()

    def normal(*shape: int) -> Any:
        return ms.Tensor(rng.standard_normal(shape).astype(np.float32))

    x, actions, old = normal(6, 5), np.array([0, 3, 1, 2, 2, 0], np.int32), np.full(6, -1.4, np.float32)
    return {
        "soft actor": (SoftActor(), (x, normal(6, 3))),
        "autoencoder": (Autoencoder(), (x, normal(6, 2))),
        "policy": (Policy(), (x, ms.Tensor(actions), normal(6), ms.Tensor(old))),
    }


def train(ms: ModuleType, msp: ModuleType, steps: int = 4, compiled: bool = False) -> dict[str, list[float]]:
    """Return the losses of each network over a few steps of Adam."""
    losses: dict[str, list[float]] = {}
    for name, (network, inputs) in networks(ms, msp).items():
        optimizer = ms.nn.Adam(network.trainable_params(), learning_rate=0.05)
        loss_and_gradients = ms.value_and_grad(network, None, optimizer.parameters)

        def step(*inputs: Any, run: Any = loss_and_gradients, optimizer: Any = optimizer) -> Any:
            loss, gradients = run(*inputs)
            optimizer(gradients)
            return loss

        step = ms.jit(step) if compiled else step
        losses[name] = [float(step(*inputs).asnumpy()) for _ in range(steps)]
    return losses
