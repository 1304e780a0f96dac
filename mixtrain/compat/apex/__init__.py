"""apex's API: `initialize`, `scale_loss` and the optimizer that they share."""
