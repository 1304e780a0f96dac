"""The contenders: one file for each way of training, each with `made`."""
