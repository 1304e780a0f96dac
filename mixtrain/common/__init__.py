"""Parameters, tensors, initializers and `jit`."""
