"""The documented interface: what `mixtrain.backend` imports from a backend, with signatures and docstrings.

The functions have no bodies here. `tensorflow/` and `jax/` implement them, and say only what is particular to them.
"""
