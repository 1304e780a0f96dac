"""Which layer computes in which dtype and why, and the rule that moves the loss scale."""
