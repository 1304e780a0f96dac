"""The data backend on JAX."""
