"""MindSpore's newer optimizers: `experimental.optim`, with `param_groups` and schedulers that scripts step."""

from mixtrain.experimental import optim

__all__ = ["optim"]
