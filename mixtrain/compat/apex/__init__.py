"""apex's words: `initialize`, `scale_loss` and the optimizer between them."""
