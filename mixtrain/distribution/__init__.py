"""Training on several devices or processes."""

from mixtrain.distribution.data_parallel import data_parallel
from mixtrain.distribution.fully_sharded import fully_sharded

__all__ = ["data_parallel", "fully_sharded"]
