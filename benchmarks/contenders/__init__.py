"""The contenders: one module for each kind, each with `build`."""
