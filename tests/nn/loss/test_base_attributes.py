"""A custom loss works on Tensors: what the attributes and methods of `LossBase` return has MindSpore's methods."""

from __future__ import annotations

import numpy as np

import mixtrain
from mixtrain import Tensor, nn

LOGITS = np.array([[0.9, 0.2], [0.4, 0.7]], np.float32)
LABELS = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)


class BalancedLoss(nn.LossBase):
    """Weights positive and negative elements by their number, as a public project does."""

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        positive = self.cast(labels > 0.5, mixtrain.float32)
        ratio = positive.size / self.reduce_sum(positive)
        weights = self.mul(positive, ratio).asnumpy()
        assert weights.tolist() == [[2.0, 0.0], [0.0, 2.0]]
        loss = self.get_loss((logits - labels).abs(), Tensor(weights))
        return loss.astype(mixtrain.float32) + self.reduce_mean(logits, (0, 1)).mean()


def test_attributes_and_methods_return_tensors() -> None:
    loss = BalancedLoss()(Tensor(LOGITS), Tensor(LABELS))
    np.testing.assert_allclose(loss.asnumpy(), (0.1 * 2 + 0.3 * 2) / 4 + LOGITS.mean(), rtol=1e-6)
