"""Training on several devices or processes."""

from mixtrain.distribution.data_parallel import data_parallel

__all__ = ["data_parallel"]
