"""The data backend on TensorFlow."""
