"""MindSpore's newer optimizers: `experimental.optim`, with `param_groups` and schedulers that are stepped by hand."""

from mixtrain.experimental import optim

__all__ = ["optim"]
