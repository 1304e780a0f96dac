"""The optimizers with `param_groups`."""
