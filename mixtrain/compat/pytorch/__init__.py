"""PyTorch's `autocast` scope, and what it replaces in Keras while it is in force."""
